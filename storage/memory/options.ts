/** Every option of `memoryStorage`: its type for hosts, and the table of defaults and ranges. */

import { wholeNumber } from "../../src/core/options.js";

/** Options of {@link memoryStorage}. */
export interface MemoryStorageOptions {
  limits?:
    | {
        /** Webhooks in all, and creates remembered for their `Idempotency-Key`. Default 100 000. */
        webhooks?: number | undefined;
        /** Pending deliveries in all. Default 100 000. */
        pending?: number | undefined;
        /** Pending deliveries of one account. Default 100 000. */
        pendingPerAccount?: number | undefined;
        /**
         * Heap for events, deliveries and attempts; at the limit, completed events are removed
         * early to make room. Default 256 MiB. Counted are their text, and a measured cost of 2 000
         * bytes for an event, 700 for a delivery and 200 for an attempt. The result of an attempt
         * is never refused: if nothing can be freed, a delivery keeps its latest attempt only.
         */
        bytes?: number | undefined;
        /**
         * Emitted ids remembered for 24 hours; beyond it the oldest is forgotten earlier. Emitting
         * a remembered id again adds nothing. Default 250 000.
         */
        rememberedIds?: number | undefined;
        /**
         * Heap for content, revisions included; beyond it, changes are refused with 503. Default
         * 512 MiB. Counted are the text of all records, and 500 bytes for each.
         */
        contentBytes?: number | undefined;
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
