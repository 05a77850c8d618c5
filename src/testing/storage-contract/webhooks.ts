/** Webhook records: read, list and update. */

import assert from "node:assert/strict";
import type { WebhookRecord } from "../../webhooks/store.js";
import { only, overwriteDeep, readAllPages, repeat } from "./assertions.js";
import { HOUR_MS, MINUTE_MS, NOTICE_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";

const readWebhookList = (
  { store }: Scenario,
  account: string,
  limit: number,
  between?: () => Promise<unknown>,
): Promise<WebhookRecord[]> =>
  readAllPages(async (cursor) => {
    const { webhooks, next } = await store.listWebhooks({ account, cursor, limit });
    assert.ok(webhooks.length <= limit);
    return { rows: webhooks, next };
  }, between);

/** Registers a webhook whose only delivery has failed once. */
async function registerFailing(s: Scenario): Promise<WebhookRecord> {
  const { id } = await s.register();
  await s.emit();
  await s.retry(only(await s.claim()), 8 * HOUR_MS);
  const record = await s.readWebhook(id);
  assert.notEqual(record.failingSince, null);
  return record;
}

/** A stored record changes only through an update, and only in the fields of that update. */
export function testWebhookRecords(it: DeclareTest): void {
  it("every process reads a webhook as it was stored", async (s) => {
    const webhook = await s.register({
      eventTypes: ["patient.*", "condition.created"],
      previousSecret: "old",
      rotateAt: 1,
    });
    assert.deepEqual(await s.store.getWebhook(webhook.id), webhook);
    assert.deepEqual(await s.peer.getWebhook(webhook.id), webhook);
    assert.equal(await s.store.getWebhook(s.store.newWebhookId("clinic")), undefined);
    assert.equal(await s.store.getWebhook("no id at all"), undefined);
  });

  it("webhook ids are distinct lower-case UUIDs", async ({ store }) => {
    const ids = Array.from({ length: 100 }, () => store.newWebhookId("clinic"));
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  it("mutating a webhook that was passed in or returned does not change the stored one", async (s) => {
    const webhook = s.buildWebhook({ eventTypes: ["patient.*"] });
    const expected = structuredClone(webhook);
    overwriteDeep(await s.createWebhook(webhook));
    overwriteDeep(webhook);
    overwriteDeep(await s.store.getWebhook(expected.id));
    overwriteDeep(await s.store.listWebhooks({ account: "clinic", limit: 10 }));
    assert.deepEqual(await s.store.getWebhook(expected.id), expected);

    const eventTypes = ["condition.*"];
    overwriteDeep(await s.update(expected.id, { eventTypes }));
    overwriteDeep(eventTypes);
    assert.deepEqual((await s.readWebhook(expected.id)).eventTypes, ["condition.*"]);
    await s.emit({ type: "condition.created" });
    overwriteDeep(await s.claim());
    assert.equal((await s.readWebhook(expected.id)).url, expected.url);
  });

  it("an update changes only the given fields and increases updatedAt", async (s) => {
    const webhook = await s.register({ eventTypes: ["patient.*"] });
    let before = webhook;
    for (const change of [
      { eventTypes: null },
      { url: "https://subscriber.example/new" },
      { status: "DISABLED" },
      {},
    ] as const) {
      const response = await s.update(webhook.id, change);
      assert.ok(response.result === "updated");
      const { updatedAt, generation } = response.webhook;
      assert.ok(updatedAt > before.updatedAt);
      assert.deepEqual(response.webhook, { ...before, ...change, updatedAt, generation });
      before = response.webhook;
    }
    assert.deepEqual(await s.readWebhook(webhook.id), before);
    assert.equal((await s.update(s.store.newWebhookId("clinic"), {})).result, "not_found");
  });

  it("only a new url or enabling increases the generation", async (s) => {
    const { id, url } = await s.register();
    const generationAfter = async (change: Parameters<Scenario["update"]>[1]): Promise<number> => {
      await s.update(id, change);
      return (await s.readWebhook(id)).generation;
    };
    assert.equal(await generationAfter({ url, status: "ENABLED", eventTypes: ["*"] }), 0);
    assert.equal(await generationAfter({ url: "https://subscriber.example/new" }), 1);
    assert.equal(await generationAfter({ status: "DISABLED" }), 1);
    assert.equal(await generationAfter({ status: "ENABLED" }), 2);
  });

  for (const [what, change] of [
    ["a new url", { url: "https://subscriber.example/new" }],
    ["disabling", { status: "DISABLED" }],
  ] as const) {
    it(`${what} clears the health of a webhook`, async (s) => {
      const { id } = await registerFailing(s);
      await s.update(id, change);
      const { failingSince, warnedAt, noticeAt } = await s.readWebhook(id);
      assert.deepEqual(
        { failingSince, warnedAt, noticeAt },
        { failingSince: null, warnedAt: null, noticeAt: null },
      );
      await s.advance(NOTICE_MS);
      const { webhooks } = await s.store.claimHealthNotifications({
        now: s.now(),
        leaseUntil: s.now() + MINUTE_MS,
        limit: 5,
      });
      assert.deepEqual(webhooks, []);
    });
  }

  it("updating any other field keeps the health of a webhook", async (s) => {
    const before = await registerFailing(s);
    await s.update(before.id, { eventTypes: null, url: before.url, status: "ENABLED" });
    const { updatedAt } = await s.readWebhook(before.id);
    assert.deepEqual(await s.readWebhook(before.id), { ...before, updatedAt });
  });
}

/** Optional fields of a webhook are kept as they are, and absent if it has none. */
export function testWebhookDetails(it: DeclareTest): void {
  const details = {
    description: 'Ward 3 — „Störungen“ \u{1F514} \\ "',
    metadata: { team: "ward", "a.b-c_D": "", constructor: "c", id: "5e0f4f6e" },
    filter: { "data.Größe": { gte: 1, prefix: "\u{1F514}" }, "data.constructor": { in: [null, '"', -0.5] } },
    headers: { "x-api-key": 'k-"\\{1}', "x-tenant": "7" },
    perSecond: 7,
  };

  it("the details of a webhook are read as they were stored, by every call", async (s) => {
    const key = { key: "key", digest: "body", expiresAt: s.now() + HOUR_MS };
    const webhook = s.buildWebhook({ ...details, eventTypes: ["patient.*"] });
    await s.store.createWebhook(s.buildCreation(webhook, key));
    const plain = await s.register();
    assert.deepEqual(await s.peer.getWebhook(webhook.id), webhook);
    assert.deepEqual(await readWebhookList(s, "clinic", 1), [webhook, plain]);
    await s.emit();
    const claimed = (await s.claim()).map((claim) => claim.webhook);
    assert.deepEqual(new Map(claimed.map((one) => [one.id, one])).get(webhook.id), webhook);
    const removed = { metadata: null, filter: null, headers: null, perSecond: null };
    await s.update(webhook.id, { description: "Later", ...removed });
    const replayed = await s.peer.createWebhook(s.buildCreation(s.buildWebhook(), key));
    assert.ok(replayed.result === "replayed");
    assert.deepEqual(replayed.webhook, webhook);
    for (const change of [{ url: "https://subscriber.example/new" }, { status: "DISABLED" }] as const)
      await s.update(webhook.id, change);
    const { description, ...others } = await s.readWebhook(webhook.id);
    assert.equal(description, "Later");
    for (const name of Object.keys(removed)) assert.equal(name in others, false);
  });

  it("an update replaces or removes details of a webhook, and keeps what it does not name", async (s) => {
    const { id } = await s.register(details);
    const changed = async (change: Parameters<Scenario["update"]>[1]) => {
      const response = await s.update(id, change);
      assert.ok(response.result === "updated");
      const stored = await s.peer.getWebhook(id);
      assert.deepEqual(stored, response.webhook);
      assert.equal(stored.generation, 0);
      return Object.fromEntries(Object.entries(stored).filter(([name]) => Object.hasOwn(details, name)));
    };
    assert.deepEqual(await changed({ eventTypes: ["patient.*"] }), details);
    const metadata = { only: "this" };
    assert.deepEqual(await changed({ metadata }), { ...details, metadata });
    metadata.only = "overwritten";
    const { filter, headers, perSecond } = details;
    const settings = { filter, headers, perSecond };
    assert.deepEqual(await changed({ description: null }), { metadata: { only: "this" }, ...settings });
    assert.deepEqual(await changed({ metadata: null }), settings);
    assert.deepEqual(await changed({ filter: null }), { headers, perSecond });
    assert.deepEqual(await changed({ headers: { "x-a": "b" } }), { headers: { "x-a": "b" }, perSecond });
    assert.deepEqual(await changed({ perSecond: 9 }), { headers: { "x-a": "b" }, perSecond: 9 });
    assert.deepEqual(await changed({ headers: null, perSecond: null }), {});
    assert.deepEqual(await changed(details), details);
  });
}

/** Lists are stable while webhooks come and go. */
export function testWebhookPages(it: DeclareTest): void {
  it("an account's webhooks are listed oldest first, page by page", async (s) => {
    const webhooks = await repeat(5, () => s.register());
    await s.register({ account: "hospital" });
    for (const limit of [1, 2, 5, 6]) assert.deepEqual(await readWebhookList(s, "clinic", limit), webhooks);
    assert.deepEqual(await s.store.listWebhooks({ account: "nobody", limit: 5 }), {
      webhooks: [],
      next: null,
    });
  });

  it("creating and removing webhooks between two pages skips and repeats nothing", async (s) => {
    const webhooks = await repeat(6, () => s.register());
    const [first, second] = webhooks;
    assert.ok(first && second);
    let pages = 0;
    const seen = await readWebhookList(s, "clinic", 2, async () => {
      if (pages++ > 0) return;
      await s.remove(first.id);
      await s.remove(second.id);
      await s.register();
    });
    assert.deepEqual(seen.slice(0, 6), webhooks);
    assert.equal(seen.length, 7);
  });

  it("an invalid cursor is rejected with invalid_argument", async ({ store, register, now }) => {
    const { id } = await register();
    const page = { cursor: "no cursor", limit: 5 };
    const refusal = { code: "invalid_argument" };
    await assert.rejects(store.listWebhooks({ account: "clinic", ...page }), refusal);
    await assert.rejects(store.listDeliveries({ webhookId: id, ...page }), refusal);
    const from = { since: 0, dueAt: now(), everyMs: 0, now: now() };
    const request = { webhookId: id, account: "clinic", ...from, ...page };
    await assert.rejects(store.recover(request), refusal);
  });
}
