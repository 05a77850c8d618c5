/** Settling rows: removed, retried or parked. */

import assert from "node:assert/strict";
import {
  assertNothingDue,
  buildEvents,
  claimOne,
  type DeclareSourceTest,
  ROW_LEASE_MS,
  SHORT_MS,
} from "./fixture.js";

/** `remove` removes rows by key. */
export function testRemoving(it: DeclareSourceTest): void {
  it("a removed row is gone, also after its lease, and unknown keys are ignored", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(buildEvents(2));
    const claims = await source.claim({ limit: 2, leaseMs: SHORT_MS });
    const [first, second] = claims.map(({ key }) => key);
    await source.remove([first ?? ""]);
    await source.remove([]);
    await source.remove([first ?? "", `${second}x`, "", "-1", "999999999"]);
    await wait(SHORT_MS + 50);
    assert.equal((await claimOne(source, SHORT_MS)).key, second);
    await wait(SHORT_MS + 50);
    await source.remove([second ?? ""]);
    await assertNothingDue(source);
    assert.equal((await source.stats()).waiting, 0);
  });

  it("many rows are removed at once, and no others", async ({ source, add }) => {
    await add(buildEvents(37));
    const claims = await source.claim({ limit: 37, leaseMs: ROW_LEASE_MS });
    const keys = claims.slice(0, 4).map(({ key }) => key);
    await source.remove(claims.slice(4).map(({ key }) => key));
    assert.equal((await source.stats()).waiting, keys.length);
  });
}

/** `retry` makes a row due again. */
export function testRetrying(it: DeclareSourceTest): void {
  it("a retried row is due after its delay and not before", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(buildEvents(1));
    const { key, claims } = await claimOne(source);
    await source.retry({ key, claims, delayMs: SHORT_MS, isUnsure: true });
    await assertNothingDue(source);
    await wait(SHORT_MS + 50);
    const again = await claimOne(source);
    assert.deepEqual([again.claims, again.retries], [2, 1]);
    assert.ok(again.unsureMs !== null && again.unsureMs >= SHORT_MS);
  });

  it("a row that was certainly not emitted has no unsureMs in its next claim", async ({ source, add }) => {
    await add(buildEvents(1));
    const { key, claims } = await claimOne(source);
    await source.retry({ key, claims, delayMs: 0, isUnsure: false });
    const again = await claimOne(source);
    assert.deepEqual([again.retries, again.unsureMs], [1, null]);
  });

  it("retry and park change nothing after another claim", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(buildEvents(1));
    const { key, claims } = await claimOne(source, SHORT_MS);
    await wait(SHORT_MS + 50);
    await claimOne(source);
    await source.retry({ key, claims, delayMs: 0, isUnsure: false });
    await source.park({ key, claims, reason: "late" });
    await assertNothingDue(source);
    assert.deepEqual(await source.parked({ limit: 10 }), []);
  });
}

/** `park` sets a row aside until `release` or `remove`. */
export function testParking(it: DeclareSourceTest): void {
  it("a parked row is listed with its reason and not claimed, and release makes it due", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(buildEvents(1));
    const { key, id, claims, addedAt } = await claimOne(source, SHORT_MS);
    await source.park({ key, claims, reason: 'unknown_event_type: it\'s \\ a "typing" error' });
    await source.retry({ key, claims, delayMs: 0, isUnsure: false });
    await wait(SHORT_MS + 50);
    await assertNothingDue(source);
    const [parked, ...others] = await source.parked({ limit: 10 });
    assert.deepEqual(others, []);
    assert.ok(parked);
    const { parkedAt, ...rest } = parked;
    assert.deepEqual(rest, { key, id, addedAt, reason: 'unknown_event_type: it\'s \\ a "typing" error' });
    assert.ok(parkedAt >= addedAt);
    await source.release([key, `${key}x`]);
    const released = await claimOne(source);
    assert.equal(released.unsureMs, null);
    assert.equal(released.claims - 1, released.retries, "no claim before the release counts as a crash");
    assert.deepEqual(await source.parked({ limit: 10 }), []);
  });

  it("releasing a row that is not parked changes nothing", async ({ source, add }) => {
    await add(buildEvents(1));
    const { key } = await claimOne(source);
    await source.release([key]);
    await assertNothingDue(source);
  });

  it("parked rows are listed in the order in which they were parked, and can be removed", async ({
    source,
    add,
    wait,
  }) => {
    await add(buildEvents(3));
    const rows = await source.claim({ limit: 3, leaseMs: ROW_LEASE_MS });
    const order = [rows[2], rows[0], rows[1]].filter((row) => row !== undefined);
    for (const { key, claims } of order) {
      await source.park({ key, claims, reason: "crashed" });
      await wait(5);
    }
    const keys = order.map(({ key }) => key);
    const listed = await source.parked({ limit: 2 });
    assert.deepEqual(
      listed.map(({ key }) => key),
      keys.slice(0, 2),
    );
    await source.remove(keys);
    assert.deepEqual(await source.stats(), { waiting: 0, parked: 0, oldestMs: null });
  });
}

/** `stats` counts waiting and parked rows. */
export function testRowCounts(it: DeclareSourceTest): void {
  it("stats() counts waiting and parked rows and returns the age of the oldest waiting row", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(buildEvents(1));
    const { key, claims } = await claimOne(source);
    await wait(SHORT_MS);
    await add(buildEvents(2));
    const before = await source.stats();
    assert.deepEqual([before.waiting, before.parked], [3, 0]);
    assert.ok(before.oldestMs !== null && before.oldestMs >= SHORT_MS);
    await source.park({ key, claims, reason: "refused" });
    const after = await source.stats();
    assert.deepEqual([after.waiting, after.parked], [2, 1]);
    assert.ok(
      after.oldestMs !== null && after.oldestMs < before.oldestMs + SHORT_MS,
      "parked rows do not age",
    );
  });
}
