/** The context that the parts of delivery share. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { WebhookStore } from "../store.js";
import type { StorageOutage } from "./storage-outage.js";

export interface DeliveryContext {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly telemetry: Telemetry | undefined;
  readonly outage: StorageOutage;
  readonly leaseMs: number;
}
