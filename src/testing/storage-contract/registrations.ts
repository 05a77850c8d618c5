/** The storage contract on webhooks: create, read, list, update, remove, and the limit of ENABLED ones. */

import assert from "node:assert/strict";
import type { WebhookRecord } from "../../webhooks/store.js";
import {
  allPages,
  type Declare,
  ENABLED_LIMIT,
  HOUR_MS,
  idsOf,
  MINUTE_MS,
  NOTICE_MS,
  only,
  RETENTION,
  type Scenario,
  times,
  vandalise,
} from "./scenario.js";

const results = (answers: readonly { readonly result: string }[], result: string): number =>
  answers.filter((answer) => answer.result === result).length;

const listed = (
  { store }: Scenario,
  account: string,
  limit: number,
  between?: () => Promise<unknown>,
): Promise<WebhookRecord[]> =>
  allPages(async (cursor) => {
    const { webhooks, next } = await store.listWebhooks({ account, cursor, limit });
    assert.ok(webhooks.length <= limit);
    return { rows: webhooks, next };
  }, between);

/** A webhook that has failed once. */
async function failing({ register, emit, claim, retry, webhook }: Scenario): Promise<WebhookRecord> {
  const { id } = await register();
  await emit();
  await retry(only(await claim()), 8 * HOUR_MS);
  const record = await webhook(id);
  assert.notEqual(record.failingSince, null);
  return record;
}

export function registrations(declare: Declare): void {
  declare("a webhook reads back as it was stored", async ({ store, other, register }) => {
    const webhook = await register({
      eventTypes: ["patient.*", "condition.created"],
      previousSecret: "old",
      rotateAt: 1,
    });
    assert.deepEqual(await store.getWebhook(webhook.id), webhook);
    assert.deepEqual(await other.getWebhook(webhook.id), webhook);
    assert.equal(await store.getWebhook(store.newWebhookId("clinic")), undefined);
    assert.equal(await store.getWebhook("no id at all"), undefined);
  });

  declare("webhook ids are UUIDs in lower case and differ", async ({ store }) => {
    const ids = Array.from({ length: 100 }, () => store.newWebhookId("clinic"));
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  declare("overwriting a webhook that was passed in or returned changes nothing", async (s) => {
    const webhook = s.webhookOf({ eventTypes: ["patient.*"] });
    const expected = structuredClone(webhook);
    vandalise(await s.create(webhook));
    vandalise(webhook);
    vandalise(await s.store.getWebhook(expected.id));
    vandalise(await s.store.listWebhooks({ account: "clinic", limit: 10 }));
    assert.deepEqual(await s.store.getWebhook(expected.id), expected);

    const eventTypes = ["condition.*"];
    vandalise(await s.update(expected.id, { eventTypes }));
    vandalise(eventTypes);
    assert.deepEqual((await s.webhook(expected.id)).eventTypes, ["condition.*"]);
    await s.emit({ type: "condition.created" });
    vandalise(await s.claim());
    assert.equal((await s.webhook(expected.id)).url, expected.url);
  });

  declare("creating an id again adds nothing", async ({ store, other, create, webhookOf, update }) => {
    const webhook = webhookOf();
    await create(webhook);
    await update(webhook.id, { url: "https://subscriber.example/moved" });
    const again = await create(webhook, { by: other });
    assert.ok(again.result === "created");
    assert.equal(again.webhook.url, "https://subscriber.example/moved");
    assert.equal((await store.stats()).webhooks, 1);
  });

  declare("fifty concurrent creates of one account give exactly fifteen", async (s) => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        s.create(s.webhookOf(), { by: index % 2 ? s.other : s.store }),
      ),
    );
    assert.equal(results(answers, "created"), ENABLED_LIMIT);
    assert.equal(results(answers, "limit"), 50 - ENABLED_LIMIT);
    assert.equal((await listed(s, "clinic", 4)).length, ENABLED_LIMIT);
    assert.equal((await s.store.stats()).webhooks, ENABLED_LIMIT);
  });

  declare("the limit counts the ENABLED webhooks of one account only", async (s) => {
    const first = await s.register();
    await times(ENABLED_LIMIT - 1, () => s.register());
    await s.register({ account: "hospital" });
    await s.register({ status: "DISABLED" });
    assert.equal((await s.create(s.webhookOf())).result, "limit");
    await s.update(first.id, { status: "DISABLED" });
    await s.register();
    assert.equal((await s.create(s.webhookOf())).result, "limit");
    assert.equal((await s.update(first.id, { status: "ENABLED" })).result, "limit");
    assert.equal((await s.webhook(first.id)).status, "DISABLED");
  });

  declare("removing an ENABLED webhook frees its place", async (s) => {
    const [first] = await times(ENABLED_LIMIT, () => s.register());
    assert.ok(first);
    await s.remove(first.id);
    await s.register();
    assert.equal((await s.create(s.webhookOf())).result, "limit");
  });

  declare("concurrent enabling of twenty webhooks leaves fifteen ENABLED", async (s) => {
    const webhooks = await times(20, () => s.register({ status: "DISABLED" }));
    const answers = await Promise.all(
      webhooks.map(({ id }, index) =>
        s.update(id, { status: "ENABLED" }, { by: index % 2 ? s.other : s.store }),
      ),
    );
    assert.equal(results(answers, "updated"), ENABLED_LIMIT);
    const statuses = (await listed(s, "clinic", 50)).filter(({ status }) => status === "ENABLED");
    assert.equal(statuses.length, ENABLED_LIMIT);
  });

  declare("updating an ENABLED webhook does not count itself", async (s) => {
    const [first] = await times(ENABLED_LIMIT, () => s.register());
    assert.ok(first);
    const url = "https://subscriber.example/new";
    assert.equal((await s.update(first.id, { url, status: "ENABLED" })).result, "updated");
  });

  declare("a repeated idempotency key gives the first webhook again", async (s) => {
    const { store, other, clock } = s;
    const request = (digest = "body") => ({
      webhook: s.webhookOf(),
      enabledLimit: ENABLED_LIMIT,
      idempotency: { key: "key", digest, expiresAt: clock.now() + 10 * MINUTE_MS },
      now: clock.now(),
    });
    const first = request();
    const created = await store.createWebhook(first);
    assert.ok(created.result === "created");
    vandalise(created.webhook);
    await s.update(first.webhook.id, { url: "https://subscriber.example/later" });
    const replayed = await other.createWebhook(request());
    assert.ok(replayed.result === "replayed");
    assert.deepEqual(replayed.webhook, first.webhook);
    vandalise(replayed.webhook);
    assert.equal((await other.createWebhook(request("another body"))).result, "key_reused");

    const elsewhere = { ...request(), webhook: s.webhookOf({ account: "hospital" }) };
    assert.equal((await store.createWebhook(elsewhere)).result, "created");

    await s.remove(first.webhook.id);
    const again = await store.createWebhook(request());
    assert.ok(again.result === "replayed");
    assert.deepEqual(again.webhook, first.webhook);
    assert.equal((await store.stats()).webhooks, 1);
  });

  declare(
    "an idempotency key is forgotten when it expires, not before",
    async ({ store, clock, webhookOf }) => {
      const expiresAt = clock.now() + 10 * MINUTE_MS;
      const create = (digest: string) =>
        store.createWebhook({
          webhook: webhookOf(),
          enabledLimit: ENABLED_LIMIT,
          idempotency: { key: "key", digest, expiresAt: Math.max(expiresAt, clock.now() + 1) },
          now: clock.now(),
        });
      assert.equal((await create("body")).result, "created");
      await clock.advance(10 * MINUTE_MS - 1);
      assert.equal((await create("body")).result, "replayed");
      await clock.advance(1);
      assert.equal((await create("another body")).result, "created");
    },
  );

  declare(
    "concurrent creates with one idempotency key make one webhook",
    async ({ store, other, clock, webhookOf }) => {
      const idempotency = { key: "key", digest: "body", expiresAt: clock.now() + MINUTE_MS };
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          (index % 2 ? other : store).createWebhook({
            webhook: webhookOf(),
            enabledLimit: ENABLED_LIMIT,
            idempotency,
            now: clock.now(),
          }),
        ),
      );
      assert.equal(results(answers, "created"), 1);
      assert.equal(results(answers, "replayed"), 9);
      assert.equal((await store.stats()).webhooks, 1);
    },
  );

  declare("a create that meets the limit does not use up its idempotency key", async (s) => {
    const [first] = await times(ENABLED_LIMIT, () => s.register());
    assert.ok(first);
    const create = () =>
      s.store.createWebhook({
        webhook: s.webhookOf(),
        enabledLimit: ENABLED_LIMIT,
        idempotency: { key: "key", digest: "body", expiresAt: s.now() + MINUTE_MS },
        now: s.now(),
      });
    assert.equal((await create()).result, "limit");
    await s.remove(first.id);
    assert.equal((await create()).result, "created");
  });

  declare("webhooks are listed by account, oldest first, in pages", async (s) => {
    const own = await times(5, () => s.register());
    await s.register({ account: "hospital" });
    for (const limit of [1, 2, 5, 6]) assert.deepEqual(await listed(s, "clinic", limit), own);
    assert.deepEqual(await s.store.listWebhooks({ account: "nobody", limit: 5 }), {
      webhooks: [],
      next: null,
    });
  });

  declare("pages of webhooks survive creates and removals in between", async (s) => {
    const own = await times(6, () => s.register());
    const [first, second] = own;
    assert.ok(first && second);
    let pages = 0;
    const seen = await listed(s, "clinic", 2, async () => {
      if (pages++ > 0) return;
      await s.remove(first.id);
      await s.remove(second.id);
      await s.register();
    });
    assert.deepEqual(seen.slice(0, 6), own);
    assert.equal(seen.length, 7);
  });

  declare("a cursor that is none is refused", async ({ store, register, now }) => {
    const { id } = await register();
    const page = { cursor: "no cursor", limit: 5 };
    const refusal = { code: "invalid_argument" };
    await assert.rejects(store.listWebhooks({ account: "clinic", ...page }), refusal);
    await assert.rejects(store.listDeliveries({ webhookId: id, ...page }), refusal);
    await assert.rejects(store.recover({ webhookId: id, since: 0, now: now(), ...page }), refusal);
  });

  declare("an update changes the given fields only, and updatedAt grows each time", async (s) => {
    const webhook = await s.register({ eventTypes: ["patient.*"] });
    const secrets = { secret: "new", previousSecret: webhook.secret, rotateAt: s.now() + HOUR_MS };
    let before = webhook;
    for (const change of [
      { eventTypes: null },
      { secrets },
      { url: "https://subscriber.example/new" },
      { status: "DISABLED" },
      {},
    ] as const) {
      const answer = await s.update(webhook.id, change);
      assert.ok(answer.result === "updated");
      const { updatedAt, generation } = answer.webhook;
      assert.ok(updatedAt > before.updatedAt);
      const { secrets: changed, ...fields } = { secrets: {}, ...change };
      assert.deepEqual(answer.webhook, { ...before, ...fields, ...changed, updatedAt, generation });
      before = answer.webhook;
    }
    assert.deepEqual(await s.webhook(webhook.id), before);
    assert.equal((await s.update(s.store.newWebhookId("clinic"), {})).result, "not_found");
  });

  declare("a new url and enabling raise the generation, nothing else does", async (s) => {
    const { id, url } = await s.register();
    const generationAfter = async (change: Parameters<Scenario["update"]>[1]): Promise<number> => {
      await s.update(id, change);
      return (await s.webhook(id)).generation;
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
    declare(`${what} clears the health of a webhook`, async (s) => {
      const { id } = await failing(s);
      await s.update(id, change);
      const { failingSince, warnedAt, noticeAt } = await s.webhook(id);
      assert.deepEqual(
        { failingSince, warnedAt, noticeAt },
        { failingSince: null, warnedAt: null, noticeAt: null },
      );
      await s.advance(NOTICE_MS);
      const { webhooks } = await s.store.claimNotices({
        now: s.now(),
        leaseUntil: s.now() + MINUTE_MS,
        limit: 5,
      });
      assert.deepEqual(webhooks, []);
    });
  }

  declare("an update of other fields leaves the health as it is", async (s) => {
    const before = await failing(s);
    await s.update(before.id, { eventTypes: null, url: before.url, status: "ENABLED" });
    const { updatedAt } = await s.webhook(before.id);
    assert.deepEqual(await s.webhook(before.id), { ...before, updatedAt });
  });

  declare("removing a webhook removes its deliveries and leaves those of others", async (s) => {
    const gone = await s.register();
    const kept = await s.register();
    await s.emit();
    await s.emit();
    assert.equal(await s.remove(gone.id), true);
    assert.equal(await s.remove(gone.id), false);
    assert.equal(await s.store.getWebhook(gone.id), undefined);
    assert.deepEqual((await s.store.listDeliveries({ webhookId: gone.id, limit: 5 })).deliveries, []);
    assert.equal((await s.update(gone.id, { status: "ENABLED" })).result, "not_found");
    const claims = await s.claim();
    assert.deepEqual(new Set(claims.map(({ webhook }) => webhook.id)), new Set([kept.id]));
    assert.equal((await s.store.stats()).pending, 2);
  });

  declare("a report that comes after the removal is gone and re-creates nothing", async (s) => {
    const { id } = await s.register();
    await times(3, () => s.emit());
    const [first, second, third] = await s.claim();
    assert.ok(first && second && third);
    await s.remove(id);
    assert.equal(await s.deliver(first), "gone");
    assert.equal(await s.retry(second, MINUTE_MS), "gone");
    assert.equal(await s.fail(third), "gone");
    await s.advance(HOUR_MS);
    assert.deepEqual(await s.claim(), []);
    const stats = await s.store.stats();
    assert.deepEqual([stats.webhooks, stats.pending, stats.leased, stats.ended], [0, 0, 0, 0]);
  });

  declare("removing the last receiver ends an event, which is kept for the retention", async (s) => {
    const { id } = await s.register();
    const { id: newer } = await s.register({ status: "DISABLED" });
    await s.emit();
    await s.remove(id, { ...RETENTION, ms: HOUR_MS });
    assert.equal((await s.store.stats()).events, 1);
    const answer = await s.store.recover({ webhookId: newer, since: 0, now: s.now(), limit: 5 });
    assert.equal(answer?.count, 1);
    assert.deepEqual(
      idsOf((await s.store.listDeliveries({ webhookId: newer, limit: 5 })).deliveries).length,
      1,
    );
  });
}
