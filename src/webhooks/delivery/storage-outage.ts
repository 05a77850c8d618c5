/**
 * Counts how long the storage has been unavailable: since the first call that failed after the last
 * one that succeeded.
 */

import type { Clock } from "../../core/clock.js";

/**
 * After a failed call the storage is called again after this, doubling up to the second figure,
 * within which its return is noticed.
 */
const RETRY_MS = 100;
export const MAX_RETRY_MS = 5_000;

export const storageRetryDelayMs = (failures: number): number =>
  Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);

export interface StorageOutage {
  /** A call failed. */
  failed(): void;
  /** A call did not fail. */
  ended(): void;
  /** 0 where the last call did not fail. */
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
