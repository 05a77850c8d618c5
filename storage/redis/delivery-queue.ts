/** Events and their deliveries until these are completed, on Redis: append, claim, settle. */

import { randomBytes } from "node:crypto";
import type { WebhookStore } from "../../src/webhooks/store.js";
import { createAppend } from "./append.js";
import { createClaiming } from "./claiming.js";
import { createEventCache } from "./event-cache.js";
import { type ClaimExchange, createClaimExchange } from "./exchange.js";
import { createFirstLeases } from "./first-leases.js";
import type { Partition } from "./partition.js";
import { createSettlements } from "./settlements.js";
import type { RedisStoreContext } from "./store-context.js";

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
  const exchangeOf = ({ number }: Partition): ClaimExchange => {
    const exchange = exchanges[number];
    if (exchange === undefined) throw new RangeError("every partition has an exchange");
    return exchange;
  };
  const settlements = createSettlements(context, exchangeOf, firstLeases, nonce);
  const claiming = createClaiming({ context, exchangeOf, settlements, firstLeases, cache });

  return {
    append: createAppend({ context, claiming, settlements, cache, nonce }),
    claim: claiming.claim,
    settle: settlements.settle,
  };
}
