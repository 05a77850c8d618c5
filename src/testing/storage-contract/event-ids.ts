/** Event ids: an event that is appended again is not stored again. */

import assert from "node:assert/strict";
import { listIds, only } from "./assertions.js";
import { HOUR_MS, REMEMBER_EVENTS_MS } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** A storage remembers an id for `rememberMs`, and as long as it keeps the event. */
export function testEventIds(it: DeclareTest): void {
  it("appending an event id again adds nothing and returns the first deliveries", async (s) => {
    await s.register();
    const { event, ids } = await s.emit();
    await s.register();
    await s.deliver(only(await s.claim()));
    for (const wait of [0, REMEMBER_EVENTS_MS - 1]) {
      await s.advance(wait);
      const again = await s.append({ ...event, payload: "is not compared" }, { by: s.peer });
      assert.ok(again.result === "duplicate");
      assert.deepEqual(listIds(again.deliveries), ids);
    }
    assert.deepEqual(await s.claim(), []);
    const { events, pending } = await s.store.stats();
    assert.deepEqual({ events, pending }, { events: 1, pending: 0 });
  });

  it("the same event id with another digest is a conflict and adds nothing", async (s) => {
    await s.register();
    const { event } = await s.emit();
    const before = await s.store.stats();
    assert.equal((await s.append({ ...event, digest: "other" })).result, "conflict");
    assert.deepEqual(await s.store.stats(), before);
    assert.equal((await s.append(event)).result, "duplicate");
  });

  it("the same event id in another account is another event", async (s) => {
    await s.register();
    await s.register({ account: "hospital" });
    const { event } = await s.emit();
    const { ids } = await s.emit({ ...event, account: "hospital", digest: "other" });
    assert.equal(ids.length, 1);
    assert.equal((await s.store.stats()).events, 2);
  });

  it("an event id is remembered for rememberMs even if no webhook received the event", async (s) => {
    const event = s.buildEvent();
    const stored = await s.append(event);
    assert.ok(stored.result === "stored");
    assert.deepEqual(stored.deliveries, []);
    assert.equal((await s.store.stats()).events, 0);
    await s.register();
    await s.advance(REMEMBER_EVENTS_MS - 1);
    assert.equal((await s.append(event)).result, "duplicate");
    assert.equal((await s.append({ ...event, digest: "other" })).result, "conflict");
    await s.advance(1);
    const forgotten = await s.append({ ...event, digest: "other" });
    assert.ok(forgotten.result === "stored");
    assert.equal(forgotten.deliveries.length, 1);
  });

  it(
    "an event id is remembered beyond rememberMs while its event is stored",
    async (s) => {
      await s.register();
      await s.register();
      const { event, ids } = await s.emit();
      const [first, second] = await s.claim();
      assert.ok(first && second);
      await s.deliver(first);
      await s.retry(second, 8 * HOUR_MS);
      await s.advance(REMEMBER_EVENTS_MS + HOUR_MS);
      await s.tidy();
      const again = await s.append(event);
      assert.ok(again.result === "duplicate");
      assert.deepEqual(listIds(again.deliveries), [...ids].sort());
      assert.equal((await s.append({ ...event, digest: "other" })).result, "conflict");
      assert.equal((await s.store.stats()).pending, 1);
    },
    { retention: { keepMs: 0, events: 10 } },
  );

  it("concurrent appends of one event id store one event", async (s) => {
    await s.register();
    await s.register();
    const event = s.buildEvent();
    const responses = await s.callConcurrently(20, (by) => s.append(event, { by }));
    const stored = responses.filter(({ result }) => result === "stored");
    assert.equal(stored.length, 1);
    const ids = responses.map((response) =>
      response.result === "conflict" ? [] : listIds(response.deliveries),
    );
    assert.equal(new Set(ids.map(String)).size, 1);
    const { events, pending } = await s.store.stats();
    assert.deepEqual({ events, pending }, { events: 1, pending: 2 });
  });
}
