/** The delivery log: lists, counts and single deliveries. */

import assert from "node:assert/strict";
import { listAccountDeliveries } from "../../webhooks/delivery/delivery-lists.js";
import type { DeliveryRecord } from "../../webhooks/store.js";
import { only, readAllPages, repeat } from "./assertions.js";
import { ENABLED_LIMIT, HOUR_MS, RETENTION, SECOND_MS } from "./builders.js";
import { type DeclareTest, type DeliveryQuery, readDeliveryLog, type Scenario } from "./fixture.js";

/** Lists are newest first, filtered, paged and stable. */
export function testDeliveryLists(it: DeclareTest): void {
  it("deliveries are listed newest first, by state and by type, page by page", async (s) => {
    const { id: webhookId } = await s.register();
    const other = await s.register({ eventTypes: ["consent.*"] });
    const types = [
      "patient.created",
      "consent.created",
      "patient.updated",
      "patient.created",
      "patient.created",
    ];
    const made = await repeat(5, async (index) => {
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
      (await readDeliveryLog(s, { webhookId, ...query }, limit)).map(({ id }) => id);
    for (const limit of [1, 2, 5, 9]) assert.deepEqual(await ids({}, limit), [e, d, c, b, a]);
    assert.deepEqual(await ids({ state: "pending" }), [e, d, b]);
    assert.deepEqual(await ids({ state: "delivered" }), [a]);
    assert.deepEqual(await ids({ state: "failed" }), [c]);
    assert.deepEqual(await ids({ state: "withheld" }), []);
    assert.deepEqual(await ids({ type: "patient.created" }, 1), [e, d, a]);
    assert.deepEqual(await ids({ type: "patient.created", state: "pending" }, 1), [e, d]);
    assert.equal((await ids({ webhookId: other.id })).length, 1);
    assert.deepEqual(await ids({ webhookId: s.store.newWebhookId("clinic") }), []);
    for (const record of await readDeliveryLog(s, { webhookId })) {
      assert.deepEqual(record, await s.store.getDelivery(record.id));
    }
  });

  it("deliveries are listed by creation time, together with every other filter", async (s) => {
    const { id: webhookId } = await s.register();
    const start = s.now();
    const made = await repeat(6, async (index) => {
      const { ids } = await s.emit({ type: index % 2 ? "patient.created" : "patient.updated" });
      if (index % 2) await s.advance(SECOND_MS);
      return only(ids);
    });
    const [a, b, c, d, e, f] = made;
    const at = (seconds: number): number => start + seconds * SECOND_MS;
    const ids = async (query: Partial<DeliveryQuery>, limit?: number) =>
      (await readDeliveryLog(s, { webhookId, ...query }, limit)).map(({ id }) => id);
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

  it("emitting and settling between two pages skips and repeats nothing", async (s) => {
    const { id: webhookId } = await s.register();
    const made = await repeat(6, () => s.emit());
    const seen = await readDeliveryLog(s, { webhookId }, 2, async () => {
      await s.emit();
      for (const claim of await s.claim({ room: { slow: 1 } })) await s.deliver(claim);
    });
    assert.deepEqual(
      seen.map(({ id }) => id),
      made.flatMap(({ ids }) => ids).reverse(),
    );
  });

  it("an event that only one of many webhooks receives is in no other log", async (s) => {
    const others = await repeat(ENABLED_LIMIT - 1, () => s.register({ eventTypes: ["consent.*"] }));
    const { id } = await s.register();
    const { ids, event } = await s.emit();
    assert.deepEqual(ids, [`${id}.${event.id}`]);
    for (const { id: webhookId } of others) assert.deepEqual(await readDeliveryLog(s, { webhookId }), []);
    assert.deepEqual(
      (await readDeliveryLog(s, { webhookId: id })).map((delivery) => delivery.id),
      ids,
    );
  });
}

/** The logs of all webhooks of an account can be merged into one list. */
export function testAccountLog(it: DeclareTest): void {
  /** Reads the list of the account page by page, and the same from the single logs. */
  const readBoth = async (s: Scenario, account: string, query: object, limit: number) => {
    const { webhooks } = await s.store.listWebhooks({ account, limit: 100 });
    const ids = (records: DeliveryRecord[]) => records.map(({ id }) => id);
    const merged = await readAllPages(async (cursor) => {
      const page = await listAccountDeliveries(s.store, webhooks, { ...query, limit, cursor });
      assert.ok(page.rows.length <= limit);
      assert.ok(page.next === null || page.next.length <= 120);
      for (const { delivery, webhook } of page.rows) assert.equal(delivery.webhookId, webhook.id);
      return { rows: page.rows.map(({ delivery }) => delivery), next: page.next };
    });
    const byWebhook = webhooks.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const logs = await Promise.all(
      byWebhook.map(({ id: webhookId }) => readDeliveryLog(s, { webhookId, ...query }, 50)),
    );
    const expected = logs.flat().sort((a, b) => b.createdAt - a.createdAt);
    return { merged: ids(merged), expected: ids(expected) };
  };

  it("the deliveries of an account are listed newest first, also many of one millisecond", async (s) => {
    await s.register();
    await s.register({ eventTypes: ["patient.*"] });
    await s.register({ eventTypes: ["consent.*"] });
    await s.register({ eventTypes: ["practitioner.*"] });
    await s.register({ account: "hospital" });
    await s.emit({ account: "hospital" });
    const types = ["patient.updated", "consent.created", "patient.created"];
    for (const [batch, size] of [1, 7, 2, 15, 1, 1].entries()) {
      await s.advance(batch === 4 ? 0 : 1 + batch);
      const events = Array.from({ length: size }, (_, index) =>
        s.buildEvent({ type: types[(index + batch) % types.length] ?? "" }),
      );
      await s.appendAll(events);
    }
    for (const claim of (await s.claim({ room: { slow: 9 } })).slice(0, 4)) {
      await s.fail(claim, { endpoint: null });
      await s.resend(claim.id);
    }
    const since = s.now() - 6;
    const queries = [{}, { type: "consent.created" }, { state: "failed" }, { since }, { until: since }];
    for (const query of queries) {
      for (const limit of [1, 2, 5, 100]) {
        const { merged, expected } = await readBoth(s, "clinic", query, limit);
        assert.ok(expected.length > 0);
        assert.deepEqual(merged, expected);
      }
    }
    assert.deepEqual(await readBoth(s, "nobody", {}, 5), { merged: [], expected: [] });
  });

  it("a forged cursor of the list of an account reads no other account, and is refused if it has no such form", async (s) => {
    const { id } = await s.register();
    const foreign = await s.register({ account: "hospital" });
    const { ids } = await s.emit();
    await s.emit({ account: "hospital" });
    const webhooks = [await s.readWebhook(id)];
    const read = (cursor: unknown) =>
      listAccountDeliveries(s.store, webhooks, { cursor: cursor as string, limit: 5 });
    for (const before of ["0", String(s.now()), "999999999999999"]) {
      for (const cursor of [before, `${before}_${foreign.id}_`, `${before}_${id}_`]) {
        const { rows } = await read(cursor);
        assert.ok(rows.every(({ delivery }) => ids.includes(delivery.id)));
      }
    }
    const refused = ["", "x", "-1", "1e9", `1_${id}`, `1_${id}_\u0000`, `1_${id}_../..`, "9".repeat(16)];
    const forged: unknown[] = [...refused, `1_${id}_${"0".repeat(41)}`, "1".repeat(100_000), null, 7, {}];
    for (const cursor of [...forged, `1_${id}_zz`])
      await assert.rejects(read(cursor), { code: "invalid_argument" });
  });
}

/** The statistics of a webhook without deliveries, but for the room of its endpoint. */
const NO_DELIVERIES = {
  pending: 0,
  delivered: 0,
  failed: 0,
  withheld: 0,
  failedTests: 0,
  filtered: 0,
  lastDay: { succeeded: 0, failed: 0, durationMs: 0 },
  hours: [],
  nextDueAt: null,
  lastAttempt: null,
};

/** Counts and single deliveries. */
export function testDeliveryLookup(it: DeclareTest): void {
  it("the deliveries of a webhook are counted by state, completed ones while they are kept", async (s) => {
    const { id } = await s.register();
    const { id: other } = await s.register({ eventTypes: ["consent.*"] });
    const countOf = async (webhookId: string, store = s.store) => {
      const counted = await store.deliveryStats(webhookId, s.now());
      if (counted === undefined) return undefined;
      const { inFlight: _, slots: __, openAt: ___, ...counts } = counted;
      return counts;
    };
    const count = () => countOf(id);
    const nothing = NO_DELIVERIES;
    assert.deepEqual(await count(), nothing);
    await repeat(5, () => s.emit());
    const dueAt = s.now();
    assert.deepEqual(await count(), { ...nothing, pending: 5, nextDueAt: dueAt });
    await s.advance(SECOND_MS);
    const [a, b, c, d, e] = await s.claim();
    assert.ok(a && b && c && d && e);
    assert.deepEqual(await countOf(id, s.peer), { ...nothing, pending: 5 });
    await s.settle(c, { state: "withheld", reason: "access_denied" });
    assert.equal((await count())?.lastAttempt, null);
    await s.deliver(a);
    await s.advance(SECOND_MS);
    await s.fail(b);
    await s.retry(d, 2 * HOUR_MS, { endpoint: null });
    await s.retry(e, HOUR_MS, { endpoint: null });
    const lastAttempt = { at: s.now(), kind: "http", status: 500, code: "HTTP_500" };
    const nextDueAt = s.now() + HOUR_MS;
    const counts = { pending: 2, delivered: 1, failed: 1, withheld: 1, failedTests: 0, filtered: 0 };
    const lastDay = { succeeded: 1, failed: 1, durationMs: 12 };
    const hours = [{ at: dueAt, delivered: 1, failed: 1, p50: 12, p95: 12 }];
    assert.deepEqual(await count(), { ...counts, lastDay, hours, nextDueAt, lastAttempt });
    await s.resend(d.id);
    assert.equal((await count())?.nextDueAt, s.now());
    await s.deliver(b);
    const counted = await count();
    assert.deepEqual([counted?.delivered, counted?.failed, counted?.lastAttempt?.kind], [2, 0, "delivered"]);
    assert.deepEqual(await countOf(other), nothing);
    await s.advance(RETENTION.keepMs);
    await s.tidy();
    const retained = await count();
    assert.deepEqual([retained?.pending, retained?.delivered, retained?.withheld], [2, 0, 0]);
    await s.remove(id);
    await s.tidy();
    assert.equal(await count(), undefined);
    assert.equal(await s.store.deliveryStats(s.store.newWebhookId("clinic"), s.now()), undefined);
  });

  it("an unknown delivery id is neither found nor resent", async (s) => {
    const { id } = await s.register();
    const { event } = await s.emit();
    const unknownIds = [
      "",
      "nonsense",
      id,
      `${id}.${event.id}.1`,
      `${s.store.newWebhookId("clinic")}.${event.id}`,
      `${id}.${id}`,
    ];
    for (const unknown of unknownIds) {
      assert.equal(await s.store.getDelivery(unknown), undefined);
      assert.equal(await s.resend(unknown), undefined);
    }
  });
}
