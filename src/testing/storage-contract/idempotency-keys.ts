/** Idempotency keys: a create that is repeated with its key returns the first webhook. */

import assert from "node:assert/strict";
import { countResults, overwriteDeep, repeat } from "./assertions.js";
import { ENABLED_LIMIT, MINUTE_MS } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** A key replays the first response until it expires. */
export function testIdempotencyKeys(it: DeclareTest): void {
  it("a repeated idempotency key returns the webhook as it was first created", async (s) => {
    const { store, peer } = s;
    const request = (digest = "body") =>
      s.buildCreation(s.buildWebhook(), { key: "key", digest, expiresAt: s.now() + 10 * MINUTE_MS });
    const first = request();
    const created = await store.createWebhook(first);
    assert.ok(created.result === "created");
    overwriteDeep(created.webhook);
    await s.update(first.webhook.id, { url: "https://subscriber.example/later" });
    const replayed = await peer.createWebhook(request());
    assert.ok(replayed.result === "replayed");
    assert.deepEqual(replayed.webhook, first.webhook);
    overwriteDeep(replayed.webhook);
    // The replay is the first response. The record shows that it is no longer up to date.
    await s.update(first.webhook.id, {
      rotation: { secret: "rotated", rotateAt: s.now() },
      subscriberId: "key-2",
    });
    const rotated = await peer.createWebhook(request());
    assert.ok(rotated.result === "replayed");
    assert.deepEqual(rotated.webhook, first.webhook);
    const { secret, subscriberId } = await s.readWebhook(first.webhook.id);
    assert.deepEqual([secret, subscriberId], ["rotated", "key-2"]);
    assert.equal((await peer.createWebhook(request("another body"))).result, "key_reused");

    const elsewhere = { ...request(), webhook: s.buildWebhook({ account: "hospital" }) };
    assert.equal((await store.createWebhook(elsewhere)).result, "created");

    await s.remove(first.webhook.id);
    const again = await store.createWebhook(request());
    assert.ok(again.result === "replayed");
    assert.deepEqual(again.webhook, first.webhook);
    assert.equal(await store.getWebhook(first.webhook.id), undefined);
    assert.equal((await store.stats()).webhooks, 1);
  });

  it("an idempotency key is remembered until it expires and no longer", async (s) => {
    const expiresAt = s.now() + 10 * MINUTE_MS;
    const create = (digest: string) => {
      const idempotency = { key: "key", digest, expiresAt: Math.max(expiresAt, s.now() + 1) };
      return s.store.createWebhook(s.buildCreation(s.buildWebhook(), idempotency));
    };
    assert.equal((await create("body")).result, "created");
    await s.advance(10 * MINUTE_MS - 1);
    assert.equal((await create("body")).result, "replayed");
    await s.advance(1);
    assert.equal((await create("another body")).result, "created");
  });

  it("concurrent creates with one idempotency key create one webhook", async (s) => {
    const idempotency = { key: "key", digest: "body", expiresAt: s.now() + MINUTE_MS };
    const responses = await s.callConcurrently(10, (by) =>
      by.createWebhook(s.buildCreation(s.buildWebhook(), idempotency)),
    );
    assert.equal(countResults(responses, "created"), 1);
    assert.equal(countResults(responses, "replayed"), 9);
    assert.equal((await s.store.stats()).webhooks, 1);
  });

  it("a create that fails at the limit does not consume its idempotency key", async (s) => {
    const [first] = await repeat(ENABLED_LIMIT, () => s.register());
    assert.ok(first);
    const create = () =>
      s.store.createWebhook(
        s.buildCreation(s.buildWebhook(), { key: "key", digest: "body", expiresAt: s.now() + MINUTE_MS }),
      );
    assert.equal((await create()).result, "enabled_limit");
    await s.remove(first.id);
    assert.equal((await create()).result, "created");
  });
}
