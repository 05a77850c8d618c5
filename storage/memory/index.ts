/**
 * `postbell/memory`: a storage on the heap of this process, for tests and small hosts. Its data
 * ends with the process.
 *
 * @module postbell/memory
 */

import type { ContentStorage } from "../../src/content/store.js";
import { silentLogger } from "../../src/core/logger.js";
import { readOptions } from "../../src/core/options.js";
import type { Storage } from "../../src/webhooks/store.js";
import { createContentState, createMemoryContentStore } from "./content-store.js";
import { type MemoryStorageOptions, memoryStorageOptions } from "./options.js";
import { createState } from "./state.js";
import { createMemoryWebhookStore } from "./webhook-store.js";

export type { MemoryStorageOptions } from "./options.js";

/**
 * A storage in memory. It bounds itself: data that would exceed a limit is refused with
 * `storage_full`, and nothing of it is stored.
 *
 * Guarantee: everything the storage contracts require, until the process ends; then pending
 * deliveries and content are lost. Its time starts at the wall clock and follows the monotonic
 * clock, so setting the wall clock changes nothing.
 *
 * `close()` logs how many pending deliveries end with it.
 *
 * Errors: `invalid_option` for an unknown or unusable option.
 *
 * @example
 * const storage = memoryStorage({ limits: { pending: 10_000 } });
 * const webhooks = createWebhooks({ storage, access });
 */
export function memoryStorage(
  options: MemoryStorageOptions = {},
): Storage & ContentStorage & AsyncDisposable {
  const { limits } = readOptions("memoryStorage", memoryStorageOptions, options);
  const state = createState(limits);
  const content = createContentState();
  let logger = silentLogger;
  let isClosed = false;
  return Object.freeze<Storage & ContentStorage & AsyncDisposable>({
    webhooks(context) {
      logger = context.logger;
      return createMemoryWebhookStore(state, context);
    },
    content: (context) => createMemoryContentStore(content, context, limits.contentBytes),
    async close() {
      if (isClosed) return;
      isClosed = true;
      const { pending } = state;
      if (pending > 0) logger.warn({ pending }, "pending deliveries end with the memory storage");
    },
    [Symbol.asyncDispose]() {
      return this.close();
    },
  });
}
