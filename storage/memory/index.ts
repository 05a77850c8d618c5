/** `postbell/memory`: a storage on the heap of this process, for tests and small hosts. What it holds ends with the process. */

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
        /** Bytes of event payloads, pending or kept. Default 256 MiB. Ended events give way to new ones before their retention is over. */
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
 * Errors: `invalid_option` for an unknown or unusable option.
 */
export function memoryStorage(options: MemoryStorageOptions = {}): Storage {
  const { limits } = readOptions("memoryStorage", memoryStorageOptions, options);
  const state = createState(limits);
  return Object.freeze<Storage>({
    webhooks: ({ clock }) => createWebhookStore(state, clock),
    close: async () => {},
  });
}
