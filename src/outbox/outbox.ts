/** The loop that moves events from a host's table to Postbell, and what a host can ask of it. */

import { type Clock, type Timer, whenAborted, withTimeout } from "../core/clock.js";
import { PostbellError } from "../core/errors.js";
import { guardedLogger } from "../core/logger.js";
import { readOptions } from "../core/options.js";
import { type OutboxOptions, outboxOptions } from "./options.js";
import type { OutboxSource, ParkedRow } from "./outbox-source.js";
import { createRowMover, type PassResult, rowRetryDelayMs } from "./row-mover.js";

/** Rows in the source, and the work of this process. */
export interface OutboxStats {
  /** Rows to emit, including rows in flight and rows that are scheduled for a retry. */
  readonly waiting: number;
  /** Rows that are not retried any more: see `parked()`. */
  readonly parked: number;
  /** Age in milliseconds of the oldest row to emit; `null` if there are no such rows. */
  readonly oldestMs: number | null;
  /** Events that this process has emitted, including duplicates. */
  readonly emitted: number;
  /** Emitted events that Postbell had already, because an earlier try had stored them. */
  readonly duplicates: number;
}

/** The loop that `outbox` creates. */
export interface Outbox {
  /** Starts to move events. Calling it again changes nothing. */
  start(): Promise<void>;
  /**
   * Claims no more rows. Rows in flight get `graceMs` (default 10 000) to end; otherwise they are
   * claimed again after their lease. `start` may follow.
   */
  stop(options?: {
    graceMs?: number | undefined;
    /** Ends the grace period at once when it is aborted. */
    signal?: AbortSignal | undefined;
  }): Promise<void>;
  /** Calls `stop()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
  /**
   * Looks for rows now instead of at the next poll, for a host that has just committed some. Does
   * nothing while stopped.
   */
  wake(): void;
  /**
   * Resolves once no row is due or in flight. Scheduled retries do not count. For tests. Rejects
   * with `not_started`, or with the error of a source that is unavailable.
   */
  idle(): Promise<void>;
  /** Counts rows; this queries the source. */
  stats(): Promise<OutboxStats>;
  /**
   * Lists refused rows, and rows that may or may not have been emitted. The longest
   * parked come first; at most `limit` (default 100, at most 1 000). `reason` begins with a code.
   */
  parked(options?: { limit?: number | undefined }): Promise<ParkedRow[]>;
  /**
   * Retries parked rows, by their `key`. For a row that is `unsure`, this may add a second event
   * with the same id.
   */
  release(keys: readonly string[]): Promise<void>;
  /** Removes rows permanently, by their `key`. Their events are not emitted. */
  discard(keys: readonly string[]): Promise<void>;
}

const DEFAULT_GRACE_MS = 10_000;
const DEFAULT_PARKED = 100;
const MAX_PARKED = 1_000;

function readLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= MAX_PARKED) return limit;
  throw new PostbellError(
    "invalid_argument",
    `limit must be a whole number from 1 to ${MAX_PARKED} (got ${typeof limit === "number" ? limit : typeof limit}).`,
    {
      field: "limit",
    },
  );
}

function readKeys(keys: readonly string[]): string[] {
  if (Array.isArray(keys) && keys.length <= MAX_PARKED && keys.every((key) => typeof key === "string"))
    return keys;
  throw new PostbellError("invalid_argument", `keys must be a list of at most ${MAX_PARKED} keys of rows.`, {
    field: "keys",
  });
}

function missingOption(option: string): PostbellError {
  return new PostbellError("invalid_option", `outbox: ${option} is required.`, { field: option });
}

/** A pause that can be ended early. */
function createPause(clock: Clock) {
  let end = (): void => {};
  return {
    sleep: (ms: number): Promise<void> =>
      new Promise((resolve) => {
        const timer: Timer = clock.setTimeout(() => end(), ms);
        end = () => {
          clock.clearTimeout(timer);
          resolve();
        };
      }),
    end: (): void => end(),
  };
}

/**
 * Moves the events that a host's transactions have left in a table to Postbell. Any number of
 * processes may do so on the same table. Does nothing until `start()`.
 *
 * Guarantee: an event whose transaction committed is emitted, whichever process dies at any moment.
 * Every try uses the same id, and Postbell ignores an id that it knows, so that it has the event
 * once. If the outcome stays unknown for 23 hours, Postbell may forget the id before the next try.
 * The row is then parked, and `logger.error` is called. A refused event is parked too. Order is not
 * kept.
 *
 * @throws `invalid_option`
 * @example
 * const source = pgSource({ pool });
 * await source.install();
 * await outbox({ webhooks, source }).start();
 *
 * await client.query("BEGIN");
 * await client.query("UPDATE patients SET name = $2 WHERE id = $1", [id, name]);
 * await source.add(client, { type: "patient.updated", account, resource });
 * await client.query("COMMIT");
 */
export function outbox(options: OutboxOptions): Outbox {
  const config = readOptions("outbox", outboxOptions, options);
  const { webhooks, batch, pollMs, leaseMs, clock } = config;
  if (!webhooks) throw missingOption("webhooks");
  if (!config.source) throw missingOption("source");
  const source = limitCallTime(config.source, clock, leaseMs);
  const mover = createRowMover({
    webhooks,
    source,
    clock,
    batch,
    leaseMs,
    logger: guardedLogger(config.logger),
  });
  const pause = createPause(clock);
  let isRunning = false;
  let loop: Promise<void> | undefined;
  /** Passes run one after another: `idle()` adds some between those of the loop. */
  let lastPass: Promise<unknown> = Promise.resolve();
  let isWakeRequested = false;

  const runPass = (): Promise<PassResult> => {
    const next = lastPass.then(mover.runPass);
    lastPass = next;
    return next;
  };

  const run = async (): Promise<void> => {
    while (isRunning) {
      isWakeRequested = false;
      const { isFull, progress } = await runPass();
      if (!isRunning || (progress === "moved" && (isFull || isWakeRequested))) continue;
      const retryMs = rowRetryDelayMs(mover.countFailures() - 1);
      await pause.sleep(progress === "failed" ? Math.max(pollMs, retryMs) : pollMs);
    }
    loop = undefined;
  };

  return Object.freeze<Outbox>({
    async start() {
      isRunning = true;
      loop ??= run();
    },
    async stop({ graceMs = DEFAULT_GRACE_MS, signal } = {}) {
      isRunning = false;
      pause.end();
      if (loop === undefined) return;
      const ended = signal === undefined ? loop : Promise.race([loop, whenAborted(signal)]);
      await withTimeout(clock, graceMs, ended, () => new Error()).catch(() => {});
    },
    [Symbol.asyncDispose]() {
      return this.stop();
    },
    wake() {
      isWakeRequested = true;
      // While every pass fails, the pause protects the storage.
      if (mover.countFailures() === 0) pause.end();
    },
    async idle() {
      if (!isRunning)
        throw new PostbellError("not_started", "idle() needs a running outbox: call start() first.");
      let result: PassResult;
      do result = await runPass();
      while (result.count > 0);
      if (result.error !== undefined) throw result.error as Error;
    },
    async stats() {
      return { ...(await source.stats()), ...mover.countEmitted() };
    },
    parked: async ({ limit = DEFAULT_PARKED } = {}) => source.parked({ limit: readLimit(limit) }),
    release: async (keys) => source.release(readKeys(keys)),
    discard: async (keys) => source.remove(readKeys(keys)),
  });
}

/**
 * Returns the source with calls that reject if they take longer than `ms`. A later result would be
 * out of date, because the leases have ended.
 */
function limitCallTime(source: OutboxSource, clock: Clock, ms: number): OutboxSource {
  const createError = (): Error =>
    new PostbellError("storage_unavailable", `The outbox's source did not respond within ${ms} ms.`);
  const limit =
    <A extends unknown[], R>(call: (...parameters: A) => Promise<R>): ((...parameters: A) => Promise<R>) =>
    (...parameters) =>
      withTimeout(clock, ms, call(...parameters), createError);
  return {
    claim: limit((request) => source.claim(request)),
    remove: limit((keys) => source.remove(keys)),
    retry: limit((request) => source.retry(request)),
    park: limit((request) => source.park(request)),
    parked: limit((request) => source.parked(request)),
    release: limit((keys) => source.release(keys)),
    stats: limit(() => source.stats()),
  };
}
