/** Events and their deliveries until these are completed, on Redis: append, claim, settle. */

import { randomBytes } from "node:crypto";
import type { WebhookStore } from "../../src/webhooks/store.js";
import { createAppend } from "./append.js";
import type { RedisBinding } from "./binding.js";
import { createClaiming } from "./claiming.js";
import { createEventCache } from "./event-cache.js";
import { type ClaimExchange, createClaimExchange } from "./exchange.js";
import { createFirstLeases } from "./first-leases.js";
import type { Partition } from "./partition.js";
import { createSettlements } from "./settlements.js";

export function createRedisDeliveryQueue(
  binding: RedisBinding,
): Pick<WebhookStore, "append" | "claim" | "settle"> {
  const { partitions } = binding;
  const process = randomBytes(6).toString("base64url");
  let count = 0;
  const nonce = (): string => `${process}.${(++count).toString(36)}`;

  const firstLeases = createFirstLeases();
  const cache = createEventCache();
  const exchanges = partitions.all.map((partition) => createClaimExchange(binding, partition, nonce));
  const exchangeOf = ({ number }: Partition): ClaimExchange => {
    const exchange = exchanges[number];
    if (exchange === undefined) throw new RangeError("every partition has an exchange");
    return exchange;
  };
  const settlements = createSettlements(binding, exchangeOf, firstLeases, nonce);
  const claiming = createClaiming({ binding, exchangeOf, settlements, firstLeases, cache });

  return {
    append: createAppend({ binding, claiming, settlements, cache, nonce }),
    claim: claiming.claim,
    settle: settlements.settle,
  };
}
