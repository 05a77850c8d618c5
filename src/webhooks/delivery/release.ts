/** Gives claims back to the storage without an attempt. */

import type { Logger } from "../../core/logger.js";
import type { Claim, Settlement, WebhookStore } from "../store.js";
import { reschedule } from "./attempt-result.js";

/**
 * Never rejects: at worst the leases expire. The deliveries are due after `delayMs`, by default
 * now.
 */
export type ReleaseClaims = (claims: readonly Claim[], delayMs?: number) => Promise<void>;

const toSettlement = (claim: Claim, now: number, delayMs: number): Settlement => ({
  id: claim.id,
  webhookId: claim.webhook.id,
  account: claim.webhook.account,
  token: claim.token,
  now,
  outcome: reschedule(claim, now + Math.round(delayMs)),
  startedAt: claim.startedAt,
  attempt: null,
  endpoint: null,
});

export function createRelease(
  store: Pick<WebhookStore, "now" | "partitionOf" | "settle">,
  logger: Logger,
): ReleaseClaims {
  const releasePartition = async (claims: readonly Claim[], delayMs: number): Promise<void> => {
    const now = store.now();
    try {
      await store.settle(claims.map((claim) => toSettlement(claim, now, delayMs)));
    } catch (error) {
      for (const { id } of claims)
        logger.warn({ delivery: id, error }, "a claim could not be released; its lease will expire");
    }
  };

  return async (claims, delayMs = 0) => {
    const byPartition = new Map<number, Claim[]>();
    for (const claim of claims) {
      const partition = store.partitionOf(claim.webhook.id);
      const known = byPartition.get(partition);
      if (known === undefined) byPartition.set(partition, [claim]);
      else known.push(claim);
    }
    await Promise.all([...byPartition.values()].map((own) => releasePartition(own, delayMs)));
  };
}
