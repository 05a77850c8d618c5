/** The webhook store on SQL, put together from its parts. */

import { LRUCache } from "lru-cache";
import type {
  AuditLogStore,
  AuditRecord,
  EndpointHealthStore,
  Storage,
  StoreStats,
  WebhookRecord,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { countLeft } from "../queue/endpoint.js";
import { encodeAccount, encodeStoredText } from "../stored-text.js";
import { createSqlAccountList } from "./account-list.js";
import { createAppender } from "./append.js";
import { type Changes, type CountChange, readAllChanges } from "./changes.js";
import { claimDeliveries } from "./claim.js";
import { createSqlDataKeys } from "./data-keys.js";
import type { SqlTransaction } from "./database.js";
import { createSqlDeliveryLog } from "./delivery-log.js";
import {
  countSlots,
  getClaimed,
  getPerSecond,
  HEALTH_COLUMNS,
  lockEndpoint,
  saveEndpoints,
} from "./endpoint-rows.js";
import { createSqlErasure } from "./erasure.js";
import { recover } from "./recover.js";
import { createSqlRegistry } from "./registry.js";
import { resend } from "./resend.js";
import { settleDeliveries } from "./settle.js";
import {
  createClaimedDeliveries,
  forgetClaimed,
  noteWake,
  type SqlStoreContext,
  writeAndWake,
} from "./store-context.js";
import type { RowOf } from "./table.js";
import { createTidier } from "./tidier.js";
import { createWebhookCache, decodeWebhookRow, readWebhooks } from "./webhook-rows.js";
import { audit, type EndpointRow } from "./webhook-tables.js";

/** The most accounts whose webhooks a process keeps. */
const MAX_ACCOUNTS = 2_000;

export interface SqlStoreOptions {
  /** The most concurrent appends, each in a separate transaction. */
  concurrency: number;
  maxSleepMs: number;
  now: () => number;
  watch: WebhookStore["watch"];
}

export function createSqlWebhookStore(
  settings: Omit<SqlStoreContext, "webhookCache" | "receivers" | "claimed">,
  { concurrency, maxSleepMs, now, watch }: SqlStoreOptions,
): ReturnType<Storage["webhooks"]> {
  const context: SqlStoreContext = {
    ...settings,
    webhookCache: createWebhookCache(settings),
    receivers: new LRUCache({ max: MAX_ACCOUNTS }),
    claimed: createClaimedDeliveries(),
  };
  const { database } = context;
  const tidier = createTidier(context);
  const registry = createSqlRegistry(context);
  return Object.freeze<WebhookStore>({
    maxSleepMs,
    now,
    watch,
    joinsTransactions: database.join !== undefined,
    partitionOf: () => 0,
    ...registry,
    async removeWebhook(request) {
      const isRemoved = await registry.removeWebhook(request);
      if (isRemoved) tidier.noteRemoved();
      return isRemoved;
    },
    ...createSqlHealthNotifications(context),
    ...createSqlDeliveryLog(context),
    ...createSqlAuditLog(context),
    ...createSqlErasure(context),
    ...createSqlAccountList(context),
    ...createSqlDataKeys(context),
    append: createAppender(context, tidier, concurrency),
    async claim(request) {
      await tidier.tidy(request.now);
      return claimDeliveries(context, request);
    },
    async settle(reported) {
      if (reported.length === 0) return [];
      const settlements = reported.map(encodeAccount);
      const results = await settleDeliveries(context, settlements);
      forgetClaimed(context.claimed, settlements);
      const completed = settlements.filter(({ outcome }) => outcome.state !== "pending");
      tidier.noteCompleted(completed.map(({ account }) => account));
      return results;
    },
    resend: (request) =>
      writeAndWake(context, (transaction, after) =>
        resend(transaction, encodeAccount(request), { context, now: request.now, after }),
      ),
    recover: (request) =>
      writeAndWake(context, (transaction, after) =>
        recover(transaction, encodeAccount(request), { context, now: request.now, after }),
      ),
    stats: () => database.read((transaction) => readStoreStats(transaction, now(), context)),
  });
}

/** Counting more would take long. A gauge that stays at this figure says enough. */
const MAX_COUNTED = 100_000;

const ENDPOINTS = `SELECT count(*) AS webhooks,
    coalesce(sum(pending), 0) AS pending, coalesce(sum(in_flight), 0) AS leased, coalesce(sum(delivered + failed + withheld), 0) AS ended,
    coalesce(sum(CASE WHEN status = 'DISABLED' THEN 1 ELSE 0 END), 0) AS disabled,
    coalesce(sum(CASE WHEN status = 'ENABLED' AND warned_at IS NOT NULL THEN 1 ELSE 0 END), 0) AS warned,
    coalesce(sum(CASE WHEN status = 'ENABLED' AND warned_at IS NULL AND failing_since IS NOT NULL THEN 1 ELSE 0 END), 0) AS failing
  FROM {endpoints}`;

const POSITIONS = "SELECT position FROM {endpoints}";

/** The endpoints with a delivery that is due. */
const WITH_DUE =
  "SELECT * FROM {endpoints} ep WHERE EXISTS (SELECT 1 FROM {queue} q WHERE q.endpoint = ep.position AND q.at <= $1)";

/** Endpoints whose deliveries are counted in one call. */
const COUNTED_PER_CALL = 20;

const DUE = `SELECT count(*) AS due FROM (SELECT 1 FROM {queue} WHERE endpoint = $1 AND at <= $2 LIMIT ${MAX_COUNTED}) AS due`;

/** Counts what is due, of endpoints that may be served, until there are more than a gauge needs. */
async function countDue(
  transaction: SqlTransaction,
  now: number,
  { perEndpoint, perSecond }: SqlStoreContext,
): Promise<number> {
  const endpoints = await transaction.all<EndpointRow>(WITH_DUE, [now]);
  const served = endpoints.filter(
    (endpoint) =>
      countSlots(endpoint, perEndpoint) > 0 &&
      countLeft(getPerSecond(endpoint, perSecond), getClaimed(endpoint), now) > 0,
  );
  let total = 0;
  for (let from = 0; from < served.length && total < MAX_COUNTED; from += COUNTED_PER_CALL) {
    const positions = served.slice(from, from + COUNTED_PER_CALL).map(({ position }) => [position, now]);
    const counts = await transaction.forEach<{ due: number }>(DUE, ["int", "int"], positions);
    for (const { due } of counts) total += Number(due);
  }
  return Math.min(total, MAX_COUNTED);
}

type Counts = Readonly<Record<string, number>>;

/** Adds up the changes of endpoints that are still there. */
async function sumOfEndpoints(transaction: SqlTransaction, { byEndpoint }: Changes): Promise<CountChange> {
  const total = { pending: 0, delivered: 0, failed: 0, withheld: 0, failed_tests: 0, filtered: 0 };
  if (byEndpoint.size === 0) return total;
  for (const { position } of await transaction.all<{ position: number }>(POSITIONS)) {
    const change = byEndpoint.get(position);
    total.pending += change?.pending ?? 0;
    total.delivered += change?.delivered ?? 0;
    total.failed += change?.failed ?? 0;
    total.withheld += change?.withheld ?? 0;
  }
  return total;
}

async function readStoreStats(
  transaction: SqlTransaction,
  now: number,
  context: SqlStoreContext,
): Promise<StoreStats> {
  const [all] = await transaction.all<Counts>(ENDPOINTS);
  const changes = await readAllChanges(transaction);
  const added = await sumOfEndpoints(transaction, changes);
  const [totals] = await transaction.all<Counts>(
    "SELECT events, bytes FROM {totals} WHERE name = 'webhooks'",
  );
  const sum = (name: string, ...rows: (Counts | undefined)[]): number =>
    rows.reduce((total, row) => total + Number(row?.[name] ?? 0), 0);
  const webhooks = sum("webhooks", all);
  const endpoints = {
    failing: sum("failing", all),
    warned: sum("warned", all),
    disabled: sum("disabled", all),
  };
  return {
    webhooks,
    events: sum("events", totals) + changes.events,
    pending: sum("pending", all) + added.pending,
    leased: sum("leased", all),
    due: await countDue(transaction, now, context),
    endpoints: { ok: webhooks - endpoints.failing - endpoints.warned - endpoints.disabled, ...endpoints },
    ended: sum("ended", all) + added.delivered + added.failed + added.withheld,
    bytes: sum("bytes", totals) + changes.bytes,
  };
}

// Health notifications on SQL: claims the steps that are due, and records what was decided.

type HealthMethods = EndpointHealthStore;
type ClaimRequest = Parameters<WebhookStore["claimHealthNotifications"]>[0];

const NEXT_NOTICE = `SELECT min(notice_at) AS at FROM {endpoints} WHERE notice_at IS NOT NULL`;

async function claimSteps(
  transaction: SqlTransaction,
  { now, leaseUntil, limit }: ClaimRequest,
  { seal, logger }: SqlStoreContext,
): Promise<Awaited<ReturnType<WebhookStore["claimHealthNotifications"]>>> {
  const due = await transaction.all<EndpointRow>(
    `SELECT * FROM {endpoints} WHERE notice_at <= $1 ORDER BY notice_at LIMIT $2${transaction.skipLocked}`,
    [now, limit],
  );
  await saveEndpoints(
    transaction,
    due.map((endpoint) => ({ ...endpoint, notice_at: leaseUntil })),
    HEALTH_COLUMNS,
  );
  const rows = await readWebhooks(
    transaction,
    due.map(({ position }) => position),
  );
  const webhooks = rows.flatMap((row): WebhookRecord[] => {
    try {
      return [decodeWebhookRow(row, seal)];
    } catch (error) {
      logger.error({ error, webhookId: row.id }, "a stored webhook cannot be decoded; its health step waits");
      return [];
    }
  });
  const [next] = await transaction.all<{ at: number | null }>(NEXT_NOTICE);
  return { webhooks, nextAt: next?.at ?? null };
}

function createSqlHealthNotifications(context: SqlStoreContext): HealthMethods {
  return {
    async claimHealthNotifications(request) {
      // Most often nothing is due, and then nothing is written.
      const [next] = await context.database.read((transaction) =>
        transaction.all<{ at: number | null }>(NEXT_NOTICE),
      );
      const nextAt = next?.at ?? null;
      if (nextAt === null || nextAt > request.now) return { webhooks: [], nextAt };
      return context.database.write((transaction) => claimSteps(transaction, request, context));
    },

    settleHealthNotification: ({ id, account, failingSince, from, status, warnedAt, noticeAt, now }) =>
      writeAndWake(context, async (transaction, after) => {
        const endpoint = await lockEndpoint(transaction, encodeAccount({ id, account }));
        if (endpoint === undefined || endpoint.failing_since !== failingSince || endpoint.status !== from)
          return false;
        const updatedAt = status === from ? endpoint.updated_at : Math.max(now, endpoint.updated_at + 1);
        const changed = { status, warned_at: warnedAt, notice_at: noticeAt, updated_at: updatedAt };
        await saveEndpoints(transaction, [{ ...endpoint, ...changed }], HEALTH_COLUMNS);
        if (noticeAt !== null) noteWake(after, noticeAt);
        return true;
      }),
  };
}

// The audit log on SQL.

/** Beyond the entries that were added, so many more may be removed after `keep` was lowered. */
const MORE_REMOVED = 200;

const OLD_ENTRIES = `SELECT position FROM {audit} WHERE account = $1 AND is_delivery = $2 AND position <=
    (SELECT position FROM {audit} WHERE account = $1 AND is_delivery = $2
      ORDER BY position DESC LIMIT 1 OFFSET $3)
  ORDER BY position LIMIT $4`;

const AUDIT_PAGE =
  "SELECT position, at, entry, is_delivery FROM {audit} WHERE account = $1 AND position < $2 ORDER BY position DESC LIMIT $3";

const AUDIT_CURSOR = /^[0-9]{1,15}$/;

type AuditRow = Pick<RowOf<typeof audit>, "position" | "at" | "entry" | "is_delivery">;

function createSqlAuditLog({ database }: SqlStoreContext): AuditLogStore {
  return {
    addAuditEntries: ({ entries, keep }) =>
      database.write(
        async (transaction) => {
          const rows = entries.map(({ account, at, entry, isDelivery }) => [
            encodeStoredText(account),
            at,
            entry,
            isDelivery ? 1 : 0,
          ]);
          await transaction.insert(audit, ["account", "at", "entry", "is_delivery"], rows);
          const logs = [0, 1].flatMap((isDelivery) =>
            [...new Set(rows.filter((row) => row[3] === isDelivery).map(([account = ""]) => account))].map(
              (account) => [account, isDelivery],
            ),
          );
          const old = await transaction.forEach<{ position: number }>(
            OLD_ENTRIES,
            ["text", "int", "int", "int"],
            logs.map((log) => [...log, keep, rows.length + MORE_REMOVED]),
          );
          await transaction.remove(
            audit,
            ["position"],
            old.map(({ position }) => [position]),
          );
        },
        { isDurable: false },
      ),

    async listAuditEntries({ account, cursor, limit }) {
      const before = Number(validateCursor(cursor, AUDIT_CURSOR) || Number.MAX_SAFE_INTEGER);
      const rows = await database.read(
        (transaction) =>
          transaction.all<AuditRow>(AUDIT_PAGE, [encodeStoredText(account), before, limit + 1]),
        { isOneStatement: true },
      );
      const shown = rows.slice(0, limit);
      return {
        entries: shown.map(
          (row): AuditRecord => ({
            account,
            at: row.at,
            entry: row.entry,
            isDelivery: row.is_delivery === 1,
          }),
        ),
        next: rows.length > limit ? String(shown.at(-1)?.position) : null,
      };
    },
  };
}
