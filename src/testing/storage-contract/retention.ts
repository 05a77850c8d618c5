/** Retention: how long completed events and their deliveries are kept. */

import assert from "node:assert/strict";
import { only, repeat } from "./assertions.js";
import { HOUR_MS, RETENTION } from "./builders.js";
import { type DeclareTest, readDeliveryLog } from "./fixture.js";

/** An event is kept for the retention period after its last delivery completed. */
export function testRetention(it: DeclareTest): void {
  it("a completed event is kept with its attempts for the retention period, then freed", async (s) => {
    const { id: webhookId } = await s.register();
    const empty = await s.store.stats();
    const { event, ids } = await s.emit({ payload: "é" });
    await s.advance(HOUR_MS);
    await s.deliver(only(await s.claim()));
    await s.advance(RETENTION.keepMs - 1);
    await s.tidy();
    assert.equal((await s.readDelivery(only(ids))).attempts.length, 1);
    const { events, ended, bytes } = await s.store.stats();
    assert.deepEqual({ events, ended }, { events: 1, ended: 1 });
    assert.ok(bytes >= empty.bytes + 2);
    await s.advance(1);
    await s.tidy();
    assert.equal(await s.store.getDelivery(only(ids)), undefined);
    assert.equal(await s.resend(only(ids)), undefined);
    assert.deepEqual(await readDeliveryLog(s, { webhookId }), []);
    assert.equal(await s.recoverAll(webhookId), 0);
    assert.deepEqual(await s.store.stats(), empty);
    assert.equal((await s.append(event)).result, "stored");
  });

  it("an event that no webhook received is kept for the retention period, then freed", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    await s.emit();
    await s.advance(RETENTION.keepMs - 1);
    await s.tidy();
    assert.equal((await s.store.stats()).events, 1);
    await s.advance(1);
    await s.tidy();
    assert.equal((await s.store.stats()).events, 0);
    assert.equal(await s.recoverAll(id), 0);
  });

  it("a resend restarts the retention period of its event", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    await s.deliver(only(await s.claim()));
    await s.advance(RETENTION.keepMs - 1);
    const second = await s.resend(only(ids));
    await s.advance(HOUR_MS);
    await s.tidy();
    const claim = only(await s.claim());
    assert.equal(claim.id, second);
    await s.deliver(claim);
    await s.advance(RETENTION.keepMs - 1);
    await s.tidy();
    assert.equal((await s.readDelivery(claim.id)).state, "delivered");
  });

  it("an event that was resent while in flight is kept for the retention period after the resend", async (s) => {
    const { account } = await s.register();
    const { ids } = await s.emit();
    const id = only(ids);
    const first = only(await s.claim());
    await s.store.resend({ id, account, force: true, now: s.now() });
    await s.deliver(first);
    await s.postpone(only(await s.claim()), RETENTION.keepMs);
    await s.advance(RETENTION.keepMs);
    await s.tidy();
    const second = only(await s.claim());
    assert.equal(second.id, `${id}.1`);
    await s.deliver(second);
    await s.advance(RETENTION.keepMs - 1);
    await s.tidy();
    assert.equal((await s.readDelivery(second.id)).state, "delivered");
    await s.advance(1);
    await s.tidy();
    assert.equal((await s.store.stats()).events, 0);
  });

  it(
    "an event that was recovered while in flight is freed, whichever delivery completes last",
    async (s) => {
      await s.register();
      await repeat(30, () => s.emit());
      const first = await s.claim();
      const { id: second } = await s.register();
      assert.equal(await s.recoverAll(second), 30);
      const recovered = await s.claim({ by: s.peer });
      assert.equal(recovered.length, 30);
      for (const [index, claim] of first.entries()) {
        const other = recovered[index];
        assert.ok(other);
        await Promise.all([s.deliver(claim), s.deliver(other, { by: s.peer })]);
      }
      await s.advance(RETENTION.keepMs);
      await s.tidy();
      const { events, pending } = await s.store.stats();
      assert.deepEqual({ events, pending }, { events: 0, pending: 0 });
    },
    { perEndpoint: 30 },
  );

  it(
    "beyond retention.events the event that completed first is freed, and pending ones stay",
    async (s) => {
      await s.register();
      const { ids: open } = await s.emit();
      await s.postpone(only(await s.claim()), HOUR_MS);
      const ended = await repeat(4, async () => {
        const { ids } = await s.emit();
        await s.advance(1);
        await s.deliver(only(await s.claim()));
        return only(ids);
      });
      await s.tidy();
      const states = await Promise.all(
        [...open, ...ended].map(async (id) => (await s.store.getDelivery(id))?.state),
      );
      assert.deepEqual(states, ["pending", undefined, undefined, "delivered", "delivered"]);
      assert.equal((await s.store.stats()).events, 3);
    },
    { retention: { keepMs: RETENTION.keepMs, events: 2 } },
  );
}

/** A retention of 0 frees an event as soon as its last delivery completes. */
export function testNoRetention(it: DeclareTest): void {
  it(
    "a retention of 0 frees an event with its deliveries once the last one completed",
    async (s) => {
      await s.register();
      await s.register();
      const empty = await s.store.stats();
      const { event, ids } = await s.emit();
      const [first, second] = await s.claim();
      assert.ok(first && second);
      await s.deliver(first);
      assert.equal((await s.readDelivery(first.id)).state, "delivered");
      assert.equal(await s.recoverAll(first.webhook.id), 0);
      await s.postpone(second, 0);
      const again = only(await s.claim());
      assert.deepEqual([again.event, ids.includes(again.id)], [event, true]);
      await s.fail(again);
      assert.equal(await s.store.getDelivery(first.id), undefined);
      await s.tidy();
      const endpoints = { ok: 1, failing: 1, warned: 0, disabled: 0 };
      assert.deepEqual(await s.store.stats(), { ...empty, endpoints });
      assert.equal((await s.append(event)).result, "duplicate");
    },
    { retention: { keepMs: 0, events: 10 } },
  );

  it(
    "a retention of 0 keeps no events of removed webhooks or without receivers",
    async (s) => {
      await s.register({ status: "DISABLED" });
      const empty = await s.store.stats();
      const { id } = await s.register();
      await s.emit();
      await s.remove(id);
      await s.tidy();
      assert.deepEqual(await s.store.stats(), empty);
      await s.emit();
      await s.tidy();
      assert.deepEqual(await s.store.stats(), empty);
    },
    { retention: { keepMs: 0, events: 10 } },
  );
}
