/**
 * Settles the common kind in one statement, where the database has it: deliveries that this process
 * has claimed and that were delivered, of endpoints with no other settlement in the same call. The
 * statement checks their rows, and changes nothing if one of them is not as assumed.
 */

import type { Attempt, EndpointReport, Settlement } from "../../src/webhooks/store.js";
import { sketchDurations, toHour } from "../queue/recent-attempts.js";
import type { DeliveredBatch, DeliveredEndpoint, DeliveredRow } from "./database.js";
import { addAttempt, encodeLastAttempt } from "./delivery-rows.js";
import { reserveTurns } from "./endpoint-rows.js";
import type { SqlStoreContext } from "./store-context.js";
import type { DueRow } from "./webhook-tables.js";

/** A settlement of the common kind, with what is then known to be set. */
interface Delivered {
  settlement: Settlement;
  row: DueRow;
  attempt: Attempt;
  report: EndpointReport;
  startedAt: number;
}

/** Returns a settlement if it is of the common kind by itself. */
function toDelivered(settlement: Settlement, { claimed, retention }: SqlStoreContext): Delivered | undefined {
  const { id, webhookId, token, outcome, attempt, endpoint: report } = settlement;
  const row = claimed.get(token)?.get(id);
  if (outcome.state !== "delivered" || row === undefined || row.attempts === null) return undefined;
  if (retention.keepMs === 0 || !id.startsWith(`${webhookId}.`)) return undefined;
  const startedAt = settlement.startedAt ?? row.started_at;
  if (startedAt === null || attempt === null || report?.ok !== true) return undefined;
  return { settlement, row, attempt, report, startedAt };
}

/** True if two settlements of a webhook can be written together. */
const isAlike = (one: Delivered, other: Delivered): boolean =>
  one.settlement.account === other.settlement.account &&
  one.report.generation === other.report.generation &&
  toHour(one.settlement.now) === toHour(other.settlement.now);

/** Groups settlements by webhook; `null` for one that has another kind of settlement. */
function groupDelivered(
  settlements: Settlement[],
  context: SqlStoreContext,
): Map<string, Map<string, Delivered> | null> {
  const groups = new Map<string, Map<string, Delivered> | null>();
  for (const settlement of settlements) {
    const { id, webhookId } = settlement;
    const group = groups.get(webhookId);
    if (group === null) continue;
    const delivered = toDelivered(settlement, context);
    const [first] = group?.values() ?? [];
    if (delivered === undefined || group?.has(id) || (first && !isAlike(first, delivered)))
      groups.set(webhookId, null);
    else if (group === undefined) groups.set(webhookId, new Map([[id, delivered]]));
    else group.set(id, delivered);
  }
  return groups;
}

function sumGroup(id: string, group: Delivered[], last: Delivered): DeliveredEndpoint {
  const durations = group.map(({ attempt }) => attempt.durationMs);
  return {
    id,
    account: last.settlement.account,
    generation: last.report.generation,
    lane: last.report.lane,
    hour: toHour(last.settlement.now),
    count: group.length,
    durationMs: durations.reduce((total, durationMs) => total + durationMs),
    lastAttempt: encodeLastAttempt(last.attempt),
    sketch: sketchDurations(durations),
  };
}

const toRow = ({ settlement, row, attempt, startedAt }: Delivered): DeliveredRow => ({
  token: settlement.token,
  account: settlement.account,
  position: row.position,
  event: row.event,
  isOnly: row.is_only === 1,
  startedAt,
  endedAt: settlement.now,
  attempts: addAttempt(row.attempts ?? "", attempt),
});

/** Settles what is common in one statement. Returns the settlements that are left. */
export async function settleDelivered(
  context: SqlStoreContext,
  settlements: Settlement[],
): Promise<Settlement[]> {
  if (!context.database.settlesDelivered) return settlements;
  const endpoints: DeliveredEndpoint[] = [];
  const deliveries: DeliveredRow[] = [];
  const groups = groupDelivered(settlements, context);
  for (const [id, group] of groups) {
    const list = [...(group?.values() ?? [])];
    const last = list.at(-1);
    if (last === undefined) continue;
    endpoints.push(sumGroup(id, list, last));
    for (const delivered of list) deliveries.push(toRow(delivered));
  }
  const others = settlements.filter(({ webhookId }) => groups.get(webhookId) === null);
  const now = settlements[0]?.now ?? 0;
  if (deliveries.length === 0) return others;
  const { perEndpoint, perSecond } = context;
  const turn = reserveTurns(now, endpoints.length);
  const batch: DeliveredBatch = { now, perEndpoint, perSecond, turn, endpoints, deliveries };
  // The commit goes with the statement: one that is refused has changed nothing.
  const { settled } = await context.database.write(async (transaction) => {
    const sent = transaction.settleDelivered?.(batch) ?? Promise.resolve(undefined);
    sent.catch(() => {});
    return { settled: sent };
  });
  const result = await settled;
  if (result?.wakeAt != null) context.notifyWorkers(result.wakeAt);
  return result === undefined ? settlements : others;
}
