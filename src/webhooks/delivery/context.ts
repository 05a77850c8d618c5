/** The context that the parts of delivery share. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { WebhookStore } from "../store.js";

/** Measures how long claims and settlements have failed: since the first failed call in a row. */
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

export interface DeliveryContext {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly telemetry: Telemetry | undefined;
  readonly outage: StorageOutage;
  readonly leaseMs: number;
}
