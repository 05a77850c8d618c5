/** Creating and enabling webhooks: the limits of an account hold, also under concurrency. */

import assert from "node:assert/strict";
import type { WebhookRecord } from "../../webhooks/store.js";
import { countResults, repeat } from "./assertions.js";
import { ENABLED_LIMIT } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** An account has at most `enabledLimit` ENABLED webhooks and `accountLimit` in all. */
export function testWebhookLimits(it: DeclareTest): void {
  it("creating a webhook again with the same id returns the stored one", async (s) => {
    const webhook = s.buildWebhook();
    await s.createWebhook(webhook);
    await s.update(webhook.id, { url: "https://subscriber.example/moved" });
    const again = await s.createWebhook(webhook, { by: s.peer });
    assert.ok(again.result === "created");
    assert.equal(again.webhook.url, "https://subscriber.example/moved");
    assert.equal((await s.store.stats()).webhooks, 1);
  });

  it("fifty concurrent creates in one account store exactly fifteen ENABLED webhooks", async (s) => {
    const responses = await s.callConcurrently(50, (by) => s.createWebhook(s.buildWebhook(), { by }));
    assert.equal(countResults(responses, "created"), ENABLED_LIMIT);
    assert.equal(countResults(responses, "enabled_limit"), 50 - ENABLED_LIMIT);
    assert.equal((await s.store.stats()).webhooks, ENABLED_LIMIT);
  });

  it("concurrent creates never exceed the ENABLED limit or the account limit", async (s) => {
    const requests = Array.from({ length: 60 }, (_, index) => ({
      ...s.buildCreation(s.buildWebhook({ status: index % 3 ? "ENABLED" : "DISABLED" })),
      accountLimit: 20,
    }));
    const responses = await Promise.all(
      requests.map((request, index) => s.alternate(index).createWebhook(request)),
    );
    assert.equal(countResults(responses, "created"), 20);
    const { webhooks } = await s.store.listWebhooks({ account: "clinic", limit: 100 });
    assert.equal(webhooks.length, 20);
    assert.ok(webhooks.filter(({ status }) => status === "ENABLED").length <= ENABLED_LIMIT);
    const disabled = s.buildWebhook({ status: "DISABLED" });
    const refused = await s.store.createWebhook({ ...s.buildCreation(disabled), accountLimit: 20 });
    assert.equal(refused.result, "account_limit");
    assert.equal(await s.store.getWebhook(disabled.id), undefined);
  });

  it("the account limit counts ENABLED and DISABLED webhooks of one account", async (s) => {
    const create = (fields: Partial<WebhookRecord> = {}) =>
      s.store.createWebhook({ ...s.buildCreation(s.buildWebhook(fields)), accountLimit: 3 });
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

  it("the ENABLED limit counts only the ENABLED webhooks of one account", async (s) => {
    const first = await s.register();
    await repeat(ENABLED_LIMIT - 1, () => s.register());
    await s.register({ account: "hospital" });
    await s.register({ status: "DISABLED" });
    assert.equal((await s.createWebhook(s.buildWebhook())).result, "enabled_limit");
    await s.update(first.id, { status: "DISABLED" });
    await s.register();
    assert.equal((await s.createWebhook(s.buildWebhook())).result, "enabled_limit");
    assert.equal((await s.update(first.id, { status: "ENABLED" })).result, "enabled_limit");
    assert.equal((await s.readWebhook(first.id)).status, "DISABLED");
  });

  it("removing an ENABLED webhook makes room for another", async (s) => {
    const [first] = await repeat(ENABLED_LIMIT, () => s.register());
    assert.ok(first);
    await s.remove(first.id);
    await s.register();
    assert.equal((await s.createWebhook(s.buildWebhook())).result, "enabled_limit");
  });

  it("enabling twenty webhooks concurrently leaves fifteen ENABLED", async (s) => {
    const webhooks = await repeat(20, () => s.register({ status: "DISABLED" }));
    const responses = await Promise.all(
      webhooks.map(({ id }, index) => s.update(id, { status: "ENABLED" }, { by: s.alternate(index) })),
    );
    assert.equal(countResults(responses, "updated"), ENABLED_LIMIT);
    const { webhooks: rows } = await s.store.listWebhooks({ account: "clinic", limit: 50 });
    assert.equal(rows.filter(({ status }) => status === "ENABLED").length, ENABLED_LIMIT);
  });

  it("updating an ENABLED webhook at the limit succeeds", async (s) => {
    const [first] = await repeat(ENABLED_LIMIT, () => s.register());
    assert.ok(first);
    const url = "https://subscriber.example/new";
    assert.equal((await s.update(first.id, { url, status: "ENABLED" })).result, "updated");
  });
}
