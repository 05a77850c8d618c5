/**
 * Settles the common kind in one statement, where the database has it: deliveries that this process
 * has claimed and that were delivered, of endpoints with no other settlement in the same call. The
 * statement checks their rows, and changes nothing if one of them is not as assumed.
 */

import type { Attempt, EndpointReport, Settlement } from "../../src/webhooks/store.js";
import { sketchDurations, toHour } from "../queue/recent-attempts.js";
import type { DeliveredBatch, DeliveredRow } from "./database.js";
import { reserveTurns } from "./endpoint-rows.js";
import { addAttempt, encodeLastAttempt } from "./settle-decision.js";
import type { SqlStoreContext } from "./store-context.js";
import type { DueRow } from "./webhook-tables.js";

/** A settlement of the common kind, with what is known to be set. */
interface Delivered {
  readonly settlement: Settlement;
  readonly row: DueRow;
  readonly attempt: Attempt;
  readonly seen: EndpointReport;
  readonly startedAt: number;
}

/** The settlements of one endpoint. */
interface Sum {
  readonly first: Delivered;
  last: Delivered;
  readonly ids: Set<string>;
  readonly durations: number[];
  /** False if they cannot be written together. */
  isCommon: boolean;
}

/** Returns a settlement if it is of the common kind by itself. */
function toDelivered(settlement: Settlement, { claimed, retention }: SqlStoreContext): Delivered | undefined {
  const { id, webhookId, token, outcome, attempt, endpoint: seen } = settlement;
  const row = claimed.get(token)?.get(id);
  if (outcome.state !== "delivered" || row === undefined || row.attempts === null) return undefined;
  if (retention.ms === 0 || !id.startsWith(`${webhookId}.`)) return undefined;
  const startedAt = settlement.startedAt ?? row.started_at;
  if (startedAt === null || attempt === null || seen?.ok !== true) return undefined;
  return { settlement, row, attempt, seen, startedAt };
}

/** Adds a settlement to those of its endpoint. */
function add(sum: Sum, next: Delivered): void {
  const { settlement, seen } = sum.first;
  const { id, account, now } = next.settlement;
  const isSame =
    account === settlement.account &&
    next.seen.generation === seen.generation &&
    toHour(now) === toHour(settlement.now);
  if (!isSame || sum.ids.has(id)) sum.isCommon = false;
  sum.ids.add(id);
  sum.last = next;
  sum.durations.push(next.attempt.durationMs);
}

/** Groups settlements by webhook; `undefined` if one of them is not of the common kind. */
function sumDelivered(
  settlements: readonly Settlement[],
  context: SqlStoreContext,
): { readonly sums: ReadonlyMap<string, Sum | undefined>; readonly found: readonly Delivered[] } {
  const sums = new Map<string, Sum | undefined>();
  const found: Delivered[] = [];
  for (const settlement of settlements) {
    const { id, webhookId } = settlement;
    const own = toDelivered(settlement, context);
    const sum = sums.get(webhookId);
    if (own === undefined) sums.set(webhookId, undefined);
    else if (sum !== undefined) add(sum, own);
    else if (!sums.has(webhookId)) {
      const { durationMs } = own.attempt;
      sums.set(webhookId, {
        first: own,
        last: own,
        ids: new Set([id]),
        durations: [durationMs],
        isCommon: true,
      });
    }
    if (own !== undefined) found.push(own);
  }
  return { sums, found };
}

/** Divides settlements, by endpoint, into a batch of the common kind and others. */
function listDelivered(
  settlements: readonly Settlement[],
  context: SqlStoreContext,
): { readonly batch: DeliveredBatch | undefined; readonly others: readonly Settlement[] } {
  const { sums, found } = sumDelivered(settlements, context);
  const isOther = ({ webhookId }: Settlement): boolean => sums.get(webhookId)?.isCommon !== true;
  const common = found.filter(({ settlement }) => !isOther(settlement));
  const others = settlements.filter(isOther);
  const [head] = common;
  if (head === undefined) return { batch: undefined, others };
  const { now } = head.settlement;
  const endpoints = [...sums].flatMap(([id, sum]) => {
    if (sum?.isCommon !== true) return [];
    const { attempt, seen, settlement } = sum.last;
    return {
      id,
      account: settlement.account,
      generation: seen.generation,
      lane: seen.lane,
      hour: toHour(settlement.now),
      count: sum.ids.size,
      durationMs: sum.durations.reduce((total, durationMs) => total + durationMs),
      lastAttempt: encodeLastAttempt(attempt),
      sketch: sketchDurations(sum.durations),
    };
  });
  const deliveries = common.map(
    ({ settlement, row, attempt, startedAt }): DeliveredRow => ({
      token: settlement.token,
      account: settlement.account,
      position: row.position,
      event: row.event,
      isOnly: row.event_deliveries === 1,
      startedAt,
      endedAt: settlement.now,
      attempts: addAttempt(row.attempts ?? "", attempt),
    }),
  );
  const { perEndpoint, perSecond } = context;
  const turn = reserveTurns(now, endpoints.length);
  return { batch: { now, perEndpoint, perSecond, turn, endpoints, deliveries }, others };
}

/** Settles what is common in one statement. Returns the settlements that are left. */
export async function settleDelivered(
  context: SqlStoreContext,
  settlements: readonly Settlement[],
): Promise<readonly Settlement[]> {
  if (!context.database.hasDeliveryStatements) return settlements;
  const { batch, others } = listDelivered(settlements, context);
  if (batch === undefined) return others;
  // The commit goes with the statement: one that is refused has changed nothing.
  const { settled } = await context.database.write(async (transaction) => {
    const own = transaction.settleDelivered?.(batch) ?? Promise.resolve(undefined);
    own.catch(() => {});
    return { settled: own };
  });
  const result = await settled;
  if (result?.wakeAt != null) context.notifyWorkers(result.wakeAt);
  return result === undefined ? settlements : others;
}
