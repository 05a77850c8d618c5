/** The counts of a storage, and its time. */

import assert from "node:assert/strict";
import { repeat } from "./assertions.js";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** `stats()` counts what is stored now. */
export function testStats(it: DeclareTest): void {
  it("stats() counts webhooks, events, deliveries and endpoints at every stage", async (s) => {
    const counted = async (store = s.store) => {
      const { bytes, ...counts } = await store.stats();
      assert.ok(bytes >= 4 * counts.events, "a storage counts at least its payloads");
      return counts;
    };
    const none = { ok: 0, failing: 0, warned: 0, disabled: 0 };
    const empty = { webhooks: 0, events: 0, pending: 0, leased: 0, ended: 0, due: 0, endpoints: none };
    assert.deepEqual(await counted(), empty);
    const { id } = await s.register();
    await s.register({ status: "DISABLED" });
    await repeat(3, () => s.emit({ payload: "four" }));
    assert.deepEqual(await counted(s.peer), {
      ...empty,
      webhooks: 2,
      events: 3,
      pending: 3,
      due: 3,
      endpoints: { ...none, ok: 1, disabled: 1 },
    });
    const [first, second] = await s.claim({ room: { slow: 2 } });
    assert.ok(first && second);
    const { leased, due: left } = await counted();
    assert.deepEqual({ leased, left }, { leased: 2, left: 1 });
    await s.deliver(first);
    await s.retry(second, HOUR_MS);
    const endpoints = { ...none, failing: 1, disabled: 1 };
    const counts = { webhooks: 2, events: 3, pending: 2, leased: 0, ended: 1, due: 1, endpoints };
    assert.deepEqual(await counted(), counts);
    await s.advance(HOUR_MS);
    assert.equal((await counted()).due, 2);
    const { failingSince } = await s.readWebhook(id);
    assert.ok(failingSince !== null);
    await s.settleHealthStep({ id, failingSince });
    assert.deepEqual((await counted()).endpoints, { ...none, warned: 1, disabled: 1 });
    await s.remove(id);
    await s.tidy();
    const remaining = { webhooks: 1, pending: 0, ended: 0, due: 0, endpoints: { ...none, disabled: 1 } };
    assert.deepEqual(await counted(), { ...counts, ...remaining });
  });
}

/** The storage's time follows a clock that only moves forward. */
export function testStorageTime(it: DeclareTest): void {
  it("the storage's time never moves backwards, and maxSleepMs is finite", async ({ store, advance }) => {
    const before = store.now();
    await advance(MINUTE_MS);
    assert.ok(Number.isFinite(before) && store.now() >= before);
    assert.ok(store.maxSleepMs > 0 && Number.isFinite(store.maxSleepMs));
  });

  it("setting the wall clock of a process does not change the storage's time", async (s) => {
    const before = s.store.now();
    for (const ms of [HOUR_MS, -HOUR_MS, 3_650 * DAY_MS]) {
      s.clock.setWallClock(before + ms);
      for (const binding of [s.store, s.peer]) {
        assert.ok(Math.abs(binding.now() - before) < MINUTE_MS);
      }
    }
  });
}
