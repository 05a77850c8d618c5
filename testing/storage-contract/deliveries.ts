/** The storage contract on the log of deliveries: get, list, resend. */

import assert from "node:assert/strict";
import { type DeliveryQuery, listed, only, times } from "./lists.js";
import {
  type DeclareTest,
  ENABLED_LIMIT,
  HOUR_MS,
  LEASE_MS,
  MINUTE_MS,
  RETENTION,
  SECOND_MS,
} from "./scenario.js";

export function deliveries(declare: DeclareTest): void {
  declare("deliveries are listed newest first, by state and by type, in pages", async (s) => {
    const { id: webhookId } = await s.register();
    const other = await s.register({ eventTypes: ["consent.*"] });
    const types = [
      "patient.created",
      "consent.created",
      "patient.updated",
      "patient.created",
      "patient.created",
    ];
    const made = await times(5, async (index) => {
      await s.advance(index % 2);
      const { event } = await s.emit({ type: types[index] ?? "" });
      return `${webhookId}.${event.id}`;
    });
    const [a, b, c, d, e] = made;
    for (const claim of await s.claim()) {
      if (claim.id === a) await s.deliver(claim);
      if (claim.id === c) await s.fail(claim);
      if (claim.id === d) await s.retry(claim, HOUR_MS);
    }
    const ids = async (query: Partial<DeliveryQuery>, limit?: number) =>
      (await listed(s, { webhookId, ...query }, limit)).map(({ id }) => id);
    for (const limit of [1, 2, 5, 9]) assert.deepEqual(await ids({}, limit), [e, d, c, b, a]);
    assert.deepEqual(await ids({ state: "pending" }), [e, d, b]);
    assert.deepEqual(await ids({ state: "delivered" }), [a]);
    assert.deepEqual(await ids({ state: "failed" }), [c]);
    assert.deepEqual(await ids({ state: "withheld" }), []);
    assert.deepEqual(await ids({ type: "patient.created" }, 1), [e, d, a]);
    assert.deepEqual(await ids({ type: "patient.created", state: "pending" }, 1), [e, d]);
    assert.equal((await ids({ webhookId: other.id })).length, 1);
    assert.deepEqual(await ids({ webhookId: s.store.newWebhookId("clinic") }), []);
    for (const record of await listed(s, { webhookId })) {
      assert.deepEqual(record, await s.store.getDelivery(record.id));
    }
  });

  declare("pages of deliveries survive emits and ends in between", async (s) => {
    const { id: webhookId } = await s.register();
    const made = await times(6, () => s.emit());
    const seen = await listed(s, { webhookId }, 2, async () => {
      await s.emit();
      for (const claim of await s.claim({ room: { slow: 1 } })) await s.deliver(claim);
    });
    assert.deepEqual(
      seen.map(({ id }) => id),
      made.flatMap(({ ids }) => ids).reverse(),
    );
  });

  declare("deliveries are listed by when they were created, in pages, with all else", async (s) => {
    const { id: webhookId } = await s.register();
    const start = s.now();
    const made = await times(6, async (index) => {
      const { ids } = await s.emit({ type: index % 2 ? "patient.created" : "patient.updated" });
      if (index % 2) await s.advance(SECOND_MS);
      return only(ids);
    });
    const [a, b, c, d, e, f] = made;
    const at = (seconds: number): number => start + seconds * SECOND_MS;
    const ids = async (query: Partial<DeliveryQuery>, limit?: number) =>
      (await listed(s, { webhookId, ...query }, limit)).map(({ id }) => id);
    for (const limit of [1, 2, 9]) {
      assert.deepEqual(await ids({ since: at(1) }, limit), [f, e, d, c]);
      assert.deepEqual(await ids({ until: at(1) }, limit), [b, a]);
      assert.deepEqual(await ids({ since: at(1), until: at(2) }, limit), [d, c]);
    }
    assert.deepEqual(await ids({ since: at(1), type: "patient.created" }, 1), [f, d]);
    assert.deepEqual(await ids({ until: at(2), state: "pending" }, 1), [d, c, b, a]);
    assert.deepEqual(await ids({ since: at(0) + 1, until: at(1) }), []);
    assert.deepEqual(await ids({ since: at(2), until: at(1) }), []);
    assert.deepEqual(await ids({ since: at(3) }), []);
    for (const late of [Date.UTC(2600), Date.UTC(2999), Date.UTC(9999)]) {
      assert.deepEqual(await ids({ since: -1, until: late }), [f, e, d, c, b, a]);
      assert.deepEqual(await ids({ since: late }), []);
    }
    assert.deepEqual(await ids({ until: -1 }), []);
    await s.deliver((await s.claim()).find(({ id }) => id === a) ?? assert.fail("all were due"));
    await s.resend(a ?? "");
    assert.deepEqual(await ids({ since: at(3) }), [`${a}.1`]);
    assert.deepEqual(await ids({ until: at(1) }), [b, a]);
  });

  declare("an event that one of many webhooks got is in the log of no other", async (s) => {
    const others = await times(ENABLED_LIMIT - 1, () => s.register({ eventTypes: ["consent.*"] }));
    const { id } = await s.register();
    const { ids, event } = await s.emit();
    assert.deepEqual(ids, [`${id}.${event.id}`]);
    for (const { id: webhookId } of others) assert.deepEqual(await listed(s, { webhookId }), []);
    assert.deepEqual(
      (await listed(s, { webhookId: id })).map((delivery) => delivery.id),
      ids,
    );
  });

  declare("the deliveries of a webhook are counted by state, also while they are kept", async (s) => {
    const { id } = await s.register();
    const { id: other } = await s.register({ eventTypes: ["consent.*"] });
    const nothing = { pending: 0, delivered: 0, failed: 0, withheld: 0, nextDueAt: null, lastAttempt: null };
    assert.deepEqual(await s.store.deliveryStats(id), nothing);
    await times(5, () => s.emit());
    const dueAt = s.now();
    assert.deepEqual(await s.store.deliveryStats(id), { ...nothing, pending: 5, nextDueAt: dueAt });
    await s.advance(SECOND_MS);
    const [a, b, c, d, e] = await s.claim();
    assert.ok(a && b && c && d && e);
    assert.deepEqual(await s.other.deliveryStats(id), { ...nothing, pending: 5 });
    await s.settle(c, { state: "withheld", reason: "access_denied" });
    assert.equal((await s.store.deliveryStats(id))?.lastAttempt, null);
    await s.deliver(a);
    await s.advance(SECOND_MS);
    await s.fail(b);
    await s.retry(d, 2 * HOUR_MS, { endpoint: null });
    await s.retry(e, HOUR_MS, { endpoint: null });
    const lastAttempt = { at: s.now(), kind: "http", status: 500, code: "HTTP_500" };
    const nextDueAt = s.now() + HOUR_MS;
    assert.deepEqual(await s.store.deliveryStats(id), {
      pending: 2,
      delivered: 1,
      failed: 1,
      withheld: 1,
      nextDueAt,
      lastAttempt,
    });
    await s.resend(d.id);
    assert.equal((await s.store.deliveryStats(id))?.nextDueAt, s.now());
    await s.deliver(b);
    const counted = await s.store.deliveryStats(id);
    assert.deepEqual([counted?.delivered, counted?.failed, counted?.lastAttempt?.kind], [2, 0, "delivered"]);
    assert.deepEqual(await s.store.deliveryStats(other), nothing);
    await s.advance(RETENTION.ms);
    await s.tidy();
    const kept = await s.store.deliveryStats(id);
    assert.deepEqual([kept?.pending, kept?.delivered, kept?.withheld], [2, 0, 0]);
    await s.remove(id);
    await s.tidy();
    assert.equal(await s.store.deliveryStats(id), undefined);
    assert.equal(await s.store.deliveryStats(s.store.newWebhookId("clinic")), undefined);
  });

  declare("a delivery nobody knows is undefined", async (s) => {
    const { id } = await s.register();
    const { event } = await s.emit();
    const strangers = [
      "",
      "nonsense",
      id,
      `${id}.${event.id}.1`,
      `${s.store.newWebhookId("clinic")}.${event.id}`,
      `${id}.${id}`,
    ];
    for (const unknown of strangers) {
      assert.equal(await s.store.getDelivery(unknown), undefined);
      assert.equal(await s.resend(unknown), undefined);
    }
  });

  declare("resending a waiting delivery makes it due now, as an extra that uses up no step", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    await s.putOff(only(await s.claim()), 8 * HOUR_MS);
    const before = await s.delivery(only(ids));
    assert.equal(await s.resend(before.id), before.id);
    assert.equal(await s.resend(before.id), before.id);
    assert.deepEqual(await s.delivery(before.id), before);
    const extra = only(await s.claim());
    assert.deepEqual([extra.id, extra.isExtra, extra.step, extra.dueAt], [before.id, true, 1, before.dueAt]);
    const outcome = {
      state: "pending",
      step: extra.step,
      dueAt: extra.dueAt,
      postponed: 0,
      crashes: 0,
    } as const;
    await s.settle(extra, outcome, { endpoint: null });
    assert.deepEqual(await s.claim(), []);
    await s.advance(8 * HOUR_MS);
    const regular = only(await s.claim());
    assert.deepEqual([regular.isExtra, regular.step], [false, 1]);
  });

  declare(
    "an extra attempt that was put off comes back as one, and its step stays where it was",
    async (s) => {
      await s.register();
      const { ids } = await s.emit();
      await s.putOff(only(await s.claim()), 8 * HOUR_MS);
      const dueAt = s.now() + 8 * HOUR_MS;
      await s.resend(only(ids));
      const extra = only(await s.claim());
      const outcome = { state: "pending", step: 1, dueAt, postponed: 1, crashes: 0 } as const;
      const extraAt = s.now() + MINUTE_MS;
      await s.settle(extra, { ...outcome, extraAt }, { attempt: null, endpoint: null });
      assert.equal((await s.delivery(extra.id)).dueAt, dueAt);
      await s.advance(MINUTE_MS - 1);
      assert.deepEqual(await s.claim(), []);
      await s.advance(1);
      const again = only(await s.claim());
      assert.deepEqual([again.isExtra, again.dueAt, again.postponed], [true, dueAt, 1]);
    },
  );

  declare("an extra attempt whose process died is made by another one, still as an extra", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    await s.putOff(only(await s.claim()), 8 * HOUR_MS);
    await s.resend(only(ids));
    await s.claim();
    await s.advance(LEASE_MS);
    const taken = only(await s.claim({ by: s.other }));
    assert.deepEqual([taken.isExtra, taken.isRecovered, taken.step], [true, true, 1]);
  });

  declare("resending what is due or under way changes nothing", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    const id = only(ids);
    assert.equal(await s.resend(id), id);
    const claim = only(await s.claim());
    assert.equal(claim.isExtra, false);
    assert.equal(await s.resend(id), id);
    assert.deepEqual(await s.claim({ by: s.other }), []);
    assert.equal(await s.retry(claim, HOUR_MS), "settled");
    assert.deepEqual(await s.claim(), []);
  });

  declare("resending an ended delivery makes a new one of the same event", async (s) => {
    const { id: webhookId } = await s.register();
    const { event, ids } = await s.emit();
    const first = only(ids);
    await s.deliver(only(await s.claim()));
    const ended = await s.delivery(first);
    await s.advance(SECOND_MS);
    const second = await s.resend(first);
    assert.equal(second, `${first}.1`);
    assert.equal(await s.resend(first), second);
    const claim = only(await s.claim());
    assert.deepEqual([claim.id, claim.isExtra, claim.step, claim.startedAt], [second, false, 0, null]);
    assert.deepEqual(claim.event, event);
    assert.equal(await s.resend(first), second);
    await s.fail(claim);
    assert.equal(await s.resend(claim.id), `${first}.2`);
    assert.deepEqual(await s.delivery(first), ended);
    assert.deepEqual(
      (await listed(s, { webhookId })).map(({ id }) => id),
      [`${first}.2`, `${first}.1`, first],
    );
    const { events, pending, ended: endedCount } = await s.store.stats();
    assert.deepEqual({ events, pending, endedCount }, { events: 1, pending: 1, endedCount: 2 });
  });

  declare("resending an earlier delivery makes its waiting successor due now", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    const first = only(ids);
    await s.deliver(only(await s.claim()));
    await s.resend(first);
    await s.putOff(only(await s.claim()), HOUR_MS);
    assert.equal(await s.resend(first), `${first}.1`);
    assert.equal(only(await s.claim()).isExtra, true);
  });

  declare("concurrent resends of an ended delivery make one new one", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    await s.deliver(only(await s.claim()));
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => s.resend(only(ids), { by: index % 2 ? s.other : s.store })),
    );
    assert.deepEqual(new Set(answers), new Set([`${only(ids)}.1`]));
    assert.equal((await s.store.stats()).pending, 1);
  });
}
