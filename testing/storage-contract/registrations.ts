/** The storage contract on webhooks: read, list, update, remove. */

import assert from "node:assert/strict";
import type { WebhookRecord } from "../../src/webhooks/store.js";
import { allPages, only, times, vandalise } from "./lists.js";
import { type DeclareTest, HOUR_MS, MINUTE_MS, NOTICE_MS, type Scenario } from "./scenario.js";

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

export function registrations(declare: DeclareTest): void {
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
    const from = { since: 0, dueAt: now(), everyMs: 0, now: now() };
    const request = { webhookId: id, account: "clinic", ...from, ...page };
    await assert.rejects(store.recover(request), refusal);
  });

  declare("an update changes the given fields only, and updatedAt grows each time", async (s) => {
    const webhook = await s.register({ eventTypes: ["patient.*"] });
    let before = webhook;
    for (const change of [
      { eventTypes: null },
      { url: "https://subscriber.example/new" },
      { status: "DISABLED" },
      {},
    ] as const) {
      const answer = await s.update(webhook.id, change);
      assert.ok(answer.result === "updated");
      const { updatedAt, generation } = answer.webhook;
      assert.ok(updatedAt > before.updatedAt);
      assert.deepEqual(answer.webhook, { ...before, ...change, updatedAt, generation });
      before = answer.webhook;
    }
    assert.deepEqual(await s.webhook(webhook.id), before);
    assert.equal((await s.update(s.store.newWebhookId("clinic"), {})).result, "not_found");
  });

  declare("a new secret waits until its time; what signed before goes on signing", async (s) => {
    const { id, secret: first } = await s.register();
    const secretsAfter = async (secret: string, rotateAt: number) => {
      const answer = await s.update(id, { rotation: { secret, rotateAt } });
      assert.ok(answer.result === "updated");
      assert.deepEqual(await s.webhook(id), answer.webhook);
      const { secret: stored, previousSecret, rotateAt: at } = answer.webhook;
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
    const anew = s.now() + HOUR_MS;
    assert.deepEqual(await secretsAfter("fifth", anew), ["fifth", "fourth", anew]);
    assert.deepEqual(await secretsAfter("sixth", s.now()), ["sixth", null, null]);
    assert.deepEqual(await secretsAfter("seventh", s.now() - 1), ["seventh", null, null]);
  });

  declare("of concurrent rotations one secret is stored, and the first signer keeps signing", async (s) => {
    const { id, secret: first } = await s.register();
    const rotateAt = s.now() + HOUR_MS;
    const made = Array.from({ length: 10 }, (_, index) => `secret ${index}`);
    const answers = await Promise.all(
      made.map((secret, index) =>
        s.update(id, { rotation: { secret, rotateAt } }, { by: index % 2 ? s.other : s.store }),
      ),
    );
    assert.deepEqual(new Set(answers.map(({ result }) => result)), new Set(["updated"]));
    const last = await s.webhook(id);
    assert.ok(made.includes(last.secret));
    assert.deepEqual([last.previousSecret, last.rotateAt], [first, rotateAt]);
    const updates = answers.flatMap((answer) => (answer.result === "updated" ? [answer.webhook] : []));
    assert.equal(updates.find(({ updatedAt }) => updatedAt === last.updatedAt)?.secret, last.secret);
  });

  declare("a webhook is handed over to another key, and goes on with what waits", async (s) => {
    const webhook = await s.register();
    await s.emit();
    const answer = await s.update(webhook.id, { subscriberId: "key-2" });
    assert.ok(answer.result === "updated");
    const { updatedAt } = answer.webhook;
    assert.ok(updatedAt > webhook.updatedAt);
    assert.deepEqual(answer.webhook, { ...webhook, subscriberId: "key-2", updatedAt });
    assert.deepEqual(await s.other.getWebhook(webhook.id), answer.webhook);
    assert.equal(only(await s.claim()).webhook.subscriberId, "key-2");
  });

  declare("a change in the name of a key that does not own the webhook changes nothing", async (s) => {
    const webhook = await s.register();
    const url = "https://subscriber.example/new";
    const rotation = { secret: "new", rotateAt: s.now() };
    for (const change of [{ url }, { status: "DISABLED" }, { eventTypes: null }, { rotation }] as const)
      assert.deepEqual(await s.update(webhook.id, change, { owner: "key-2" }), { result: "not_owner" });
    assert.deepEqual(await s.webhook(webhook.id), webhook);
    const absent = await s.update(s.store.newWebhookId("clinic"), { url }, { owner: "key-1" });
    assert.equal(absent.result, "not_found");
    assert.equal((await s.update(webhook.id, { url }, { owner: "key-1" })).result, "updated");
  });

  declare("no change of the former owner is applied after a webhook was handed over", async (s) => {
    const { id } = await s.register();
    const change = (index: number) =>
      s.update(
        id,
        { url: `https://subscriber.example/of-key-1/${index}` },
        { owner: "key-1", by: index % 2 ? s.other : s.store },
      );
    const before = [change(1), change(2), change(3)];
    const handedOver = s.update(id, { subscriberId: "key-2", url: "https://subscriber.example/of-key-2" });
    const answers = await Promise.all([...before, change(4), change(5), change(6)]);
    assert.ok((await handedOver).result === "updated");
    for (const { result } of answers) assert.ok(result === "updated" || result === "not_owner");
    const { subscriberId, url } = await s.webhook(id);
    assert.deepEqual([subscriberId, url], ["key-2", "https://subscriber.example/of-key-2"]);
  });

  declare("a webhook named with another account is like an unknown one", async (s) => {
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
    assert.deepEqual(await s.webhook(webhook.id), webhook);
    assert.deepEqual(await s.store.stats(), before);
    assert.deepEqual(await s.claim(), []);
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
      const { webhooks } = await s.store.claimHealthNotifications({
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
    await s.tidy();
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
    await s.tidy();
    const stats = await s.store.stats();
    assert.deepEqual([stats.webhooks, stats.pending, stats.leased, stats.ended], [0, 0, 0, 0]);
  });

  declare(
    "removing the last receiver ends an event, which is kept for the retention",
    async (s) => {
      const { id } = await s.register();
      const { id: newer } = await s.register({ status: "DISABLED" });
      await s.emit();
      await s.remove(id);
      await s.advance(HOUR_MS - 1);
      await s.tidy();
      assert.equal((await s.store.stats()).events, 1);
      assert.equal((await s.recover(newer))?.count, 1);
      assert.equal((await s.store.listDeliveries({ webhookId: newer, limit: 5 })).deliveries.length, 1);
    },
    { retention: { ms: HOUR_MS, events: 10_000 } },
  );
}
