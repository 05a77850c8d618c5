/** Names that differ in characters which a backend may change, fold or cut off: none is another. */

import assert from "node:assert/strict";
import { only, repeat } from "./assertions.js";
import { MINUTE_MS } from "./builders.js";
import { type DeclareTest, readDeliveryLog } from "./fixture.js";
import { addEntries, readAuditLog } from "./long-logs.js";

export const SIMILAR_NAMES = [
  // Lone surrogates have no form in UTF-8, and encoders write U+FFFD for all of them.
  "t",
  "t\ufffd",
  "t\ud800",
  "t\udbff",
  "t\udc00",
  "t\ud800t",
  "t\u0000",
  "t\u0000t",
  '\u0001"t"',
  "T",
  "t ",
  " t",
  "t\n",
  "t\u200b",
  "t\u00ad",
  "\u00e9",
  "e\u0301",
  "\ufb01",
  "fi",
  "\u0131",
  "i",
  "stra\u00dfe",
  "strasse",
  "t%",
  "t_",
  "t*",
  "t,",
  "t/",
  "t|",
  "t\\ud800",
  "%ED%A0%80",
];

/** Declares the tests of names that are nearly the same. */
export function testSimilarNames(it: DeclareTest): void {
  it("accounts with similar names see only their own webhooks and events", async (s) => {
    const { id } = s.buildEvent();
    const webhooks = await repeat(SIMILAR_NAMES.length, (index) =>
      s.register({ account: SIMILAR_NAMES[index] ?? "" }),
    );
    for (const [index, account] of SIMILAR_NAMES.entries()) {
      const webhook = webhooks[index];
      const event = s.buildEvent({ id, account });
      const stored = await s.append(event);
      assert.ok(stored.result === "stored");
      assert.deepEqual(stored.deliveries, [{ id: `${webhook?.id}.${id}`, webhookId: webhook?.id }]);
      assert.equal((await s.append(event, { by: s.peer })).result, "duplicate");
      assert.deepEqual(await s.peer.getEvent({ account, id }), { ...event, storedAt: s.now() });
      const claim = only(await s.claim());
      assert.deepEqual([claim.event, claim.webhook.account], [event, account]);
      assert.equal(await s.fail(claim), "settled");
    }
    for (const [index, account] of SIMILAR_NAMES.entries()) {
      const listed = (await s.peer.listWebhooks({ account, limit: 5 })).webhooks;
      assert.deepEqual([only(listed).id, only(listed).account], [webhooks[index]?.id, account]);
    }
  });

  it("accounts with similar names have audit logs of their own", async (s) => {
    if (s.store.addAuditEntries === undefined) return;
    for (const account of SIMILAR_NAMES)
      await addEntries(s, s.store, { accounts: [account], count: 3, keep: 2 });
    for (const account of SIMILAR_NAMES) {
      const log = await readAuditLog(s.peer, account, 1);
      assert.deepEqual(
        log.map((entry) => entry.account),
        [account, account],
      );
    }
  });

  it("a webhook named with a similar account does not exist", async (s) => {
    const { id: webhookId } = await s.register({ account: "t\ud800" });
    const { event } = await s.emit({ account: "t\ud800" });
    const deliveryId = `${webhookId}.${event.id}`;
    for (const account of SIMILAR_NAMES.filter((name) => name !== "t\ud800")) {
      assert.equal((await s.update(webhookId, { status: "DISABLED" }, { account })).result, "not_found");
      assert.equal(await s.resend(deliveryId, { account }), undefined);
      assert.equal(await s.recover(webhookId, { account }), undefined);
      assert.equal(await s.remove(webhookId, { account }), false);
    }
    const claim = only(await s.claim());
    assert.equal(await s.settle(claim, { state: "delivered" }, { account: "t\ufffd" }), "gone");
    const { failingSince } = await s.readWebhook(webhookId);
    assert.equal(failingSince, null);
    await s.fail(claim);
    const failing = await s.readWebhook(webhookId);
    const step = { id: webhookId, failingSince: failing.failingSince ?? 0 };
    assert.equal(await s.settleHealthStep(step, { account: "t\ufffd" }), false);
    assert.equal(await s.settleHealthStep(step, { account: "t\ud800" }), true);
    assert.equal(await s.resend(deliveryId), `${deliveryId}.1`);
    assert.equal(await s.remove(webhookId), true);
  });

  it("keys with similar ids own only their own webhooks", async (s) => {
    for (const subscriberId of SIMILAR_NAMES) {
      const { id } = await s.register({ account: "t\ud800", subscriberId, status: "DISABLED" });
      assert.equal((await s.peer.getWebhook(id))?.subscriberId, subscriberId);
      for (const owner of SIMILAR_NAMES.filter((name) => name !== subscriberId)) {
        assert.equal((await s.update(id, { status: "DISABLED" }, { owner })).result, "not_owner");
      }
      assert.equal((await s.update(id, { status: "DISABLED" }, { owner: subscriberId })).result, "updated");
      await s.update(id, { subscriberId: "t\udc00" });
      assert.equal((await s.readWebhook(id)).subscriberId, "t\udc00");
      await s.remove(id);
    }
  });

  it("similar idempotency keys, and accounts and keys that read the same together, are distinct", async (s) => {
    const pairs: [account: string, key: string][] = [
      ["t", "key\ufffd"],
      ["t", "key\ud800"],
      ["t", "key\udc00"],
      ["t", "key\u0000"],
      ["a\u0000b", "c"],
      ["a", "b\u0000c"],
      ["1 a", "b"],
      ["1", " ab"],
    ];
    for (const [account, key] of pairs) {
      const request = () =>
        s.buildCreation(s.buildWebhook({ account, status: "DISABLED" }), {
          key,
          digest: "digest",
          expiresAt: s.now() + MINUTE_MS,
        });
      const first = request();
      assert.equal((await s.store.createWebhook(first)).result, "created");
      assert.deepEqual(await s.peer.createWebhook(request()), { result: "replayed", webhook: first.webhook });
    }
  });

  it("types, subjects and URLs with lone surrogates and NUL are returned as they were stored", async (s) => {
    const texts = ["x\ud800", "x\udc00", "x\ufffd", "x\u0000"];
    const webhook = await s.register({ eventTypes: texts, url: "https://subscriber.example/\ud800" });
    assert.deepEqual(await s.peer.getWebhook(webhook.id), webhook);
    const { id: failing } = await s.register({ eventTypes: [texts[0] ?? ""] });
    for (const text of texts) {
      const { event } = await s.emit({ type: text, subject: text });
      const claims = await s.claim();
      assert.equal(claims.length, text === texts[0] ? 2 : 1);
      for (const claim of claims) {
        assert.deepEqual(claim.event, event);
        await s.fail(claim);
      }
      const logged = only(await readDeliveryLog(s, { webhookId: webhook.id, type: text }));
      assert.deepEqual([logged.type, logged.subject, logged.eventId], [text, text, event.id]);
    }
    assert.equal((await s.recover(failing))?.count, 1);
  });
}
