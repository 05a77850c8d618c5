/** The storage contract on creating webhooks: the limits of ENABLED ones and of all, and creates that are made again. */

import assert from "node:assert/strict";
import type { WebhookRecord, WebhookStatus } from "../../src/webhooks/store.js";
import { times, vandalise } from "./lists.js";
import { type DeclareTest, ENABLED_LIMIT, MINUTE_MS } from "./scenario.js";

const count = (answers: readonly { readonly result: string }[], result: string): number =>
  answers.filter((answer) => answer.result === result).length;

export function creation(declare: DeclareTest): void {
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
    assert.equal(count(answers, "created"), ENABLED_LIMIT);
    assert.equal(count(answers, "enabled_limit"), 50 - ENABLED_LIMIT);
    assert.equal((await s.store.stats()).webhooks, ENABLED_LIMIT);
  });

  declare("concurrent creates keep exactly to the limits of ENABLED and of all webhooks", async (s) => {
    const make = (status: WebhookStatus, index: number) => ({
      ...s.creation(s.webhookOf({ status })),
      accountLimit: 20,
      by: index % 2 ? s.other : s.store,
    });
    const requests = Array.from({ length: 60 }, (_, index) =>
      make(index % 3 ? "ENABLED" : "DISABLED", index),
    );
    const answers = await Promise.all(requests.map(({ by, ...request }) => by.createWebhook(request)));
    assert.equal(count(answers, "created"), 20);
    const { webhooks } = await s.store.listWebhooks({ account: "clinic", limit: 100 });
    assert.equal(webhooks.length, 20);
    assert.ok(webhooks.filter(({ status }) => status === "ENABLED").length <= ENABLED_LIMIT);
    const disabled = s.webhookOf({ status: "DISABLED" });
    const refused = await s.store.createWebhook({ ...s.creation(disabled), accountLimit: 20 });
    assert.equal(refused.result, "account_limit");
    assert.equal(await s.store.getWebhook(disabled.id), undefined);
  });

  declare("the limit of all webhooks counts ENABLED and DISABLED ones of one account", async (s) => {
    const create = (fields: Partial<WebhookRecord> = {}) =>
      s.store.createWebhook({ ...s.creation(s.webhookOf(fields)), accountLimit: 3 });
    await s.register({ account: "hospital" });
    const first = await create();
    assert.ok(first.result === "created");
    assert.equal((await create({ status: "DISABLED" })).result, "created");
    assert.equal((await create()).result, "created");
    assert.equal((await create()).result, "account_limit");
    assert.equal((await create({ status: "DISABLED" })).result, "account_limit");
    assert.equal((await create({ account: "hospital" })).result, "created");
    await s.remove(first.webhook.id);
    assert.equal((await create({ status: "DISABLED" })).result, "created");
    assert.equal((await create()).result, "account_limit");
  });

  declare("the limit counts the ENABLED webhooks of one account only", async (s) => {
    const first = await s.register();
    await times(ENABLED_LIMIT - 1, () => s.register());
    await s.register({ account: "hospital" });
    await s.register({ status: "DISABLED" });
    assert.equal((await s.create(s.webhookOf())).result, "enabled_limit");
    await s.update(first.id, { status: "DISABLED" });
    await s.register();
    assert.equal((await s.create(s.webhookOf())).result, "enabled_limit");
    assert.equal((await s.update(first.id, { status: "ENABLED" })).result, "enabled_limit");
    assert.equal((await s.webhook(first.id)).status, "DISABLED");
  });

  declare("removing an ENABLED webhook frees its place", async (s) => {
    const [first] = await times(ENABLED_LIMIT, () => s.register());
    assert.ok(first);
    await s.remove(first.id);
    await s.register();
    assert.equal((await s.create(s.webhookOf())).result, "enabled_limit");
  });

  declare("concurrent enabling of twenty webhooks leaves fifteen ENABLED", async (s) => {
    const webhooks = await times(20, () => s.register({ status: "DISABLED" }));
    const answers = await Promise.all(
      webhooks.map(({ id }, index) =>
        s.update(id, { status: "ENABLED" }, { by: index % 2 ? s.other : s.store }),
      ),
    );
    assert.equal(count(answers, "updated"), ENABLED_LIMIT);
    const { webhooks: rows } = await s.store.listWebhooks({ account: "clinic", limit: 50 });
    assert.equal(rows.filter(({ status }) => status === "ENABLED").length, ENABLED_LIMIT);
  });

  declare("updating an ENABLED webhook does not count itself", async (s) => {
    const [first] = await times(ENABLED_LIMIT, () => s.register());
    assert.ok(first);
    const url = "https://subscriber.example/new";
    assert.equal((await s.update(first.id, { url, status: "ENABLED" })).result, "updated");
  });

  declare("a repeated idempotency key gives the first webhook again", async (s) => {
    const { store, other } = s;
    const request = (digest = "body") =>
      s.creation(s.webhookOf(), { key: "key", digest, expiresAt: s.now() + 10 * MINUTE_MS });
    const first = request();
    const created = await store.createWebhook(first);
    assert.ok(created.result === "created");
    vandalise(created.webhook);
    await s.update(first.webhook.id, { url: "https://subscriber.example/later" });
    const replayed = await other.createWebhook(request());
    assert.ok(replayed.result === "replayed");
    assert.deepEqual(replayed.webhook, first.webhook);
    vandalise(replayed.webhook);
    // Whoever repeats the first answer can tell by these whether it is still true.
    await s.update(first.webhook.id, {
      rotation: { secret: "rotated", rotateAt: s.now() },
      subscriberId: "key-2",
    });
    const rotated = await other.createWebhook(request());
    assert.ok(rotated.result === "replayed");
    assert.deepEqual(rotated.webhook, first.webhook);
    const { secret, subscriberId } = await s.webhook(first.webhook.id);
    assert.deepEqual([secret, subscriberId], ["rotated", "key-2"]);
    assert.equal((await other.createWebhook(request("another body"))).result, "key_reused");

    const elsewhere = { ...request(), webhook: s.webhookOf({ account: "hospital" }) };
    assert.equal((await store.createWebhook(elsewhere)).result, "created");

    await s.remove(first.webhook.id);
    const again = await store.createWebhook(request());
    assert.ok(again.result === "replayed");
    assert.deepEqual(again.webhook, first.webhook);
    assert.equal(await store.getWebhook(first.webhook.id), undefined);
    assert.equal((await store.stats()).webhooks, 1);
  });

  declare(
    "an idempotency key is forgotten when it expires, not before",
    async ({ store, clock, webhookOf, creation: request }) => {
      const expiresAt = clock.now() + 10 * MINUTE_MS;
      const create = (digest: string) => {
        const idempotency = { key: "key", digest, expiresAt: Math.max(expiresAt, clock.now() + 1) };
        return store.createWebhook(request(webhookOf(), idempotency));
      };
      assert.equal((await create("body")).result, "created");
      await clock.advance(10 * MINUTE_MS - 1);
      assert.equal((await create("body")).result, "replayed");
      await clock.advance(1);
      assert.equal((await create("another body")).result, "created");
    },
  );

  declare(
    "concurrent creates with one idempotency key make one webhook",
    async ({ store, other, clock, webhookOf, creation: request }) => {
      const idempotency = { key: "key", digest: "body", expiresAt: clock.now() + MINUTE_MS };
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          (index % 2 ? other : store).createWebhook(request(webhookOf(), idempotency)),
        ),
      );
      assert.equal(count(answers, "created"), 1);
      assert.equal(count(answers, "replayed"), 9);
      assert.equal((await store.stats()).webhooks, 1);
    },
  );

  declare("a create that meets the limit does not use up its idempotency key", async (s) => {
    const [first] = await times(ENABLED_LIMIT, () => s.register());
    assert.ok(first);
    const create = () =>
      s.store.createWebhook(
        s.creation(s.webhookOf(), { key: "key", digest: "body", expiresAt: s.now() + MINUTE_MS }),
      );
    assert.equal((await create()).result, "enabled_limit");
    await s.remove(first.id);
    assert.equal((await create()).result, "created");
  });
}
