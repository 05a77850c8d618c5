/** Every option of `outbox`: its type for hosts, and the one table of defaults and ranges that it is read by. */

import type { Clock } from "../src/core/clock.js";
import { hasMethods, hostOptions } from "../src/core/host-options.js";
import type { Logger } from "../src/core/logger.js";
import { value, wholeNumber } from "../src/core/options.js";
import type { Emitted, EventInput } from "../src/webhooks/service.js";
import type { OutboxSource } from "./outbox-source.js";

/** What an outbox needs of a webhook service. */
export interface Emitter {
  /** As `emit` of the service. */
  emit(event: EventInput): Promise<Pick<Emitted, "duplicate">>;
}

/** What `outbox` takes. */
export interface OutboxOptions {
  /** What `createWebhooks` returned. It need not be started: whoever delivers may be another process. */
  readonly webhooks: Emitter;
  /** Where the host's transactions leave the events: `pgSource`, `mysqlSource`, `memorySource`, or one of your own. */
  readonly source: OutboxSource;
  /** Rows leased at once, and emitted beside one another. Default 100. */
  readonly batch?: number | undefined;
  /** Milliseconds until an outbox that found nothing, or less than a batch, looks again. Default 1 000. */
  readonly pollMs?: number | undefined;
  /** Milliseconds that a row is left to the process that took it: a killed one's rows are taken up again after it. Default 60 000. */
  readonly leaseMs?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly logger?: Logger | undefined;
}

export const outboxOptions = {
  webhooks: value<Emitter | undefined>("what createWebhooks() returned", hasMethods("emit"), undefined),
  source: value<OutboxSource | undefined>(
    "a source, such as pgSource()",
    hasMethods("claim", "remove", "retry", "park", "parked", "release", "stats"),
    undefined,
  ),
  batch: wholeNumber("count", 100, { min: 1, max: 1_000 }),
  pollMs: wholeNumber("ms", 1_000, { min: 1, max: 3_600_000 }),
  // An emit may wait for resolveReference and then for its storage: ten seconds in all.
  leaseMs: wholeNumber("ms", 60_000, { min: 20_000, max: 1_800_000 }),
  ...hostOptions,
};
