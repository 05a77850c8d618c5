/** Measures how long the storage has been unavailable: since the first failed call in a row. */

import type { Clock } from "../../core/clock.js";

/**
 * The delay after the first failed call. It doubles with each further failure, up to the maximum.
 */
const RETRY_MS = 100;
export const MAX_RETRY_MS = 5_000;

export const storageRetryDelayMs = (failures: number): number =>
  Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);

export interface StorageOutage {
  /** Reports a failed call. */
  failed(): void;
  /** Reports a successful call. */
  ended(): void;
  /** Returns 0 if the last call succeeded. */
  ms(): number;
}

export function createStorageOutage(clock: Clock): StorageOutage {
  let since: number | undefined;
  return Object.freeze<StorageOutage>({
    failed() {
      since ??= clock.monotonic();
    },
    ended() {
      since = undefined;
    },
    ms: () => (since === undefined ? 0 : clock.monotonic() - since),
  });
}
