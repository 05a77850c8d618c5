/** Every option of `memoryStorage`: its type for hosts, and the table of defaults and ranges. */

import { wholeNumber } from "../../src/core/options.js";

/** Options of {@link memoryStorage}. */
export interface MemoryStorageOptions {
  readonly limits?:
    | {
        /** Webhooks in all, and creates remembered for their `Idempotency-Key`. Default 100 000. */
        readonly webhooks?: number | undefined;
        /** Pending deliveries in all. Default 100 000. */
        readonly pending?: number | undefined;
        /** Pending deliveries of one account. Default 100 000. */
        readonly pendingPerAccount?: number | undefined;
        /**
         * Bytes on the heap for events, deliveries and attempts, pending or completed: their text,
         * and a measured cost of 2 000 for an event, 700 for a delivery and 200 for an attempt.
         * Default 256 MiB. At the limit, completed events are freed before their retention is over,
         * to make room for new events and for new deliveries of `resend` and `recover`. The result
         * of an attempt is never refused: if nothing can be freed, a delivery keeps its latest
         * attempt only.
         */
        readonly bytes?: number | undefined;
        /**
         * Ids of emitted events that are remembered, so that emitting one again adds nothing.
         * Default 250 000. Beyond it the oldest is forgotten before its 24 hours.
         */
        readonly rememberedIds?: number | undefined;
        /**
         * Bytes on the heap for content: the text of all records, revisions included, and 500 for
         * each. Default 512 MiB. A change that would exceed it is refused.
         */
        readonly contentBytes?: number | undefined;
      }
    | undefined;
}

export const memoryStorageOptions = {
  limits: {
    webhooks: wholeNumber("count", 100_000, { min: 1 }),
    pending: wholeNumber("count", 100_000, { min: 1 }),
    pendingPerAccount: wholeNumber("count", 100_000, { min: 1 }),
    bytes: wholeNumber("bytes", 268_435_456, { min: 1024 }),
    rememberedIds: wholeNumber("count", 250_000, { min: 1 }),
    contentBytes: wholeNumber("bytes", 536_870_912, { min: 1024 }),
  },
};
