/** Erasing accounts and events: what is erased is found by no call, and nothing else is touched. */

import assert from "node:assert/strict";
import type { ErasedRecords, EventRecord, WebhookStore } from "../../webhooks/store.js";
import { only, repeat } from "./assertions.js";
import { DAY_MS, HOUR_MS, LEASE_MS, MINUTE_MS, PER_ENDPOINT } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";
import { addEntries, emitMany, readAuditLog } from "./long-logs.js";
import { SIMILAR_NAMES } from "./similar-names.js";

/** More calls than any storage needs for the accounts of these tests. */
const MAX_CALLS = 2_000;

/** Erases an account call by call, by both processes in turn. Returns the sums and the calls. */
async function eraseAll(
  s: Scenario,
  account: string,
  between: () => Promise<unknown> = async () => {},
): Promise<ErasedRecords & { calls: number }> {
  const sums = { webhooks: 0, events: 0, deliveries: 0, auditEntries: 0, rememberedIds: 0 };
  let cursor: string | undefined;
  for (let calls = 1; calls <= MAX_CALLS; calls++) {
    const { erased, next } = await s.alternate(calls).eraseAccount({ account, cursor, now: s.now() });
    for (const name of Object.keys(sums) as (keyof ErasedRecords)[]) sums[name] += erased[name];
    if (next === null) return { ...sums, calls };
    cursor = next;
    await between();
  }
  return assert.fail("erasing does not end");
}

const eraseEvents = (
  s: Scenario,
  ids: string[],
  { account = "clinic", by = s.store }: { account?: string; by?: WebhookStore } = {},
) => by.eraseEvents({ account, ids, now: s.now() });

const readCounts = async ({ store }: Scenario) => {
  const { webhooks, events, pending, leased, due, ended } = await store.stats();
  return { webhooks, events, pending, leased, due, ended };
};

/** Adds entries to the audit log of an account. Returns how many, for storages that keep one. */
async function addAudit(s: Scenario, account: string, count: number): Promise<number> {
  await addEntries(s, s.store, { accounts: [account], count, keep: 100 });
  return s.store.addAuditEntries === undefined ? 0 : count;
}

const NOTHING = { webhooks: 0, events: 0, pending: 0, leased: 0, due: 0, ended: 0 };

/** An account with records of every kind and deliveries in every state. */
async function fillAccount(s: Scenario, account: string): Promise<EventRecord[]> {
  const webhook = s.buildWebhook({ account });
  const idempotency = { key: `key of ${account}`, digest: "digest", expiresAt: s.now() + DAY_MS };
  await s.store.createWebhook(s.buildCreation(webhook, idempotency));
  await s.register({ account, status: "DISABLED" });
  const events = (await repeat(4, () => s.emit({ account, subject: "Patient/1" }))).map(({ event }) => event);
  const claims = (await s.claim()).filter((claim) => claim.webhook.account === account);
  const [first, second, third] = claims;
  assert.ok(first && second && third);
  await s.deliver(first);
  await s.fail(second);
  await s.retry(third, HOUR_MS);
  assert.ok(await s.resend(first.id));
  await addAudit(s, account, 3);
  return events;
}

/** Declares the tests of erasing accounts. */
export function testAccountErasure(it: DeclareTest): void {
  it("an erased account leaves no record of any kind, and the other account all of them", async (s) => {
    const gone = await fillAccount(s, "clinic");
    const kept = await fillAccount(s, "hospital");
    const auditEntries = s.store.addAuditEntries === undefined ? 0 : 3;
    const { calls: _, ...erased } = await eraseAll(s, "clinic");
    // Four deliveries, and the resent one.
    assert.deepEqual(erased, { webhooks: 2, events: 4, deliveries: 5, auditEntries, rememberedIds: 1 });
    assert.deepEqual((await s.store.listWebhooks({ account: "clinic", limit: 5 })).webhooks, []);
    for (const { id } of gone) assert.equal(await s.store.getEvent({ account: "clinic", id }), undefined);
    assert.deepEqual(await readAuditLog(s.peer, "clinic"), []);
    for (const event of kept) assert.equal((await s.store.getEvent(event))?.payload, event.payload);
    assert.equal((await readAuditLog(s.peer, "hospital")).length, auditEntries);
    await s.tidy();
    const { webhooks, events, pending, ended } = await s.store.stats();
    assert.deepEqual({ webhooks, events, pending, ended }, { webhooks: 2, events: 4, pending: 3, ended: 2 });
  });

  it("an erased account that is used again finds nothing of its idempotency keys and ids", async (s) => {
    const idempotency = { key: "key", digest: "digest", expiresAt: s.now() + DAY_MS };
    const before = s.buildWebhook();
    await s.store.createWebhook(s.buildCreation(before, idempotency));
    const { event } = await s.emit();
    await s.deliver(only(await s.claim()));
    await eraseAll(s, "clinic");
    const again = s.buildWebhook();
    const created = await s.store.createWebhook(
      s.buildCreation(again, { ...idempotency, digest: "another" }),
    );
    assert.equal(created.result, "created");
    const other = { ...event, digest: "another", payload: '{"event":"another"}' };
    const stored = await s.append(other, { by: s.peer });
    assert.equal(stored.result, "stored");
    assert.deepEqual(only(await s.claim()).event, other);
  });
}

/** Declares the tests of erasing step by step, and while deliveries are in flight. */
export function testErasureSteps(it: DeclareTest): void {
  it("remembered ids of events that were freed or that no webhook received are erased", async (s) => {
    const ids = await repeat(3, async () => (await s.emit()).event);
    const { rememberedIds } = await eraseAll(s, "clinic");
    assert.deepEqual(rememberedIds, 3);
    for (const event of ids) assert.equal((await s.append({ ...event, digest: "new" })).result, "stored");
  });

  it("deliveries in flight while their account is erased settle as gone", async (s) => {
    await s.register();
    await repeat(3, () => s.emit());
    const [first, second, third] = await s.claim();
    assert.ok(first && second && third);
    await eraseAll(s, "clinic", () => s.claimWithNextAt());
    assert.equal(await s.deliver(first), "gone");
    assert.equal(await s.fail(second), "gone");
    assert.equal(await s.retry(third, MINUTE_MS), "gone");
    await s.advance(2 * LEASE_MS);
    assert.deepEqual(await s.claim(), []);
    assert.deepEqual(await readCounts(s), NOTHING);
  });

  it("an erasure that was interrupted goes on with the next one, by any process", async (s) => {
    await repeat(3, () => s.register());
    await emitMany(s, "clinic", 400);
    const first = await s.store.eraseAccount({ account: "clinic", now: s.now() });
    assert.notEqual(first.next, null);
    const rest = await eraseAll(s, "clinic");
    assert.deepEqual(first.erased.webhooks + rest.webhooks, 3);
    assert.deepEqual(first.erased.events + rest.events, 400);
    assert.ok(rest.calls > 2, "one call must not erase everything");
    assert.equal((await eraseAll(s, "clinic")).events, 0);
    await s.tidy();
    assert.deepEqual(await readCounts(s), NOTHING);
  });
}

/** Declares the tests of erasing accounts that are not the one that is meant. */
export function testForeignErasure(it: DeclareTest): void {
  it("erasing an account erases none of those with similar names", async (s) => {
    let added = 0;
    for (const account of SIMILAR_NAMES) {
      await s.register({ account });
      await s.emit({ account });
      added += await addAudit(s, account, 1);
    }
    for (const [index, account] of SIMILAR_NAMES.entries()) {
      const { webhooks, events, auditEntries } = await eraseAll(s, account);
      assert.deepEqual([account, webhooks, events], [account, 1, 1]);
      added -= auditEntries;
      assert.equal((await s.store.stats()).webhooks, SIMILAR_NAMES.length - index - 1);
    }
    assert.deepEqual(added, 0);
  });

  it("erasing an account without records erases nothing", async (s) => {
    await s.register({ account: "hospital" });
    for (const account of ["clinic", "__proto__", "constructor", "hospita", "hospital2", "%", "_", "*"]) {
      const { calls: _, ...erased } = await eraseAll(s, account);
      assert.deepEqual(new Set(Object.values(erased)), new Set([0]));
    }
    assert.equal((await s.store.stats()).webhooks, 1);
  });
}

/** Declares the tests of erasing events. */
export function testEventErasure(it: DeclareTest): void {
  it("an erased event leaves no delivery, and its endpoint goes on with the others", async (s) => {
    const { id: webhookId } = await s.register();
    const { event } = await s.emit({ subject: "Patient/1" });
    const { event: other } = await s.emit();
    const erased = await eraseEvents(s, [event.id, event.id, other.id.replace(/^./, "f")]);
    assert.deepEqual(erased, { events: 1, deliveries: 1, left: [] });
    assert.equal(await s.store.getEvent(event), undefined);
    const { deliveries } = await s.store.listDeliveries({ webhookId, limit: 5 });
    assert.equal(only(deliveries).eventId, other.id);
    assert.equal(only(await s.claim()).event.id, other.id);
    const stats = await s.store.deliveryStats(webhookId, s.now());
    assert.deepEqual([stats?.pending, stats?.delivered, stats?.failed], [1, 0, 0]);
  });

  it("erasing events with deliveries in every state keeps the counts of their webhook right", async (s) => {
    const { id: webhookId } = await s.register();
    const events = (await repeat(4, () => s.emit())).map(({ event }) => event);
    const [first, second, third] = await s.claim();
    assert.ok(first && second && third);
    await s.deliver(first);
    await s.fail(second);
    assert.ok(await s.resend(first.id));
    const ids = events.map(({ id }) => id);
    assert.deepEqual(await eraseEvents(s, ids, { by: s.peer }), { events: 4, deliveries: 5, left: [] });
    assert.equal(await s.deliver(third), "gone");
    await s.claimWithNextAt();
    const stats = await s.store.deliveryStats(webhookId, s.now());
    assert.deepEqual(
      [stats?.pending, stats?.delivered, stats?.failed, stats?.withheld, stats?.nextDueAt],
      [0, 0, 0, 0, null],
    );
    assert.deepEqual(await readCounts(s), { ...NOTHING, webhooks: 1 });
    await s.advance(2 * LEASE_MS);
    assert.deepEqual(await s.claim(), []);
  });

  it("erasing deliveries in flight frees the slots of their endpoint", async (s) => {
    await s.register();
    await repeat(PER_ENDPOINT, () => s.emit());
    const claims = await s.claim();
    assert.equal(claims.length, PER_ENDPOINT);
    const { ids } = await s.emit();
    assert.deepEqual(await s.claim(), []);
    await eraseEvents(
      s,
      claims.map(({ event }) => event.id),
    );
    assert.equal(only(await s.claim()).id, only(ids));
    for (const claim of claims) assert.equal(await s.retry(claim, MINUTE_MS), "gone");
    assert.equal((await s.store.stats()).leased, 1);
  });
}

/** Declares the tests of events that come again, are of another account, or are many. */
export function testErasedEvents(it: DeclareTest): void {
  it("emitting an erased event again brings nothing back while its id is remembered", async (s) => {
    await s.register();
    const { event } = await s.emit();
    await eraseEvents(s, [event.id]);
    assert.equal((await s.append(event)).result, "duplicate");
    assert.equal((await s.append({ ...event, digest: "another" })).result, "conflict");
    assert.deepEqual(await s.claim(), []);
    await s.advance(DAY_MS);
    await s.tidy();
    assert.equal((await s.append({ ...event, digest: "another" })).result, "stored");
  });

  it("events of another account are not erased by their ids", async (s) => {
    await s.register({ account: "hospital" });
    const { event } = await s.emit({ account: "hospital" });
    for (const account of ["clinic", "", "hospital ", "__proto__"])
      assert.deepEqual(await eraseEvents(s, [event.id], { account }), { events: 0, deliveries: 0, left: [] });
    assert.equal((await s.store.getEvent(event))?.payload, event.payload);
  });

  it("erasing a hundred events of many deliveries takes several calls and ends", async (s) => {
    await repeat(12, () => s.register());
    const events = await repeat(100, async () => (await s.emit()).event);
    let left: readonly string[] = events.map(({ id }) => id);
    let calls = 0;
    let deliveries = 0;
    while (left.length > 0 && calls < 100) {
      const erased = await eraseEvents(s, [...left], { by: s.alternate(calls) });
      left = erased.left;
      deliveries += erased.deliveries;
      calls += 1;
    }
    assert.deepEqual(left, []);
    assert.deepEqual(deliveries, 1_200);
    assert.ok(calls === 1 || calls > 3, "a storage with a bound needs several calls");
    await s.claimWithNextAt();
    assert.deepEqual(await readCounts(s), { ...NOTHING, webhooks: 12 });
  });
}
