/** `postbell/memory`: a storage on the heap of this process, for tests and small hosts. What it holds ends with the process. */

import { silentLogger } from "../../src/logger.js";
import { readOptions, wholeNumber } from "../../src/options.js";
import type { Storage } from "../../src/webhooks/store.js";
import { createState } from "./state.js";
import { createWebhookStore } from "./webhook-store.js";

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
         * Bytes on the heap for events, deliveries and attempts, pending or kept: their text, and a measured cost of 2 000 for an event, 700 for a delivery and
         * 200 for an attempt. Default 256 MiB. Ended events give way to new ones, and to new deliveries of `resend` and `recover`, before their retention is over.
         * What came of an attempt is never refused: where nothing can give way, a delivery keeps its latest attempt only.
         */
        readonly bytes?: number | undefined;
        /** Emitted ids remembered so that emitting again adds nothing. Default 250 000; beyond it the oldest is forgotten before its 24 hours. */
        readonly rememberedIds?: number | undefined;
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
  },
};

/**
 * A storage in memory. It bounds itself: what would pass a limit is refused with `storage_full`, and nothing of it is stored.
 *
 * Guarantee: everything the storage contract asks, until the process ends; then pending deliveries are lost.
 * Its time is the wall clock's at the first look, and from there on goes with the monotonic clock: setting the wall clock moves nothing.
 * `close()` logs how many pending deliveries end with it.
 * Errors: `invalid_option` for an unknown or unusable option.
 */
export function memoryStorage(options: MemoryStorageOptions = {}): Storage {
  const { limits } = readOptions("memoryStorage", memoryStorageOptions, options);
  const state = createState(limits);
  let logger = silentLogger;
  let isClosed = false;
  return Object.freeze<Storage>({
    webhooks(context) {
      logger = context.logger;
      return createWebhookStore(state, context);
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      const { pending } = state;
      if (pending > 0) logger.warn({ pending }, "pending deliveries end with the memory storage");
    },
  });
}
