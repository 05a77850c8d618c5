/** Every option of `createReceiver`: its type for hosts, and the one table of defaults and ranges that it is read by. */

import { type Clock, systemClock } from "../src/core/clock.js";
import { type Logger, silentLogger } from "../src/core/logger.js";
import { hook, value, wholeNumber } from "../src/core/options.js";
import { isSecret, SIGNATURE_HEADER } from "../src/signature/signature.js";
import type { EventNotification } from "./notification.js";

/** What {@link createReceiver} takes. */
export interface ReceiverOptions {
  /** The endpoint's secret, or several while one replaces another. */
  readonly secrets: string | readonly string[];
  /**
   * Called once for each event. A delivery is acknowledged when it has returned, or its promise resolved; when it throws, the sender is told
   * and delivers again. It must settle: until then, repetitions of the event are turned away. Answer within the sender's 15 seconds.
   */
  readonly onEvent: (event: EventNotification) => unknown;
  /** Name of the header that carries the signature, in any case. Default `X-Service-Signature`. */
  readonly header?: string | undefined;
  /** Path below the mount point that deliveries come to. Default `/`. */
  readonly path?: string | undefined;
  /** Seconds the time of a signature may differ from now. Default 300. */
  readonly toleranceSeconds?: number | undefined;
  /** How many event ids are remembered, and for how many milliseconds. Default 10 000, for 6 days: three of retries, and three in which what failed may be sent again. */
  readonly duplicates?:
    | { readonly max?: number | undefined; readonly ttlMs?: number | undefined }
    | undefined;
  /** Larger bodies are refused unread. Default 1 MiB. */
  readonly bodyLimitBytes?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly logger?: Logger | undefined;
}

const DAY_MS = 86_400_000;

const isObject = (given: unknown): boolean => typeof given === "object" && given !== null;

function isSecrets(given: unknown): boolean {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  return list.length > 0 && list.every(isSecret);
}

export const receiverOptions = {
  secrets: value<ReceiverOptions["secrets"] | undefined>(
    "a secret, or a list of secrets",
    isSecrets,
    undefined,
  ),
  onEvent: hook<ReceiverOptions["onEvent"]>(),
  header: value("a header name", (name) => typeof name === "string" && name !== "", SIGNATURE_HEADER),
  path: value(
    "a path such as '/webhooks'",
    (given) => typeof given === "string" && given.startsWith("/"),
    "/",
  ),
  toleranceSeconds: wholeNumber("seconds", 300, { min: 0 }),
  duplicates: {
    max: wholeNumber("count", 10_000, { min: 1, max: 10_000_000 }),
    ttlMs: wholeNumber("ms", 6 * DAY_MS, { min: 1 }),
  },
  bodyLimitBytes: wholeNumber("bytes", 1_048_576, { min: 1 }),
  clock: value<Clock>("a clock", isObject, systemClock),
  logger: value<Logger>("a logger with debug, info, warn and error", isObject, silentLogger),
};
