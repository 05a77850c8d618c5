/** Secrets and owners: rotation, transfer to another key, and accounts. */

import assert from "node:assert/strict";
import type { SecretRotation } from "../../webhooks/store.js";
import { only } from "./assertions.js";
import { HOUR_MS, MINUTE_MS } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** A new secret takes effect at `rotateAt`; until then the previous one signs. */
export function testSecretRotation(it: DeclareTest): void {
  it("the previous secret stays until rotateAt, however often it is rotated before", async (s) => {
    const { id, secret: first } = await s.register();
    const secretsAfter = async (secret: string, rotateAt: number) => {
      const response = await s.update(id, { rotation: { secret, rotateAt } });
      assert.ok(response.result === "updated");
      assert.deepEqual(await s.readWebhook(id), response.webhook);
      const { secret: stored, previousSecret, rotateAt: at } = response.webhook;
      return [stored, previousSecret, at];
    };
    const soon = s.now() + HOUR_MS;
    assert.deepEqual(await secretsAfter("second", soon), ["second", first, soon]);
    await s.advance(MINUTE_MS);
    const later = s.now() + HOUR_MS;
    assert.deepEqual(await secretsAfter("third", later), ["third", first, later]);
    await s.advance(HOUR_MS - 1);
    assert.deepEqual(await secretsAfter("fourth", s.now() + 1), ["fourth", first, s.now() + 1]);
    await s.advance(1);
    const fifthAt = s.now() + HOUR_MS;
    assert.deepEqual(await secretsAfter("fifth", fifthAt), ["fifth", "fourth", fifthAt]);
    assert.deepEqual(await secretsAfter("sixth", s.now()), ["sixth", null, null]);
    assert.deepEqual(await secretsAfter("seventh", s.now() - 1), ["seventh", null, null]);
  });

  it("a finished rotation leaves only the new secret, and finishing again changes nothing", async (s) => {
    const { id, secret: first } = await s.register();
    const secretsAfter = async (rotation: SecretRotation) => {
      const response = await s.update(id, { rotation });
      assert.ok(response.result === "updated");
      assert.deepEqual(await s.readWebhook(id), response.webhook);
      const { secret, previousSecret, rotateAt } = response.webhook;
      return [secret, previousSecret, rotateAt];
    };
    assert.deepEqual(await secretsAfter({ finish: true }), [first, null, null]);
    const soon = s.now() + HOUR_MS;
    assert.deepEqual(await secretsAfter({ secret: "second", rotateAt: soon }), ["second", first, soon]);
    assert.deepEqual(await secretsAfter({ finish: true }), ["second", null, null]);
    assert.deepEqual(await secretsAfter({ finish: true }), ["second", null, null]);
    assert.deepEqual(await secretsAfter({ secret: "third", rotateAt: soon }), ["third", "second", soon]);
  });

  it("concurrent rotations store one of their secrets and keep the previous one", async (s) => {
    const { id, secret: first } = await s.register();
    const rotateAt = s.now() + HOUR_MS;
    const secrets = Array.from({ length: 10 }, (_, index) => `secret ${index}`);
    const responses = await Promise.all(
      secrets.map((secret, index) =>
        s.update(id, { rotation: { secret, rotateAt } }, { by: s.alternate(index) }),
      ),
    );
    assert.deepEqual(new Set(responses.map(({ result }) => result)), new Set(["updated"]));
    const last = await s.readWebhook(id);
    assert.ok(secrets.includes(last.secret));
    assert.deepEqual([last.previousSecret, last.rotateAt], [first, rotateAt]);
    const updates = responses.flatMap((response) =>
      response.result === "updated" ? [response.webhook] : [],
    );
    assert.equal(updates.find(({ updatedAt }) => updatedAt === last.updatedAt)?.secret, last.secret);
  });
}

/** An update that names an owner or an account applies only to that one. */
export function testOwnership(it: DeclareTest): void {
  it("a webhook can be transferred to another key and keeps its pending deliveries", async (s) => {
    const webhook = await s.register();
    await s.emit();
    const response = await s.update(webhook.id, { subscriberId: "key-2" });
    assert.ok(response.result === "updated");
    const { updatedAt } = response.webhook;
    assert.ok(updatedAt > webhook.updatedAt);
    assert.deepEqual(response.webhook, { ...webhook, subscriberId: "key-2", updatedAt });
    assert.deepEqual(await s.peer.getWebhook(webhook.id), response.webhook);
    assert.equal(only(await s.claim()).webhook.subscriberId, "key-2");
  });

  it("an update on behalf of a key that does not own the webhook changes nothing", async (s) => {
    const webhook = await s.register();
    const url = "https://subscriber.example/new";
    const rotation = { secret: "new", rotateAt: s.now() };
    for (const change of [{ url }, { status: "DISABLED" }, { eventTypes: null }, { rotation }] as const)
      assert.deepEqual(await s.update(webhook.id, change, { owner: "key-2" }), { result: "not_owner" });
    assert.deepEqual(await s.readWebhook(webhook.id), webhook);
    const absent = await s.update(s.store.newWebhookId("clinic"), { url }, { owner: "key-1" });
    assert.equal(absent.result, "not_found");
    assert.equal((await s.update(webhook.id, { url }, { owner: "key-1" })).result, "updated");
  });

  it("no update of the former owner applies after the transfer of a webhook", async (s) => {
    const { id } = await s.register();
    const change = (index: number) =>
      s.update(
        id,
        { url: `https://subscriber.example/of-key-1/${index}` },
        { owner: "key-1", by: s.alternate(index) },
      );
    const before = [change(1), change(2), change(3)];
    const handedOver = s.update(id, { subscriberId: "key-2", url: "https://subscriber.example/of-key-2" });
    const responses = await Promise.all([...before, change(4), change(5), change(6)]);
    assert.ok((await handedOver).result === "updated");
    for (const { result } of responses) assert.ok(result === "updated" || result === "not_owner");
    const { subscriberId, url } = await s.readWebhook(id);
    assert.deepEqual([subscriberId, url], ["key-2", "https://subscriber.example/of-key-2"]);
  });

  it("a webhook that is named with another account is not found", async (s) => {
    const webhook = await s.register();
    await s.register({ account: "hospital" });
    const { ids } = await s.emit();
    await s.deliver(only(await s.claim()));
    const before = await s.store.stats();
    for (const account of ["hospital", "nobody", ""]) {
      assert.equal((await s.update(webhook.id, { status: "DISABLED" }, { account })).result, "not_found");
      assert.equal(await s.remove(webhook.id, { account }), false);
      assert.equal(await s.resend(only(ids), { account }), undefined);
      assert.equal(await s.recover(webhook.id, { account }), undefined);
    }
    assert.deepEqual(await s.readWebhook(webhook.id), webhook);
    assert.deepEqual(await s.store.stats(), before);
    assert.deepEqual(await s.claim(), []);
  });
}
