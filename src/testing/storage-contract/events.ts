/** Appending events: which webhooks get a delivery, and what is stored. */

import assert from "node:assert/strict";
import { listIds, only, overwriteDeep, repeat } from "./assertions.js";
import type { DeclareTest, Scenario } from "./fixture.js";

const AWKWARD_TEXTS = [
  "",
  "line\r\nbreaks\u2028and\u2029others\u0085",
  "NUL \u0000, BOM \ufeff, DEL \u007f, non-character \uffff",
  "Grüße, 日本語, עברית, e\u0301 is not \u00e9, \u{1F469}\u200d\u{1F52C}",
  '{"n":1234567890123456789,"x":1e400,"list":[],"object":{},"slash":"\\/","quote":"\\""}',
  "%s %d $1 $& ' \" ` \\ --",
  "\ud800 alone, \udc00 too, and \ufffd",
  `${"0123456789abcdef".repeat(16_383)}\u{1F600}\u{1F600}é`.padEnd(262_144, "-"),
];

/** Emits an event and returns the ids of the webhooks that get a delivery. */
async function emitAndListReceivers(s: Scenario, fields: Parameters<Scenario["emit"]>[0]): Promise<string[]> {
  const { ids } = await s.emit(fields);
  const deliveries = await Promise.all(ids.map((id) => s.store.getDelivery(id)));
  return deliveries.flatMap((delivery) => (delivery ? [delivery.webhookId] : [])).sort();
}

/** An event gets one delivery for each webhook that subscribes to it when it is stored. */
export function testFanOut(it: DeclareTest): void {
  it("an event gets one delivery, due now, for each ENABLED webhook of its account", async (s) => {
    const webhooks = [await s.register(), await s.register()];
    await s.register({ status: "DISABLED" });
    await s.register({ account: "hospital" });
    const event = s.buildEvent();
    const response = await s.append(event);
    assert.ok(response.result === "stored");
    assert.deepEqual(response.deliveries.map(({ webhookId }) => webhookId).sort(), listIds(webhooks));
    for (const { id, webhookId } of response.deliveries) {
      assert.equal(id, `${webhookId}.${event.id}`);
      assert.deepEqual(await s.readDelivery(id), {
        id,
        webhookId,
        eventId: event.id,
        type: event.type,
        subject: null,
        tags: [],
        state: "pending",
        reason: null,
        createdAt: s.now(),
        startedAt: null,
        step: 0,
        isInFlight: false,
        dueAt: s.now(),
        endedAt: null,
        attempts: [],
      });
    }
    assert.deepEqual(listIds(await s.claim()), listIds(response.deliveries));
  });

  it("an event goes to the webhooks that subscribe to its type when it is appended", async (s) => {
    const all = await s.register();
    const star = await s.register({ eventTypes: ["*"] });
    const prefix = await s.register({ eventTypes: ["patient.*"] });
    const exact = await s.register({ eventTypes: ["condition.created", "patient.created"] });
    assert.deepEqual(
      await emitAndListReceivers(s, { type: "patient.updated" }),
      listIds([all, star, prefix]),
    );
    assert.deepEqual(
      await emitAndListReceivers(s, { type: "patient.created" }),
      listIds([all, star, prefix, exact]),
    );
    assert.deepEqual(await emitAndListReceivers(s, { type: "patients.created" }), listIds([all, star]));
    await s.update(prefix.id, { eventTypes: ["observation.*"] });
    await s.update(all.id, { status: "DISABLED" });
    assert.deepEqual(await emitAndListReceivers(s, { type: "patient.updated" }), listIds([star]));
    await s.update(all.id, { status: "ENABLED" });
    assert.deepEqual(await emitAndListReceivers(s, { type: "patient.updated" }), listIds([all, star]));
  });

  it("an append with a claim leases what that claim would lease, or nothing", async (s) => {
    await repeat(3, () => s.register());
    const { ids: waiting } = await s.emit();
    const request = s.buildClaimRequest({ room: { fast: 0, slow: 4 } });
    const response = await s.append(s.buildEvent(), { claim: request });
    assert.ok(response.result === "stored");
    const { claims, nextAt } = response.claimed ?? { claims: [], nextAt: s.now() };
    assert.ok(claims.length === 0 || claims.length === 4);
    assert.ok(claims.every(({ token }) => token === request.token));
    assert.ok(nextAt !== null && nextAt <= s.now(), "there was no room for all");
    const rest = await s.claim({ by: s.peer });
    const all = [...waiting, ...response.deliveries.map(({ id }) => id)].sort();
    assert.deepEqual(listIds([...claims, ...rest]), all);
    for (const claim of claims) assert.equal(await s.deliver(claim), "settled");
  });
}

/** The result of an append says how many webhooks the account has. */
export function testWebhookCounts(it: DeclareTest): void {
  /** Appends an event, which must be stored or known. Returns the count of webhooks. */
  const appendAndCount = async (s: Scenario, ...args: Parameters<Scenario["append"]>): Promise<number> => {
    const response = await s.append(...args);
    assert.ok(response.result !== "conflict");
    return response.webhooks;
  };

  it("an append counts the webhooks of its account, whatever their status and types", async (s) => {
    assert.equal(await appendAndCount(s, s.buildEvent()), 0);
    const one = await s.register({ eventTypes: ["consent.*"] });
    assert.equal(await appendAndCount(s, s.buildEvent()), 1);
    await s.register();
    await s.register({ status: "DISABLED" });
    await s.register({ account: "hospital" });
    assert.equal(await appendAndCount(s, s.buildEvent()), 3);
    assert.equal(await appendAndCount(s, s.buildEvent({ account: "Clinic" })), 0);
    assert.equal(await appendAndCount(s, s.buildEvent({ account: "hospital" })), 1);
    assert.equal(await appendAndCount(s, s.buildEvent({ type: "webhook.test" }), { webhookId: one.id }), 3);
    await s.update(one.id, { status: "DISABLED" });
    assert.equal(await appendAndCount(s, s.buildEvent()), 3);
    await s.remove(one.id);
    assert.equal(await appendAndCount(s, s.buildEvent()), 2);
  });

  it("an append counts the webhooks as they are now, also for a duplicate and in another process", async (s) => {
    const event = s.buildEvent();
    assert.equal(await appendAndCount(s, event), 0);
    await s.register();
    const second = s.buildEvent();
    assert.equal(await appendAndCount(s, second), 1);
    await s.createWebhook(s.buildWebhook(), { by: s.peer });
    for (const by of [s.store, s.peer]) {
      assert.equal(await appendAndCount(s, event, { by }), 2);
      assert.equal(await appendAndCount(s, second, { by }), 2);
      assert.equal(await appendAndCount(s, s.buildEvent(), { by }), 2);
    }
    const batch = s.buildEvent();
    const counts = await s.callConcurrently(8, (by) => appendAndCount(s, batch, { by }));
    assert.deepEqual(new Set(counts), new Set([2]));
  });
}

/** An event is returned exactly as it was stored. */
export function testPayloads(it: DeclareTest): void {
  it("a payload is returned character by character as it was stored", async (s) => {
    await s.register();
    for (const payload of AWKWARD_TEXTS) {
      const { event } = await s.emit({ payload, digest: `digest of ${payload.slice(0, 20)}` });
      const claim = only(await s.claim());
      assert.deepEqual(claim.event, event);
      await s.deliver(claim);
    }
  });

  it("mutating an event that was passed in or returned does not change the stored one", async (s) => {
    await s.register();
    const event = s.buildEvent();
    const expected = structuredClone(event);
    const response = await s.append(event);
    assert.ok(response.result === "stored");
    const { deliveries } = structuredClone(response);
    overwriteDeep(event);
    overwriteDeep(response);
    const again = await s.append(expected);
    assert.ok(again.result === "duplicate");
    assert.deepEqual(again.deliveries, deliveries);
    overwriteDeep(again);
    const third = await s.append(expected, { by: s.peer });
    assert.ok(third.result === "duplicate");
    assert.deepEqual(third.deliveries, deliveries);
    const claim = only(await s.claim());
    assert.deepEqual(claim.event, expected);
    await s.postpone(claim, 0);
    overwriteDeep(claim);
    assert.deepEqual(only(await s.claim()).event, expected);
  });
}
