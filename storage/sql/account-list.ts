/** Lists accounts on SQL, from the indexes of webhooks and of failing endpoints. */

import type { AccountListStore, AccountSummary } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { firstHourOfDay } from "../queue/recent-attempts.js";
import { decodeStoredText } from "../stored-text.js";
import { readFirstChanges } from "./changes.js";
import type { SqlTransaction } from "./database.js";
import type { SqlStoreContext } from "./store-context.js";

type ListRequest = Parameters<AccountListStore["listAccounts"]>[0];

interface AccountRow {
  account: string;
  position: number;
  failing_since: number;
}

/** Each account by its oldest webhook, so that no other index is needed. */
const ALL = `SELECT w.account, w.position, 0 AS failing_since FROM {webhooks} w
  WHERE w.position > $1 AND NOT EXISTS (
    SELECT 1 FROM {webhooks} o WHERE o.account = w.account AND o.position < w.position)
  ORDER BY w.position LIMIT $2`;

/** Each account by its webhook that fails for longest. */
const FAILING = `SELECT e.account, e.position, e.failing_since FROM {endpoints} e
  WHERE e.failing_since IS NOT NULL AND (e.failing_since, e.position) > ($1, $2) AND NOT EXISTS (
    SELECT 1 FROM {webhooks} o JOIN {endpoints} oe ON oe.position = o.position
    WHERE o.account = e.account AND oe.failing_since IS NOT NULL
      AND (oe.failing_since, oe.position) < (e.failing_since, e.position))
  ORDER BY e.failing_since, e.position LIMIT $3`;

const ENDPOINTS = `SELECT
    coalesce(sum(CASE WHEN e.status = 'DISABLED' THEN 1 ELSE 0 END), 0) AS disabled,
    coalesce(sum(CASE WHEN e.status = 'ENABLED' AND e.warned_at IS NOT NULL THEN 1 ELSE 0 END), 0) AS warned,
    coalesce(sum(CASE WHEN e.status = 'ENABLED' AND e.warned_at IS NULL AND e.failing_since IS NOT NULL THEN 1 ELSE 0 END), 0) AS failing,
    count(*) AS webhooks, coalesce(sum(e.pending), 0) AS pending,
    coalesce(sum(CASE WHEN e.recent_hour >= $2 THEN e.recent_succeeded ELSE 0 END), 0) AS succeeded,
    coalesce(sum(CASE WHEN e.recent_hour >= $2 THEN e.recent_failed ELSE 0 END), 0) AS failed
  FROM {webhooks} w JOIN {endpoints} e ON e.position = w.position WHERE w.account = $1`;

const HOURS = `SELECT coalesce(sum(h.succeeded), 0) AS succeeded, coalesce(sum(h.failed), 0) AS failed
  FROM {webhooks} w JOIN {hours} h ON h.endpoint = w.position WHERE w.account = $1 AND h.hour >= $2`;

const LAST_EVENT = "SELECT max(stored_at) AS stored_at FROM {events} WHERE account = $1";

type Sums = Record<
  "disabled" | "warned" | "failing" | "webhooks" | "pending" | "succeeded" | "failed",
  number
>;

/** Sums up pending deliveries by account that no claim has added to their endpoints yet. */
async function readAddedPending(transaction: SqlTransaction): Promise<Map<string, number>> {
  const { byEndpoint } = await readFirstChanges(transaction);
  const rows = await transaction.forEach<{ position: number; account: string }>(
    "SELECT position, account FROM {endpoints} WHERE position = $1",
    ["int"],
    [...byEndpoint.keys()].map((position) => [position]),
  );
  const added = new Map<string, number>();
  for (const { position, account } of rows)
    added.set(account, (added.get(account) ?? 0) + (byEndpoint.get(position)?.pending ?? 0));
  return added;
}

async function summarise(
  transaction: SqlTransaction,
  accounts: string[],
  now: number,
): Promise<AccountSummary[]> {
  const inDay = accounts.map((account) => [account, firstHourOfDay(now)]);
  const sums = await transaction.forEach<Sums>(ENDPOINTS, ["text", "int"], inDay);
  const hours = await transaction.forEach<Sums>(HOURS, ["text", "int"], inDay);
  const last = await transaction.forEach<{ stored_at: number | null }>(
    LAST_EVENT,
    ["text"],
    accounts.map((account) => [account]),
  );
  const added = await readAddedPending(transaction);
  return accounts.map((account, index) => {
    const sum = (name: keyof Sums): number => Number(sums[index]?.[name] ?? 0);
    const [failing, warned, disabled] = [sum("failing"), sum("warned"), sum("disabled")];
    const storedAt = last[index]?.stored_at ?? null;
    return {
      account: decodeStoredText(account),
      endpoints: { ok: sum("webhooks") - failing - warned - disabled, failing, warned, disabled },
      waiting: sum("pending") + (added.get(account) ?? 0),
      lastDay: {
        succeeded: sum("succeeded") + Number(hours[index]?.succeeded ?? 0),
        failed: sum("failed") + Number(hours[index]?.failed ?? 0),
      },
      lastEventAt: storedAt === null ? null : Number(storedAt),
    };
  });
}

/** The position of the last account, or for failing ones the time and the position. */
const CURSORS = { all: /^[0-9]{1,15}$/, failing: /^[0-9]{1,15}\.[0-9]{1,15}$/ };

async function listAccounts(
  transaction: SqlTransaction,
  { state, cursor, limit, now }: ListRequest,
): Promise<Awaited<ReturnType<AccountListStore["listAccounts"]>>> {
  const isFailing = state === "failing";
  const start = validateCursor(cursor, CURSORS[state ?? "all"]) || (isFailing ? "0.0" : "0");
  const values = [...start.split(".").map(Number), limit + 1];
  const rows = await transaction.all<AccountRow>(isFailing ? FAILING : ALL, values);
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  const next = isFailing ? `${last?.failing_since}.${last?.position}` : String(last?.position);
  return {
    accounts: await summarise(
      transaction,
      shown.map(({ account }) => account),
      now,
    ),
    next: last === undefined ? null : next,
  };
}

export const createSqlAccountList = ({ database }: SqlStoreContext): AccountListStore => ({
  listAccounts: (request) => database.read((transaction) => listAccounts(transaction, request)),
});
