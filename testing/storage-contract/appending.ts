/** The storage contract on events: fan-out, the memory of ids, and the payload. */

import assert from "node:assert/strict";
import { listed, listIds, only, times, vandalise } from "./lists.js";
import { type DeclareTest, HOUR_MS, REMEMBER_EVENTS_MS, RETENTION, type Scenario } from "./scenario.js";

const AWKWARD_TEXTS = [
  "",
  "line\r\nbreaks\u2028and\u2029others\u0085",
  "NUL \u0000, BOM \ufeff, DEL \u007f, non-character \uffff",
  "Grüße, 日本語, עברית, e\u0301 is not \u00e9, \u{1F469}\u200d\u{1F52C}",
  '{"n":1234567890123456789,"x":1e400,"list":[],"object":{},"slash":"\\/","quote":"\\""}',
  "%s %d $1 $& ' \" ` \\ --",
  `${"0123456789abcdef".repeat(16_383)}\u{1F600}\u{1F600}é`.padEnd(262_144, "-"),
];

/** Emits `fields` and resolves with the webhooks that get a delivery. */
async function receivers(
  { emit, store }: Scenario,
  fields: Parameters<Scenario["emit"]>[0],
): Promise<string[]> {
  const { ids } = await emit(fields);
  const deliveries = await Promise.all(ids.map((id) => store.getDelivery(id)));
  return deliveries.flatMap((delivery) => (delivery ? [delivery.webhookId] : [])).sort();
}

export function appending(declare: DeclareTest): void {
  declare("an event gets one delivery, due now, for each ENABLED webhook of its account", async (s) => {
    const webhooks = [await s.register(), await s.register()];
    await s.register({ status: "DISABLED" });
    await s.register({ account: "hospital" });
    const event = s.eventOf();
    const answer = await s.append(event);
    assert.ok(answer.result === "stored");
    assert.deepEqual(answer.deliveries.map(({ webhookId }) => webhookId).sort(), listIds(webhooks));
    for (const { id, webhookId } of answer.deliveries) {
      assert.equal(id, `${webhookId}.${event.id}`);
      assert.deepEqual(await s.delivery(id), {
        id,
        webhookId,
        eventId: event.id,
        type: event.type,
        state: "pending",
        reason: null,
        createdAt: s.now(),
        startedAt: null,
        step: 0,
        dueAt: s.now(),
        endedAt: null,
        attempts: [],
      });
    }
    assert.deepEqual(listIds(await s.claim()), listIds(answer.deliveries));
  });

  declare("an append that carries a claim leases what that would, or nothing", async (s) => {
    await times(3, () => s.register());
    const { ids: waiting } = await s.emit();
    const request = s.claimRequest({ room: { fast: 0, slow: 4 } });
    const answer = await s.append(s.eventOf(), { claim: request });
    assert.ok(answer.result === "stored");
    const { claims, nextAt } = answer.claimed ?? { claims: [], nextAt: s.now() };
    assert.ok(claims.length === 0 || claims.length === 4);
    assert.ok(claims.every(({ token }) => token === request.token));
    assert.ok(nextAt !== null && nextAt <= s.now(), "there was no room for all");
    const rest = await s.claim({ by: s.other });
    const all = [...waiting, ...answer.deliveries.map(({ id }) => id)].sort();
    assert.deepEqual(listIds([...claims, ...rest]), all);
    for (const claim of claims) assert.equal(await s.deliver(claim), "settled");
  });

  declare("an event goes to the webhooks that subscribe to its type at that moment", async (s) => {
    const all = await s.register();
    const star = await s.register({ eventTypes: ["*"] });
    const prefix = await s.register({ eventTypes: ["patient.*"] });
    const exact = await s.register({ eventTypes: ["condition.created", "patient.created"] });
    assert.deepEqual(await receivers(s, { type: "patient.updated" }), listIds([all, star, prefix]));
    assert.deepEqual(await receivers(s, { type: "patient.created" }), listIds([all, star, prefix, exact]));
    assert.deepEqual(await receivers(s, { type: "patients.created" }), listIds([all, star]));
    await s.update(prefix.id, { eventTypes: ["observation.*"] });
    await s.update(all.id, { status: "DISABLED" });
    assert.deepEqual(await receivers(s, { type: "patient.updated" }), listIds([star]));
    await s.update(all.id, { status: "ENABLED" });
    assert.deepEqual(await receivers(s, { type: "patient.updated" }), listIds([all, star]));
  });

  declare(
    "a test of one webhook goes to it alone, whatever it subscribes to, and nobody recovers it",
    async (s) => {
      const { id } = await s.register({ eventTypes: ["consent.*"] });
      const other = await s.register();
      const event = s.eventOf({ type: "webhook.test" });
      const answer = await s.append(event, { webhookId: id });
      assert.ok(answer.result === "stored");
      const delivery = only(answer.deliveries);
      assert.deepEqual(delivery, { id: `${id}.${event.id}`, webhookId: id });
      assert.equal((await s.append(event, { webhookId: id, by: s.other })).result, "duplicate");
      const record = await s.delivery(delivery.id);
      assert.deepEqual([record.state, record.type, record.dueAt], ["pending", "webhook.test", s.now()]);
      assert.deepEqual(await listed(s, { webhookId: id, type: "webhook.test" }), [record]);
      assert.equal(await s.resend(delivery.id), delivery.id);
      const claim = only(await s.claim());
      assert.deepEqual([claim.id, claim.event, claim.isExtra], [delivery.id, event, false]);
      assert.equal(await s.fail(claim), "settled");
      for (const webhookId of [id, other.id]) assert.equal((await s.recover(webhookId))?.count, 0);
      assert.equal(await s.resend(delivery.id), `${delivery.id}.1`);
      await s.deliver(only(await s.claim()));
      assert.deepEqual(await listed(s, { webhookId: other.id }), []);
      assert.deepEqual(
        (await listed(s, { webhookId: id })).map(({ state }) => state),
        ["delivered", "failed"],
      );
      await s.advance(RETENTION.ms);
      await s.tidy();
      const { events, ended } = await s.store.stats();
      assert.deepEqual({ events, ended }, { events: 0, ended: 0 });
    },
  );

  declare("a test of a webhook that is disabled, gone or another account's is not stored", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    const { id: foreign } = await s.register({ account: "hospital" });
    const before = await s.store.stats();
    for (const webhookId of [id, foreign, s.store.newWebhookId("clinic")]) {
      const answer = await s.append(s.eventOf(), { webhookId });
      assert.ok(answer.result === "stored");
      assert.deepEqual(answer.deliveries, []);
    }
    assert.deepEqual(await s.store.stats(), before);
    await s.update(id, { status: "ENABLED" });
    assert.equal((await s.recover(id))?.count, 0);
  });

  declare("a test of a webhook goes with it", async (s) => {
    const { id } = await s.register();
    const empty = await s.store.stats();
    await s.append(s.eventOf(), { webhookId: id });
    await s.deliver(only(await s.claim()));
    await s.append(s.eventOf(), { webhookId: id });
    await s.remove(id);
    await s.tidy();
    assert.deepEqual(await s.claim(), []);
    await s.advance(RETENTION.ms);
    await s.tidy();
    assert.deepEqual(await s.store.stats(), {
      ...empty,
      webhooks: 0,
      endpoints: empty.endpoints && { ...empty.endpoints, ok: 0 },
    });
  });

  declare("the payload comes back character by character", async (s) => {
    await s.register();
    for (const payload of AWKWARD_TEXTS) {
      const { event } = await s.emit({ payload, digest: `digest of ${payload.slice(0, 20)}` });
      const claim = only(await s.claim());
      assert.deepEqual(claim.event, event);
      await s.deliver(claim);
    }
  });

  declare("overwriting an event that was passed in or returned changes nothing", async (s) => {
    await s.register();
    const event = s.eventOf();
    const expected = structuredClone(event);
    const answer = await s.append(event);
    assert.ok(answer.result === "stored");
    const { deliveries } = structuredClone(answer);
    vandalise(event);
    vandalise(answer);
    const again = await s.append(expected);
    assert.ok(again.result === "duplicate");
    assert.deepEqual(again.deliveries, deliveries);
    vandalise(again);
    const third = await s.append(expected, { by: s.other });
    assert.ok(third.result === "duplicate");
    assert.deepEqual(third.deliveries, deliveries);
    const claim = only(await s.claim());
    assert.deepEqual(claim.event, expected);
    await s.putOff(claim, 0);
    vandalise(claim);
    assert.deepEqual(only(await s.claim()).event, expected);
  });

  declare("emitting an id again adds nothing and returns the first deliveries", async (s) => {
    await s.register();
    const { event, ids } = await s.emit();
    await s.register();
    await s.deliver(only(await s.claim()));
    for (const wait of [0, REMEMBER_EVENTS_MS - 1]) {
      await s.advance(wait);
      const again = await s.append({ ...event, payload: "is not compared" }, { by: s.other });
      assert.ok(again.result === "duplicate");
      assert.deepEqual(listIds(again.deliveries), ids);
    }
    assert.deepEqual(await s.claim(), []);
    const { events, pending } = await s.store.stats();
    assert.deepEqual({ events, pending }, { events: 1, pending: 0 });
  });

  declare("the same id with other content is a conflict and adds nothing", async (s) => {
    await s.register();
    const { event } = await s.emit();
    const before = await s.store.stats();
    assert.equal((await s.append({ ...event, digest: "other" })).result, "conflict");
    assert.deepEqual(await s.store.stats(), before);
    assert.equal((await s.append(event)).result, "duplicate");
  });

  declare("the same id in another account is another event", async (s) => {
    await s.register();
    await s.register({ account: "hospital" });
    const { event } = await s.emit();
    const { ids } = await s.emit({ ...event, account: "hospital", digest: "other" });
    assert.equal(ids.length, 1);
    assert.equal((await s.store.stats()).events, 2);
  });

  declare("an id is remembered without any webhook, and then forgotten", async (s) => {
    const event = s.eventOf();
    const stored = await s.append(event);
    assert.ok(stored.result === "stored");
    assert.deepEqual(stored.deliveries, []);
    assert.equal((await s.store.stats()).events, 0);
    await s.register();
    await s.advance(REMEMBER_EVENTS_MS - 1);
    assert.equal((await s.append(event)).result, "duplicate");
    assert.equal((await s.append({ ...event, digest: "other" })).result, "conflict");
    await s.advance(1);
    const anew = await s.append({ ...event, digest: "other" });
    assert.ok(anew.result === "stored");
    assert.equal(anew.deliveries.length, 1);
  });

  declare(
    "an id outlives its time while its event is kept, so that no delivery gets a twin",
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
    { retention: { ms: 0, events: 10 } },
  );

  declare("concurrent emits of one id store it once", async (s) => {
    await s.register();
    await s.register();
    const event = s.eventOf();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => s.append(event, { by: index % 2 ? s.other : s.store })),
    );
    const stored = answers.filter(({ result }) => result === "stored");
    assert.equal(stored.length, 1);
    const ids = answers.map((answer) => (answer.result === "conflict" ? [] : listIds(answer.deliveries)));
    assert.equal(new Set(ids.map(String)).size, 1);
    const { events, pending } = await s.store.stats();
    assert.deepEqual({ events, pending }, { events: 1, pending: 2 });
  });
}
