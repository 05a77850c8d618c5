/** Builds claim requests, and sends them with a span. */

import { randomBytes } from "node:crypto";
import type { Clock } from "../../core/clock.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { ClaimRequest, WebhookStore } from "../store.js";
import type { FreeSlots } from "./concurrency-budget.js";

export type ClaimedBatch = Awaited<ReturnType<WebhookStore["claim"]>>;

/** A claim request, with the state of the process when it was built. */
export interface PendingClaim {
  readonly request: ClaimRequest;
  /** Monotonic time: no lease of this claim begins earlier. */
  readonly claimedAt: number;
  readonly freedBefore: number;
}

export interface Claimer {
  readonly prepare: (room: FreeSlots, freedBefore: number) => PendingClaim;
  readonly send: (request: ClaimRequest) => Promise<ClaimedBatch>;
}

export interface ClaimerContext {
  readonly store: Pick<WebhookStore, "now" | "claim">;
  readonly clock: Clock;
  readonly telemetry: Telemetry | undefined;
  readonly leaseMs: number;
}

export function createClaimer({ store, clock, telemetry, leaseMs }: ClaimerContext): Claimer {
  const worker = randomBytes(8).toString("hex");
  let tokenCount = 0;

  return Object.freeze<Claimer>({
    prepare(room, freedBefore) {
      const now = store.now();
      const request = { now, token: `${worker}.${++tokenCount}`, leaseUntil: now + leaseMs, room };
      return { request, claimedAt: clock.monotonic(), freedBefore };
    },

    // Claims without a result get no span: there are thousands of them.
    async send(request) {
      const at = telemetry === undefined ? 0 : clock.now();
      const result = await store.claim(request);
      const { length } = result.claims;
      if (telemetry === undefined || length === 0) return result;
      const attributes = {
        "messaging.system": "postbell",
        "messaging.operation.name": "claim",
        "messaging.operation.type": "receive",
        "messaging.batch.message_count": length,
      };
      telemetry.begin?.({ name: "claim", kind: "consumer", at, attributes })?.end({ at: clock.now() });
      return result;
    },
  });
}
