/** Stores events with the short script append.lua, and claims in the same call. */

import type { Appended, AppendItem, ClaimingItem } from "./append-codec.js";
import { createDeliveryDecoder, encodeCommonEvent } from "./append-codec.js";
import type { AppendContext } from "./append-context.js";
import type { Origin } from "./event-cache.js";
import { decodeLeaseReply, encodeLease, type LeaseReply, NO_LEASE, toLeasedRows } from "./lease-codec.js";
import type { Partition } from "./partition.js";
import { SCRIPTS } from "./scripts.js";

/** An empty reply says that an event is not common, so that nothing was stored. */
const wasDone = (reply: unknown): boolean => (reply as unknown[]).length > 0;

/** Resolves with `undefined` if nothing was stored, because an event is not common. */
export type AppendCommon = (
  partition: Partition,
  items: readonly AppendItem[],
  claimer: ClaimingItem | undefined,
  now: number,
) => Promise<readonly Appended[] | undefined>;

export function createAppendCommon({
  context,
  bounds,
  claims,
  claimInTime,
  settlements,
  cache,
  nonce,
}: AppendContext): AppendCommon {
  const { runDurably, notifyWorkers, clock, connectionId } = context;

  /**
   * Caches an event for the claims to come. `line`: its order, the encoded ids of its webhooks, and
   * how many webhooks its account has. Returns the last two.
   */
  const cacheEvent = (
    { event, short, rememberMs }: AppendItem,
    line: string,
    origin: Origin,
    now: number,
  ): { readonly shorts: string; readonly webhooks: number } => {
    const [order = "", shorts = "", webhooks] = line.split(" ");
    const createdAt = Number.parseInt(order.slice(0, 11), 16);
    // Half the time that the id is remembered for, because the clocks of processes may differ a
    // little.
    const until = now + rememberMs / 2;
    cache.add(short, { event, createdAt, receivers: shorts.split(";").length }, origin, until);
    return { shorts, webhooks: Number(webhooks) };
  };

  /** Releases what a call leased after its caller was rejected. */
  const releaseLate = (
    late: unknown,
    partition: Partition,
    claimer: ClaimingItem | undefined,
    now: number,
  ): void => {
    if (claimer === undefined) return;
    // The client may have sent the call twice: then the second reply is empty, and the first
    // leased.
    if (!wasDone(late)) return void claims.release(partition, { ...claimer.claim, now });
    const leased = toLeasedRows(decodeLeaseReply(late as LeaseReply), claimer.claim.token);
    settlements.releaseRows(leased.rows, leased, now);
  };

  return async (partition, items, claimer, now) => {
    const lease = claimer ? encodeLease(claimer.claim) : NO_LEASE;
    const args = [...lease, ...bounds, nonce(), ...items.flatMap((item) => encodeCommonEvent(item, now))];
    const onLate = (late: unknown): void => releaseLate(late, partition, claimer, now);
    const before = connectionId();
    const { reply, confirmed } = await runDurably(SCRIPTS.append, partition, args, { now, onLate, wasDone });
    if (!wasDone(reply)) return undefined;
    const leased = decodeLeaseReply(reply as LeaseReply);
    // A caller that claims learns from `nextAt` when something is due.
    if (claimer === undefined) notifyWorkers(leased.notifyAt);
    // Expired leases are only recovered by a claim of a worker.
    if (leased.hasExpired) notifyWorkers(String(now));
    const lines = (reply as LeaseReply)[0].split("\n");
    const origin = { mark: leased.mark, connection: before === connectionId() ? before : Number.NaN };
    const stored = items.map((item, place) => cacheEvent(item, lines[place] ?? "", origin, now));
    // Also without a claimer, because the reply shows if Redis was emptied.
    const claiming = claims.toClaims(partition, leased, claimer?.claim.token ?? "", now);
    const claimed = await claimInTime(claiming, claimer?.calledAt ?? clock.monotonic(), now);
    const decodeDeliveries = createDeliveryDecoder();
    return items.map((item, place) => ({
      result: "stored",
      deliveries: decodeDeliveries(item.event.id, stored[place]?.shorts ?? ""),
      webhooks: stored[place]?.webhooks ?? 0,
      ...(confirmed !== undefined && { confirmed }),
      ...(item === claimer && { claimed }),
    }));
  };
}
