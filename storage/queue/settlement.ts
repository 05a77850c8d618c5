/**
 * Decides about the settlements of deliveries. Pure. Memory and SQL call these functions. On Redis
 * `scripts/lib/settlement.lua` repeats them; `vectors.json` proves the two equal.
 */

import type { DeliveryState, Settlement, SettleResult } from "../../src/webhooks/store.js";

/**
 * Decides if a settlement is recorded. A 2xx that was read is a fact, whoever reports it; anything
 * else counts only from the holder of the lease.
 *
 * @param token the token of the lease; `null` if the delivery is not leased
 */
export function classifySettlement(
  state: DeliveryState,
  token: string | null,
  settlement: Pick<Settlement, "outcome" | "token">,
): SettleResult {
  if (state === "delivered" || state === "withheld") return "gone";
  if (settlement.outcome.state === "delivered") return "settled";
  if (state !== "pending") return "gone";
  return token === settlement.token ? "settled" : "stale";
}
