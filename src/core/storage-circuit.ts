/**
 * Refuses calls during an outage of the storage: one circuit in front of each store of a service.
 *
 * A call fails with `storage_unavailable`, either from the storage itself (after 3.5 seconds at
 * most on Redis, see `storage/redis/connection.ts`) or after the limit below. If the error says
 * that no connection can be made, the circuit opens at once. Any other failure, such as one slow
 * call, is checked with a ping: the circuit opens only if the ping fails as well. A storage that is
 * read-only answers the ping, so it is still read.
 *
 * While the circuit is open, calls are refused without asking the storage: `emit` and host calls
 * reject, and REST routes respond 503 with `Retry-After`. Nothing is queued, and the caller emits
 * again with the same id. Calls that were sent before keep their own result. One ping at a time,
 * about once a second, finds out when the storage is back. `webhooks/delivery/passes.ts` and
 * `webhooks/delivery/settler.ts` then continue with their next retry; results of attempts are kept
 * for it.
 *
 * The circuit alone logs an outage. Lines of other parts about it are logged as `debug`.
 */

import { type Clock, type Timer, withTimeout } from "./clock.js";
import { isPostbellError, PostbellError } from "./errors.js";
import { type Logger, toServiceLogger } from "./logger.js";

/** Registration requests must be answered within five seconds. */
const LIMIT_MS = 4_000;

/** An outage, and each message about a storage that responds with errors, is logged this often. */
const LOG_EVERY_MS = 60_000;

const RETRY_MS = 100;
/** The longest delay between two retries during an outage. */
export const MAX_RETRY_MS = 1_000;

/** Returns the delay before a retry, after this many failed ones. It doubles, up to the maximum. */
export const storageRetryDelayMs = (failures: number): number =>
  Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);

/** How a circuit asks its store. */
export interface CircuitStore {
  /** A cheap read that shows if the storage responds. */
  ping: () => Promise<unknown>;
  /** Why the storage has no connection at present, if it knows. */
  connectionProblem: () => string | undefined;
}

/** The state of the storage, as one service sees it. */
export interface StorageStatus {
  /** True if a call has failed since the service was created. */
  hasFailed: boolean;
  /** Milliseconds since the first call, while the storage has never responded; otherwise 0. */
  unreachedMs: number;
  /** Milliseconds since the outage was noticed; 0 without one. */
  outageMs: number;
  /** The code of the latest failure, if it is known: `ECONNREFUSED`, `invalid_option`. */
  cause: string | undefined;
}

/**
 * Puts a call of the store behind the circuit. A call that has not settled after four seconds
 * rejects with `storage_unavailable`; it may or may not have taken effect then.
 */
export type GuardCall = <A extends unknown[], R>(
  call: (...args: A) => Promise<R>,
) => (...args: A) => Promise<R>;

export interface StorageCircuit {
  /** The service's logger, without lines about an outage that is logged here. */
  logger: Logger;
  connect: (store: CircuitStore) => GuardCall;
  /** True while calls are refused. */
  isOpen: () => boolean;
  /** Returns the status, and sends a ping if the storage has never responded. */
  check: () => StorageStatus;
}

interface Outage {
  /** When it was noticed, in monotonic time. */
  since: number;
  /** The latest error. */
  error: PostbellError;
  /** Calls that the storage failed. */
  failed: number;
  /** Calls that were refused without asking the storage. */
  refused: number;
  failedPings: number;
  loggedAt: number;
}

/** True for the errors that may mean an outage. */
const isUnavailable = (error: unknown): error is PostbellError =>
  isPostbellError(error, "storage_unavailable");

/** The host has closed the storage: it does not come back. */
const isClosed = (error: unknown): error is PostbellError =>
  isUnavailable(error) && error.isOutage === false && error.isPermanent;

/** `41 s`, `12 min`: as an operator would say it. */
const toDuration = (ms: number): string => {
  const seconds = Math.max(1, Math.round(ms / 1_000));
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
};

/** The error of a call that is refused during an outage: it was not sent. */
function toRefusal({ error }: Outage): PostbellError {
  const { message, reason, isPermanent } = error;
  const because = reason === undefined ? "" : ` (${reason})`;
  return new PostbellError(
    "storage_unavailable",
    isPermanent ? message : `The storage is unavailable${because}. This call was not sent. Try again later.`,
    { effect: "none", reason, isPermanent, isOutage: true, cause: error },
  );
}

function toLateError(problem: string | undefined): PostbellError {
  const because = problem === undefined ? "" : ` (no connection: ${problem})`;
  return new PostbellError(
    "storage_unavailable",
    `The storage did not respond within 4 seconds${because}; the call may or may not have taken effect.`,
    { reason: problem ?? "timeout", isOutage: problem === undefined ? undefined : true },
  );
}

/** Limits lines about errors of the storage, and logs those about an outage as `debug`. */
function quietLogger(logger: Logger, clock: Clock, isOpen: () => boolean): Logger {
  // Messages are fixed texts, so there is a limited number of them.
  const logged = new Map<string, { at: number; omitted: number }>();
  const quiet =
    (level: "warn" | "error") =>
    (fields: object, message: string): void => {
      const { error, ...others } = fields as { error?: unknown };
      if (!isUnavailable(error) && !isPostbellError(error, "storage_full")) {
        logger[level](fields, message);
        return;
      }
      if (error.isOutage === true || isOpen()) {
        logger.debug(fields, message);
        return;
      }
      const last = logged.get(message);
      const now = clock.monotonic();
      if (last !== undefined && now - last.at < LOG_EVERY_MS) {
        last.omitted += 1;
        return;
      }
      logged.set(message, { at: now, omitted: 0 });
      // Reason and message say what a stack of this package would not.
      const { reason, message: cause } = error;
      const shown = { ...others, ...(reason === undefined ? {} : { reason }), cause };
      logger[level](last?.omitted ? { ...shown, omitted: last.omitted } : shown, message);
    };
  return Object.freeze<Logger>({
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: quiet("warn"),
    error: quiet("error"),
  });
}

/** `service`: what the lines are about. */
export function createStorageCircuit({
  clock,
  logger,
  service,
}: {
  clock: Clock;
  logger: Logger;
  service: "webhooks" | "content" | "data keys";
}): StorageCircuit {
  let outage: Outage | undefined;
  let lastError: PostbellError | undefined;
  let hasFailed = false;
  let isReached = false;
  let calledAt: number | undefined;
  /** Counts signs that the storage is there. The failure of a call sent before one is outdated. */
  let responses = 0;
  let isPinging = false;
  let timer: Timer | undefined;
  let store: CircuitStore | undefined;

  const serviceLogger = toServiceLogger(logger);

  const describe = ({ error: { reason, message } }: Outage): object => ({
    service,
    ...(reason === undefined ? {} : { reason }),
    cause: message,
  });
  const count = ({ since, failed, refused }: Outage): object => ({
    forMs: Math.round(clock.monotonic() - since),
    failed,
    refused,
  });

  const begin = (error: PostbellError): Outage => {
    const now = clock.monotonic();
    const begun = { since: now, error, failed: 0, refused: 0, failedPings: 0, loggedAt: now };
    const until = error.isPermanent ? " until its configuration is changed" : "";
    serviceLogger.error(describe(begun), `the storage is unavailable${until}`);
    return begun;
  };

  const remind = (current: Outage): void => {
    const now = clock.monotonic();
    if (now - current.loggedAt < LOG_EVERY_MS) return;
    current.loggedAt = now;
    serviceLogger.warn({ ...describe(current), ...count(current) }, "the storage is still unavailable");
  };

  const end = (): void => {
    responses += 1;
    if (outage === undefined) return;
    clock.clearTimeout(timer);
    timer = undefined;
    const duration = toDuration(clock.monotonic() - outage.since);
    serviceLogger.warn({ service, ...count(outage) }, `the storage is available again after ${duration}`);
    outage = undefined;
  };

  const respond = (): void => {
    isReached = true;
    end();
  };

  /** Notes that a call, or a ping, could not reach the storage. */
  const miss = (error: PostbellError, kind: "failed" | "failedPings"): void => {
    outage ??= begin(error);
    outage.error = error;
    outage[kind] += 1;
    remind(outage);
  };

  const pingLater = (): void => {
    if (outage === undefined || isPinging || timer !== undefined) return;
    const delayMs = storageRetryDelayMs(Math.max(0, outage.failedPings - 1));
    timer = clock.setTimeout(() => void sendPing(), delayMs);
    // A process that has nothing else to do must be able to end.
    (timer as Partial<NodeJS.Timeout>).unref?.();
  };

  const noteError = (error: unknown): void => {
    if (!isUnavailable(error) && !isPostbellError(error, "invalid_option")) return;
    hasFailed = true;
    lastError = error;
  };

  const late = (): PostbellError => toLateError(store?.connectionProblem());

  const sendPing = async (): Promise<void> => {
    if (isPinging || store === undefined) return;
    isPinging = true;
    timer = undefined;
    calledAt ??= clock.monotonic();
    const before = responses;
    try {
      await withTimeout(clock, LIMIT_MS, store.ping(), late);
      respond();
    } catch (error) {
      noteError(error);
      if (isClosed(error)) {
        if (outage !== undefined) outage.error = error;
        return;
      }
      // Any other error comes from a storage that responds, or from a part of one.
      if (!isUnavailable(error) || error.isOutage === false) end();
      else if (responses === before) miss(error, "failedPings");
    } finally {
      isPinging = false;
    }
    pingLater();
  };

  /** `before`: the responses when the call was sent. */
  const fail = (error: unknown, before: number): void => {
    if (isPostbellError(error, "storage_full")) {
      respond();
      return;
    }
    noteError(error);
    if (!isUnavailable(error)) return;
    // One part of the storage failed, or the storage has responded to another call since.
    if (error.isOutage === false || (responses !== before && outage !== undefined)) return;
    if (outage !== undefined || (error.isOutage === true && responses === before)) {
      miss(error, "failed");
      pingLater();
    } else void sendPing();
  };

  const guard: GuardCall =
    (call) =>
    (...args) => {
      if (outage !== undefined) {
        outage.refused += 1;
        remind(outage);
        return Promise.reject(toRefusal(outage));
      }
      calledAt ??= clock.monotonic();
      const before = responses;
      // As `withTimeout`, without a second promise: `emit` and deliveries come through here.
      return new Promise((resolve, reject) => {
        const result = call(...args);
        let isLate = false;
        const limit = clock.setTimeout(() => {
          isLate = true;
          const error = late();
          fail(error, before);
          reject(error);
        }, LIMIT_MS);
        result.then(
          (value) => {
            clock.clearTimeout(limit);
            respond();
            resolve(value);
          },
          (error: unknown) => {
            clock.clearTimeout(limit);
            if (!isLate) fail(error, before);
            reject(error as Error);
          },
        );
      });
    };

  const isOpen = (): boolean => outage !== undefined;
  return Object.freeze<StorageCircuit>({
    logger: quietLogger(logger, clock, isOpen),
    connect(connected) {
      store = connected;
      return guard;
    },
    isOpen,
    check() {
      if (!isReached && outage === undefined) void sendPing();
      const now = clock.monotonic();
      const error = outage?.error ?? lastError;
      const reason = error?.reason ?? (error?.code === "invalid_option" ? error.code : "");
      return {
        hasFailed,
        unreachedMs: isReached || calledAt === undefined ? 0 : Math.max(1, now - calledAt),
        outageMs: outage === undefined ? 0 : Math.max(1, now - outage.since),
        // The rest of a reason may name an address, and some reasons have no code.
        cause: /^(?:[A-Z][A-Z\d_]{2,40}|\d[A-Z\d]{4}|timeout|invalid_option)(?= |$)/.exec(reason)?.[0],
      };
    },
  });
}
