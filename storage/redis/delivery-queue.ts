/** The queue of deliveries on Redis: append, claim and settle, put together from their parts. */

import { randomBytes } from "node:crypto";
import type { WebhookStore } from "../../src/webhooks/store.js";
import { createAppend } from "./append.js";
import { createClaim } from "./claiming.js";
import { createEventCache } from "./event-cache.js";
import { type ClaimExchange, createClaimExchange } from "./exchange.js";
import { createFirstLeases } from "./first-leases.js";
import type { Partition } from "./partition.js";
import { createPartitionClaims } from "./partition-claims.js";
import { createSettlements } from "./settlements.js";
import type { RedisStoreContext } from "./store-context.js";
import { createUpkeep } from "./upkeep.js";

export function createRedisDeliveryQueue(
  context: RedisStoreContext,
): Pick<WebhookStore, "append" | "claim" | "settle"> {
  const { partitions } = context;
  const process = randomBytes(6).toString("base64url");
  let count = 0;
  const nonce = (): string => `${process}.${(++count).toString(36)}`;

  const firstLeases = createFirstLeases();
  const cache = createEventCache();
  const exchanges = partitions.all.map((partition) => createClaimExchange(context, partition, nonce));
  const getExchange = ({ number }: Partition): ClaimExchange => {
    const exchange = exchanges[number];
    if (exchange === undefined) throw new RangeError("every partition has an exchange");
    return exchange;
  };
  const settlements = createSettlements(context, getExchange, firstLeases, nonce);
  const upkeep = createUpkeep(context, getExchange, cache);
  const claims = createPartitionClaims({ context, getExchange, settlements, firstLeases, cache, upkeep });

  return {
    append: createAppend({ context, claims, settlements, cache, nonce }),
    claim: createClaim(context, claims, settlements),
    settle: settlements.settle,
  };
}
