/** Stores events with the general script append-general.lua, which handles every case. */

import type { Appended, AppendItem, ClaimingItem, StoredResult } from "./append-codec.js";
import { createDeliveryDecoder, encodeEvent } from "./append-codec.js";
import type { AppendContext } from "./append-context.js";
import type { Partition } from "./partition.js";
import { partitionFull } from "./redis-errors.js";
import { SCRIPTS } from "./scripts.js";

/** Resolves with a result or an error for each event, in their order. */
export type AppendGeneral = (
  partition: Partition,
  items: readonly AppendItem[],
  claimer: ClaimingItem | undefined,
  now: number,
) => Promise<readonly (Appended | Error)[]>;

export function createAppendGeneral({ context, bounds, claims, claimInTime }: AppendContext): AppendGeneral {
  const { limits, runDurably, notifyWorkers } = context;

  return async (partition, items, claimer, now) => {
    const args = [...bounds, ...items.flatMap(encodeEvent)];
    const { reply, confirmed } = await runDurably(SCRIPTS.appendGeneral, partition, args, { now });
    const replies = reply as [string, string, number?][];
    notifyWorkers(String(replies[items.length]));
    const decodeDeliveries = createDeliveryDecoder();
    const appended = items.map(({ event }, place): Appended | Error => {
      const [result = "", detail = "", webhooks = 0] = replies[place] ?? [];
      if (result === "full") return partitionFull(detail, limits);
      if (result === "conflict") return { result };
      return {
        result: result as StoredResult["result"],
        deliveries: decodeDeliveries(event.id, detail),
        webhooks,
        ...(confirmed !== undefined && { confirmed }),
      };
    });
    const place = claimer ? items.indexOf(claimer) : -1;
    const own = appended[place];
    // A caller whose event was refused gets the refusal, and no claims.
    if (claimer === undefined || !own || own instanceof Error || own.result === "conflict") return appended;
    const claiming = claims.lease(partition, { ...claimer.claim, now });
    return appended.with(place, { ...own, claimed: await claimInTime(claiming, claimer.calledAt, now) });
  };
}
