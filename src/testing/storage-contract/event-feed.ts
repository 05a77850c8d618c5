/** The deliveries of a webhook in the order of their creation, for endpoints that catch up. */

import assert from "node:assert/strict";
import type { WebhookStore } from "../../webhooks/store.js";
import { listIds } from "./assertions.js";
import { SECOND_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";
import { createBusyAccount, emitMany, LOG_LENGTH } from "./long-logs.js";

interface FeedQuery {
  webhookId: string;
  after?: string | undefined;
  since?: number;
  limit?: number;
  by?: WebhookStore;
}

/** Reads from a place to the end. Returns the ids, each place, and where to continue. */
async function readFeed(s: Scenario, { webhookId, since = 0, limit = 2, ...query }: FeedQuery) {
  const { by = s.store } = query;
  const ids: string[] = [];
  const places: string[] = [];
  let { after } = query;
  for (let pages = 0; pages < 1_000; pages++) {
    const page = await by.readDeliveriesAfter({ webhookId, after, since, until: s.now(), limit });
    assert.ok(page.rows.length <= limit);
    ids.push(...page.rows.map(({ delivery }) => delivery.id));
    places.push(...page.rows.map(({ cursor }) => cursor));
    after = page.after;
    if (!page.hasMore) return { ids, places, after };
  }
  return assert.fail("the feed does not end");
}

/** Emits an event, and returns the id of its delivery to the webhook. */
async function emitTo(s: Scenario, webhookId: string, fields: object = {}): Promise<string> {
  const { event } = await s.emit(fields);
  await s.advance(SECOND_MS);
  return `${webhookId}.${event.id}`;
}

/** Whoever continues at a cursor misses nothing and gets nothing twice. */
export function testEventFeed(it: DeclareTest): void {
  it("deliveries are read oldest first, whatever their state, and to the end of every page size", async (s) => {
    const { id } = await s.register();
    await s.register();
    const wanted: string[] = [];
    for (let count = 0; count < 5; count++) wanted.push(await emitTo(s, id));
    const [claim] = (await s.claim()).filter(({ webhook }) => webhook.id === id);
    assert.ok(claim);
    await s.fail(claim);
    for (const limit of [1, 2, 5, 100])
      assert.deepEqual((await readFeed(s, { webhookId: id, limit, by: s.peer })).ids, wanted);
  });

  it("a reader continues at the cursor of any delivery, days later and in another process", async (s) => {
    const { id } = await s.register();
    const wanted = [await emitTo(s, id), await emitTo(s, id), await emitTo(s, id)];
    const { places, after } = await readFeed(s, { webhookId: id });
    assert.equal(after, places.at(-1));
    for (const [index, place] of places.entries())
      assert.deepEqual((await readFeed(s, { webhookId: id, after: place })).ids, wanted.slice(index + 1));
    const end = await readFeed(s, { webhookId: id, after });
    assert.deepEqual([end.ids, end.after], [[], after]);
    const later = [await emitTo(s, id), await emitTo(s, id)];
    assert.deepEqual((await readFeed(s, { webhookId: id, after: end.after, by: s.peer })).ids, later);
  });

  it("deliveries created at `until` or later, or before `since`, are left for other calls", async (s) => {
    const { id } = await s.register();
    await emitTo(s, id);
    const since = s.now();
    const wanted = await emitTo(s, id);
    const { event: tooNew } = await s.emit();
    const first = await readFeed(s, { webhookId: id, since });
    assert.deepEqual(first.ids, [wanted]);
    await s.advance(SECOND_MS);
    const { ids } = await readFeed(s, { webhookId: id, since, after: first.after });
    assert.deepEqual(ids, [`${id}.${tooNew.id}`]);
  });

  it("deliveries of the same millisecond, of other webhooks and of resends are kept apart", async (s) => {
    const { id } = await s.register({ eventTypes: ["patient.*"] });
    const { id: other } = await s.register({ eventTypes: ["consent.*"] });
    await emitMany(s, "clinic", 7);
    await s.emit({ type: "consent.created" });
    await s.advance(SECOND_MS);
    const [claim] = await s.claim();
    assert.ok(claim);
    await s.fail(claim);
    const resent = await s.resend(claim.id);
    await s.advance(SECOND_MS);
    const [mine, others] = await Promise.all([
      readFeed(s, { webhookId: id, limit: 3 }),
      readFeed(s, { webhookId: other }),
    ]);
    const together = [...mine.ids, ...others.ids];
    assert.equal(new Set(together).size, 9);
    assert.ok(resent !== undefined && together.includes(resent));
    assert.ok(mine.ids.every((delivery) => delivery.startsWith(id)));
  });

  it("a long log is read in bounded calls that miss nothing", async (s) => {
    const { rareId, idleId, busyId, oldestId } = await createBusyAccount(s, "clinic", LOG_LENGTH);
    assert.deepEqual((await readFeed(s, { webhookId: rareId, limit: 100 })).ids, [oldestId]);
    assert.deepEqual((await readFeed(s, { webhookId: idleId, limit: 100 })).ids, []);
    const { ids } = await readFeed(s, { webhookId: busyId, limit: 100 });
    assert.equal(new Set(ids).size, LOG_LENGTH);
  });

  it("an unknown webhook has no deliveries, and a cursor that no call has given is refused", async (s) => {
    const { id } = await s.register();
    const wanted = await emitTo(s, id);
    const { id: removed } = await s.register();
    await s.remove(removed);
    for (const webhookId of [removed, "6f1c7f6e-3f0b-5c3a-9d53-6f2f1f3c7b10"])
      assert.deepEqual((await readFeed(s, { webhookId })).ids, []);
    for (const after of ["", "x", "-1", "1.5.", "' OR 1=1", "9".repeat(300), "../clinic", "\u0000"])
      await assert.rejects(async () => readFeed(s, { webhookId: id, after }), {
        code: "invalid_argument",
        field: "cursor",
      });
    assert.deepEqual(listIds([{ id: wanted }]), (await readFeed(s, { webhookId: id })).ids);
  });
}
