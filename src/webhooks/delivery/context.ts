/** What the parts of delivery share. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { WebhookStore } from "../store.js";
import type { Outage } from "./storage-outage.js";

export interface DeliveryContext {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly telemetry: Telemetry | undefined;
  readonly outage: Outage;
  readonly leaseMs: number;
}
