/** Options of `outbox`: their type for hosts, and the table of their defaults and ranges. */

import type { Clock } from "../core/clock.js";
import { hasMethods, hostOptions } from "../core/host-options.js";
import type { Logger } from "../core/logger.js";
import { value, wholeNumber } from "../core/options.js";
import type { AnyEventInput } from "../webhooks/service.js";
import type { OutboxSource } from "./outbox-source.js";

/** The part of a webhook service that an outbox uses. */
export interface Emitter {
  /** Like `emit` of the service. */
  emit(event: AnyEventInput): Promise<{ duplicate: boolean }>;
}

/** Options of `outbox`. */
export interface OutboxOptions {
  /** It need not be started: another process may deliver. */
  webhooks: Emitter;
  /** The table that your transactions write events to. */
  source: OutboxSource;
  /** Rows leased together and emitted concurrently, at most 1 000. Default 100. */
  batch?: number | undefined;
  /** Time until the next poll, if the last one found less than a batch. Default 1 000. */
  pollMs?: number | undefined;
  /**
   * How long a row belongs to the process that leased it, 20 s to 30 min; if that process dies,
   * another takes the row over afterwards. Default 60 000.
   */
  leaseMs?: number | undefined;
  clock?: Clock | undefined;
  /** Default: `console`, for warnings and errors; `false` logs nothing. */
  logger?: Logger | false | undefined;
}

export const outboxOptions = {
  webhooks: value<Emitter | undefined>(
    "the service that createWebhooks() returned",
    hasMethods("emit"),
    undefined,
  ),
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
