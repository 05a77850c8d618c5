/** Counts what a webhook store on SQL holds. */

import type { StoreStats } from "../../src/webhooks/store.js";
import { type CountChange, readAllChanges, type SummedChanges } from "./changes.js";
import type { SqlTransaction } from "./database.js";

/** Counting more would take long. A gauge that stays at this figure says enough. */
const MOST_COUNTED = 100_000;

const ENDPOINTS = `SELECT count(*) AS webhooks,
    coalesce(sum(pending), 0) AS pending, coalesce(sum(in_flight), 0) AS leased, coalesce(sum(delivered + failed + withheld), 0) AS ended,
    coalesce(sum(CASE WHEN status = 'DISABLED' THEN 1 ELSE 0 END), 0) AS disabled,
    coalesce(sum(CASE WHEN status = 'ENABLED' AND warned_at IS NOT NULL THEN 1 ELSE 0 END), 0) AS warned,
    coalesce(sum(CASE WHEN status = 'ENABLED' AND warned_at IS NULL AND failing_since IS NOT NULL THEN 1 ELSE 0 END), 0) AS failing
  FROM {endpoints}`;

const POSITIONS = "SELECT position FROM {endpoints}";

const DUE = `SELECT count(*) AS due FROM (
  SELECT 1 FROM {endpoints} ep JOIN {queue} q ON q.endpoint = ep.position AND q.at <= $1
  WHERE ep.in_flight < coalesce(ep.slow_start, $2) AND ep.in_flight < $2 LIMIT ${MOST_COUNTED}) AS due`;

type Counts = Readonly<Record<string, number>>;

/** Adds up the changes of endpoints that are still there. */
async function sumOfEndpoints(
  transaction: SqlTransaction,
  { byEndpoint }: SummedChanges,
): Promise<CountChange> {
  const total = { pending: 0, delivered: 0, failed: 0, withheld: 0, failed_tests: 0 };
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

export async function readStoreStats(
  transaction: SqlTransaction,
  now: number,
  perEndpoint: number,
): Promise<StoreStats> {
  const [all] = await transaction.all<Counts>(ENDPOINTS);
  const changes = await readAllChanges(transaction);
  const added = await sumOfEndpoints(transaction, changes);
  const [totals] = await transaction.all<Counts>(
    "SELECT events, bytes FROM {totals} WHERE name = 'webhooks'",
  );
  const [due] = await transaction.all<Counts>(DUE, [now, perEndpoint]);
  const sum = (name: string, ...rows: readonly (Counts | undefined)[]): number =>
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
    due: sum("due", due),
    endpoints: { ok: webhooks - endpoints.failing - endpoints.warned - endpoints.disabled, ...endpoints },
    ended: sum("ended", all) + added.delivered + added.failed + added.withheld,
    bytes: sum("bytes", totals) + changes.bytes,
  };
}
