/** Registrations on SQL. */

import { randomUUID } from "node:crypto";
import { changeDetails, rotateSecret } from "../../src/webhooks/store/records.js";
import type { RegistrationStore, WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { encodeAccount, encodeStoredText } from "../stored-text.js";
import type { SqlTransaction } from "./database.js";
import {
  HEALTH_COLUMNS,
  lockEndpoint,
  offerAndSave,
  reserveTurns,
  saveEndpoints,
  type Writing,
} from "./endpoint-rows.js";
import { type SqlStoreContext, writeAndWake } from "./store-context.js";
import {
  CONFIG_COLUMNS,
  decodeWebhookRow,
  encodeConfig,
  readWebhook,
  readWebhooks,
  readWebhooksOfAccount,
} from "./webhook-rows.js";
import { type EndpointRow, endpoints, hours, removals, replays, webhooks } from "./webhook-tables.js";

type CreateRequest = Parameters<WebhookStore["createWebhook"]>[0];
type CreateResult = Awaited<ReturnType<WebhookStore["createWebhook"]>>;
type UpdateRequest = Parameters<WebhookStore["updateWebhook"]>[0];

const POSITION = /^[0-9]{1,15}$/;

/** Counts the webhooks of an account, as it is stored. */
async function countWebhooks(
  transaction: SqlTransaction,
  account: string,
): Promise<{ all: number; enabled: number }> {
  const [counts] = await transaction.all<{ total: number; enabled: number }>(
    `SELECT count(*) AS total, coalesce(sum(CASE WHEN e.status = 'ENABLED' THEN 1 ELSE 0 END), 0) AS enabled
      FROM {webhooks} w JOIN {endpoints} e ON e.position = w.position WHERE w.account = $1`,
    [account],
  );
  return { all: Number(counts?.total), enabled: Number(counts?.enabled) };
}

/** Finds the result of an earlier create with the same idempotency key or id. */
async function findEarlierCreate(
  transaction: SqlTransaction,
  { webhook, idempotency, now }: CreateRequest,
  { seal }: SqlStoreContext,
): Promise<CreateResult | undefined> {
  if (idempotency) {
    const [replay] = await transaction.all<{ digest: string; webhook: string }>(
      "SELECT digest, webhook FROM {replays} WHERE account = $1 AND key = $2 AND expires_at > $3",
      [encodeStoredText(webhook.account), encodeStoredText(idempotency.key), now],
    );
    if (replay && replay.digest !== encodeStoredText(idempotency.digest)) return { result: "key_reused" };
    if (replay) {
      const record = JSON.parse(seal.open(replay.webhook, webhook.account)) as WebhookRecord;
      return { result: "replayed", webhook: record };
    }
  }
  const row = await readWebhook(transaction, webhook.id);
  return row && { result: "created", webhook: decodeWebhookRow(row, seal) };
}

const NEW_ENDPOINT = {
  lane: "slow",
  ready_at: null,
  in_flight: 0,
  slow_start: null,
  pending: 0,
  delivered: 0,
  failed: 0,
  withheld: 0,
  failed_tests: 0,
  filtered: 0,
  recent_hour: null,
  recent_succeeded: 0,
  recent_failed: 0,
  recent_duration_ms: 0,
  recent_sketch: "",
  last_attempt: null,
  claimed_second: null,
  claimed_count: null,
} as const;

async function addWebhook(
  transaction: SqlTransaction,
  { webhook, idempotency, now }: CreateRequest,
  { seal }: SqlStoreContext,
): Promise<void> {
  const { id, account } = encodeAccount(webhook);
  const [position] = await transaction.insertNumbered(
    webhooks,
    ["id", "account", "created_at", ...CONFIG_COLUMNS],
    [[id, account, webhook.createdAt, ...encodeConfig(webhook, seal)]],
  );
  const endpoint: EndpointRow = {
    ...NEW_ENDPOINT,
    position: position ?? 0,
    id,
    account,
    turn: reserveTurns(now, 1),
    status: webhook.status,
    updated_at: webhook.updatedAt,
    generation: webhook.generation,
    failing_since: webhook.failingSince,
    warned_at: webhook.warnedAt,
    notice_at: webhook.noticeAt,
    per_second: webhook.perSecond ?? null,
  };
  await transaction.insert(endpoints, Object.keys(endpoint), [Object.values(endpoint)]);
  if (!idempotency) return;
  const key = encodeStoredText(idempotency.key);
  const sealed = seal.close(JSON.stringify(webhook), webhook.account);
  await transaction.remove(replays, ["account", "key"], [[account, key]]);
  await transaction.insert(
    replays,
    ["account", "key", "digest", "webhook", "expires_at"],
    [[account, key, encodeStoredText(idempotency.digest), sealed, idempotency.expiresAt]],
  );
}

/** Returns the fields that have a value; an absent one leaves a webhook as it is. */
const omitAbsent = (fields: UpdateRequest["change"]): Partial<WebhookRecord> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** The fields that a change gives a webhook, with their effects on its health. */
function applyChange(
  record: WebhookRecord,
  { change, now }: UpdateRequest,
): WebhookRecord & { startsAgain: boolean } {
  const { url, status, eventTypes, rotation, subscriberId } = change;
  const isEnabled = status === "ENABLED" && record.status === "DISABLED";
  const isDisabled = status === "DISABLED" && record.status === "ENABLED";
  const startsAgain = isEnabled || (url !== undefined && url !== record.url);
  return {
    ...changeDetails(record, change),
    ...omitAbsent({ url, status, eventTypes, subscriberId }),
    ...(rotation && rotateSecret(record, rotation, now)),
    updatedAt: Math.max(now, record.updatedAt + 1),
    generation: record.generation + (startsAgain ? 1 : 0),
    ...((startsAgain || isDisabled) && { failingSince: null, warnedAt: null, noticeAt: null }),
    startsAgain,
  };
}

async function changeWebhook(
  transaction: SqlTransaction,
  request: UpdateRequest,
  writing: Writing,
): Promise<Awaited<ReturnType<WebhookStore["updateWebhook"]>>> {
  const { context } = writing;
  const { account, change, owner, enabledLimit } = request;
  await transaction.lock(`account ${account}`);
  const endpoint = await lockEndpoint(transaction, request);
  const [row] = endpoint ? await readWebhooks(transaction, [endpoint.position]) : [];
  if (endpoint === undefined || row === undefined) return { result: "not_found" };
  const record = decodeWebhookRow(row, context.seal);
  if (owner !== undefined && owner !== record.subscriberId) return { result: "not_owner" };
  if (change.status === "ENABLED" && record.status === "DISABLED") {
    const { enabled } = await countWebhooks(transaction, account);
    if (enabled >= enabledLimit) return { result: "enabled_limit" };
  }
  const { startsAgain, ...changed } = applyChange(record, request);
  const values = encodeConfig(changed, context.seal);
  await transaction.update(webhooks, ["position"], CONFIG_COLUMNS, [[row.position, ...values]]);
  endpoint.status = changed.status;
  endpoint.updated_at = changed.updatedAt;
  endpoint.generation = changed.generation;
  endpoint.failing_since = changed.failingSince;
  endpoint.warned_at = changed.warnedAt;
  endpoint.notice_at = changed.noticeAt;
  endpoint.per_second = changed.perSecond ?? null;
  await saveEndpoints(transaction, [endpoint], [...HEALTH_COLUMNS, "per_second"]);
  if (startsAgain) {
    endpoint.lane = "slow";
    endpoint.slow_start = null;
  }
  if (startsAgain || changed.perSecond !== record.perSecond) {
    await offerAndSave(transaction, [endpoint], writing);
  }
  const webhook = { ...changed, eventTypes: changed.eventTypes && [...changed.eventTypes] };
  return { result: "updated", webhook };
}

async function createWebhook(
  transaction: SqlTransaction,
  request: CreateRequest,
  context: SqlStoreContext,
): Promise<CreateResult> {
  const { webhook, enabledLimit, accountLimit } = request;
  const account = encodeStoredText(webhook.account);
  await transaction.lock(`account ${account}`);
  const earlier = await findEarlierCreate(transaction, request, context);
  if (earlier !== undefined) return earlier;
  const { all, enabled } = await countWebhooks(transaction, account);
  if (all >= accountLimit) return { result: "account_limit" };
  if (webhook.status === "ENABLED" && enabled >= enabledLimit) return { result: "enabled_limit" };
  await addWebhook(transaction, request, context);
  return { result: "created", webhook: structuredClone(webhook) };
}

/** Deletes webhooks whose endpoints are locked. Their deliveries are freed later. */
export async function deleteEndpoints(transaction: SqlTransaction, positions: number[]): Promise<void> {
  const keys = positions.map((position) => [position]);
  await transaction.remove(webhooks, ["position"], keys);
  await transaction.remove(endpoints, ["position"], keys);
  await transaction.remove(hours, ["endpoint"], keys);
  await transaction.insert(removals, ["endpoint"], keys, ["endpoint"]);
}

export function createSqlRegistry(context: SqlStoreContext): RegistrationStore {
  const { database, seal } = context;
  return {
    newWebhookId: () => randomUUID(),

    createWebhook: (request) => database.write((transaction) => createWebhook(transaction, request, context)),

    async getWebhook(id) {
      const row = await database.read((transaction) => readWebhook(transaction, id));
      return row && decodeWebhookRow(row, seal);
    },

    async listWebhooks({ account, cursor, limit }) {
      const after = Number(validateCursor(cursor, POSITION) || 0);
      const rows = await database.read((transaction) =>
        readWebhooksOfAccount(transaction, encodeStoredText(account), { after, limit: limit + 1 }),
      );
      const shown = rows.slice(0, limit);
      return {
        webhooks: shown.map((row) => decodeWebhookRow(row, seal)),
        next: rows.length > limit ? String(shown.at(-1)?.position ?? after) : null,
      };
    },

    updateWebhook: (request) =>
      writeAndWake(context, (transaction, after) =>
        changeWebhook(transaction, encodeAccount(request), { context, now: request.now, after }),
      ),

    removeWebhook: (request) =>
      database.write(async (transaction) => {
        const endpoint = await lockEndpoint(transaction, encodeAccount(request));
        if (endpoint === undefined) return false;
        await deleteEndpoints(transaction, [endpoint.position]);
        return true;
      }),
  };
}
