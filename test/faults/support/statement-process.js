// Calls every method of a store that writes, in a fixed order, and dies at the statement that
// CRASH_AT names. Started again, it repeats the call that was not answered, and goes on.
import { appendFileSync } from "node:fs";
import { systemClock } from "postbell";
import { openStorage } from "./open-storage.js";

const {
  storage: address,
  journal,
  from = 0,
  crashAt = 0,
  isSent = false,
} = JSON.parse(process.env.STATEMENT_OPTIONS ?? "{}");

const crash = () => process.kill(process.pid, "SIGKILL");

let statements = 0;
/** Counts a statement, and dies before it or while the database carries it out. */
const count = (run) => {
  statements += 1;
  if (statements !== crashAt) return run();
  if (!isSent) crash();
  const result = run();
  // Data that was written to a socket in this turn is sent.
  setImmediate(crash);
  return result;
};

const T0 = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const ACCOUNT = "clinic";
const ENDPOINTS = ["wh-a", "wh-b"];

const webhookOf = (id, now) => ({
  ...{ id, account: ACCOUNT, subscriberId: "key-1", url: `https://hooks.example.com/${id}` },
  ...{ status: "ENABLED", eventTypes: null, createdAt: now, updatedAt: now, secret: `whsec_${id}` },
  ...{ previousSecret: null, rotateAt: null, generation: 1 },
  ...{ failingSince: null, warnedAt: null, noticeAt: null },
});
const create = (id, key) => (store, now) =>
  store.createWebhook({
    webhook: webhookOf(id, now),
    enabledLimit: 15,
    accountLimit: 100,
    idempotency: { key, digest: "digest", expiresAt: T0 + 1_000 * HOUR_MS },
    now,
  });
const append = (id) => (store, now) =>
  store.append({
    events: [{ id, account: ACCOUNT, type: "patient.updated", digest: id, payload: `{"id":"${id}"}` }],
    rememberMs: 1_000 * HOUR_MS,
    now,
  });
/** Takes everything that is due, and reports `ok` or a failure for each. */
const deliver = (isOk) => async (store, now) => {
  const room = { fast: 50, slow: 50 };
  const token = `token.${now}`;
  const { claims } = await store.claim({ now, token, leaseUntil: now + HOUR_MS / 4, room });
  const settlements = claims.map(({ id, webhook, step, lane, startedAt }) => {
    const ok = isOk(webhook.id);
    const status = ok ? 204 : 500;
    return {
      ...{ id, webhookId: webhook.id, account: ACCOUNT, token, now, startedAt: startedAt ?? now },
      outcome: ok
        ? { state: "delivered" }
        : { state: "pending", step: step + 1, dueAt: T0 + 900 * HOUR_MS, postponed: 0, crashes: 0 },
      attempt: {
        ...{ at: now, kind: ok ? "delivered" : "failed", durationMs: 1, step, isExtra: false, status },
        ...{ code: `HTTP_${status}`, excerpt: null },
      },
      endpoint: { ok, generation: webhook.generation, at: now, noticeAt: now + HOUR_MS, lane },
    };
  });
  await store.settle(settlements);
};
const put = (key, expectedVersion, body, unique) => ({
  key,
  expectedVersion,
  record: { columns: JSON.stringify({ body }), body, unique },
});
const commit =
  (...writes) =>
  (_, __, content) =>
    content.commit(writes);

const STEPS = [
  create("wh-a", "key-a"),
  create("wh-b", "key-b"),
  append("e1"),
  deliver((id) => id === "wh-a"),
  append("e2"),
  append("e3"),
  deliver((id) => id === "wh-a"),
  (store, now) =>
    store.updateWebhook({
      ...{ id: "wh-b", account: ACCOUNT, enabledLimit: 15, now },
      change: { url: "https://hooks.example.com/new" },
    }),
  commit(put("post/1", 0, "one", ["slug/one"]), put("post/2", 0, "two", ["slug/two"])),
  commit(put("post/1", 1, "three", ["slug/three"]), { key: "post/2", expectedVersion: 1, record: null }),
  (store, now) => store.removeWebhook({ id: "wh-a", account: ACCOUNT, now }),
  deliver(() => false),
  deliver(() => false),
];

const logger = { debug() {}, info() {}, warn() {}, error() {} };
const storage = await openStorage(address, { count });
const store = storage.webhooks({
  ...{ clock: systemClock, logger, perEndpoint: 5 },
  retention: { keepMs: 2_000 * HOUR_MS, events: 10_000 },
});
const content = storage.content({ clock: systemClock, logger });

for (const [index, step] of STEPS.entries()) {
  if (index < from) continue;
  // A repeated call comes late, when the leases of the process that died are over.
  const now = T0 + (2 * index + (index === from && from > 0 ? 1 : 0)) * HOUR_MS;
  await step(store, now, content);
  appendFileSync(journal, `${index}\n`);
}

const deliveries = [];
for (const webhookId of ENDPOINTS) {
  const { deliveries: own } = await store.listDeliveries({ webhookId, limit: 50 });
  for (const { id, state, step, attempts } of own) deliveries.push([id, state, step, attempts.length]);
}
const { webhooks, events, pending, leased, ended } = await store.stats();
const records = await content.read(["post/1", "post/2"]);
const holds = {
  ...{ webhooks, events, pending, leased, ended },
  deliveries: deliveries.map(String).sort(),
  urls: (await Promise.all(ENDPOINTS.map((id) => store.getWebhook(id)))).map((webhook) => webhook?.url),
  records: records.map((record) => record && [record.body, record.version, ...record.unique]),
};
await storage.close();
process.send({ statements, holds });
process.disconnect();
