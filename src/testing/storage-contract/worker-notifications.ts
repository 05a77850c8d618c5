/** Worker notifications: `watch` tells other processes when something falls due. */

import assert from "node:assert/strict";
import { only, repeat } from "./assertions.js";
import { HOUR_MS, NOTICE_MS, PER_ENDPOINT } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";

/** Calls `act` and waits until the peer is notified of something due at `by` or earlier. */
async function expectNotification(
  { peer }: Scenario,
  by: number,
  act: () => Promise<unknown>,
): Promise<void> {
  let unwatch = (): void => {};
  const notification = new Promise<void>((resolve) => {
    unwatch = peer.watch((at) => {
      if (at <= by) resolve();
    });
  });
  await act();
  await notification;
  unwatch();
}

/** For a storage whose `watch` calls its listeners. A missing notification fails by timeout. */
export function testWorkerNotifications(it: DeclareTest): void {
  it("append notifies the other process", async (s) => {
    await s.register();
    await expectNotification(s, s.now(), () => s.emit());
  });

  it("resend and recover notify the other process", async (s) => {
    const { id } = await s.register();
    const { ids } = await s.emit();
    await s.postpone(only(await s.claim()), HOUR_MS);
    await expectNotification(s, s.now(), () => s.resend(only(ids)));
    await s.fail(only(await s.claim()));
    await expectNotification(s, s.now(), () => s.resend(only(ids)));
    await s.fail(only(await s.claim()));
    await expectNotification(s, s.now(), () => s.recover(id));
  });

  it("a retry and the health step of a first failure notify for their times", async (s) => {
    await s.register();
    await s.emit();
    const [claim] = await s.claim();
    assert.ok(claim);
    await expectNotification(s, s.now() + HOUR_MS, () => s.retry(claim, HOUR_MS));
    await s.advance(HOUR_MS);
    await s.deliver(only(await s.claim()));
    await s.emit();
    const next = only(await s.claim());
    await expectNotification(s, s.now() + NOTICE_MS, () => s.fail(next));
  });

  it("a settlement that frees a place at a busy endpoint notifies the other process", async (s) => {
    await s.register();
    await repeat(PER_ENDPOINT, () => s.emit());
    const [first, second, third] = await s.claim();
    assert.ok(first && second && third);
    await s.emit();
    await expectNotification(s, s.now(), () => s.deliver(first));
    only(await s.claim({ by: s.peer }));
    await s.emit();
    await expectNotification(s, s.now(), () => s.postpone(second, HOUR_MS));
    only(await s.claim({ by: s.peer }));
    // Later due times are notified too: the process that settles may be about to stop.
    await expectNotification(s, s.now() + HOUR_MS, () => s.deliver(third));
  });

  it("a listener that was removed is not called, and others still are", async (s) => {
    const heard: number[] = [];
    const listener = (at: number): void => void heard.push(at);
    const unwatch = s.peer.watch(listener);
    unwatch();
    unwatch();
    await s.register();
    await expectNotification(s, s.now(), () => s.emit());
    assert.deepEqual(heard, []);
  });
}
