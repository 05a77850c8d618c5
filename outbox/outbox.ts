/** The loop that moves events from a host's table to Postbell: lease what is due, emit it, remove it, sleep until the next look. */

import { type Clock, type Timer, withTimeout } from "../src/core/clock.js";
import { isPostbellError, PostbellError } from "../src/core/errors.js";
import { guardedLogger } from "../src/core/logger.js";
import { readOptions } from "../src/core/options.js";
import { toEvent } from "./event-row.js";
import { type OutboxOptions, outboxOptions } from "./options.js";
import type { OutboxClaim, OutboxSource, ParkedRow } from "./outbox-source.js";
import { afterFailure, beforeEmit, isPoison, type RowResult, rowRetryDelayMs } from "./row-result.js";

/** What lies in the source, and what this process has done. */
export interface OutboxStats {
  /** Rows that are to be emitted, those under way and those put off included. */
  readonly waiting: number;
  /** Rows that are not tried any more: see `parked()`. */
  readonly parked: number;
  /** Age in milliseconds of the oldest row that is to be emitted; `null` where none is. */
  readonly oldestMs: number | null;
  /** Events that this process has emitted, those included that had been emitted before. */
  readonly emitted: number;
  /** Those of them that Postbell knew already: an earlier try had stored them. */
  readonly duplicates: number;
}

/** The loop that `outbox` makes. */
export interface Outbox {
  /** Begins to move events. Calling it again changes nothing. */
  start(): Promise<void>;
  /** Takes no more rows; those under way get `graceMs` (default 10 000) to end, and are taken up again after their lease otherwise. `start` may follow. */
  stop(options?: { readonly graceMs?: number | undefined }): Promise<void>;
  /** Looks for rows now instead of at the next poll: for a host that has just committed some. Does nothing while stopped. */
  wake(): void;
  /** Resolves once no row is due and none under way: rows put off do not count. For tests. Rejects with `not_started`, or with the error of a source that is away. */
  idle(): Promise<void>;
  /** Asks the source, which counts its rows. */
  stats(): Promise<OutboxStats>;
  /** Rows that were refused, or that nobody can tell whether they were emitted, the longest parked first; at most `limit` (default 100, at most 1 000). `reason` begins with a code. */
  parked(options?: { readonly limit?: number | undefined }): Promise<readonly ParkedRow[]>;
  /** Tries parked rows again, by their `key`. For one that is `unsure` that may add a second event with the same id. */
  release(keys: readonly string[]): Promise<void>;
  /** Removes rows for good, by their `key`. Their events are not emitted. */
  discard(keys: readonly string[]): Promise<void>;
}

const DEFAULT_GRACE_MS = 10_000;
const DEFAULT_PARKED = 100;
const MAX_PARKED = 1_000;

/**
 * `through`: at least one row is done with, or none was due. `full`: nothing is, for want of room, which may be that of one account: others need not wait for it.
 * `away`: nothing is, and nothing is known of why.
 */
type Progress = "through" | "full" | "away";

/** What a look at the source came to. */
interface Pass {
  /** Rows that were due and are leased; at most as many as were asked for. */
  readonly count: number;
  readonly isFull: boolean;
  readonly progress: Progress;
  /** Set where the source could not be asked. */
  readonly error?: unknown;
}

/** The same source, except that each call rejects where it has not settled after a lease: what it answers then is out of date. */
function boundedSource(source: OutboxSource, clock: Clock, ms: number): OutboxSource {
  const late = (): Error =>
    new PostbellError("storage_unavailable", "The outbox's source did not answer in time.");
  const bounded =
    <A extends readonly unknown[], R>(call: (...given: A) => Promise<R>): ((...given: A) => Promise<R>) =>
    (...given) =>
      withTimeout(clock, ms, call(...given), late);
  return {
    claim: bounded((request) => source.claim(request)),
    remove: bounded((keys) => source.remove(keys)),
    retry: bounded((request) => source.retry(request)),
    park: bounded((request) => source.park(request)),
    parked: bounded((request) => source.parked(request)),
    release: bounded((keys) => source.release(keys)),
    stats: bounded(() => source.stats()),
  };
}

function readLimit(limit: number): number {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= MAX_PARKED) return limit;
  throw new PostbellError("invalid_argument", `limit must be a whole number from 1 to ${MAX_PARKED}.`, {
    field: "limit",
  });
}

function readKeys(keys: readonly string[]): readonly string[] {
  if (Array.isArray(keys) && keys.length <= MAX_PARKED && keys.every((key) => typeof key === "string"))
    return keys;
  throw new PostbellError("invalid_argument", `keys must be a list of at most ${MAX_PARKED} keys of rows.`, {
    field: "keys",
  });
}

function missing(option: string): PostbellError {
  return new PostbellError("invalid_option", `outbox: ${option} is required.`, { field: option });
}

function shuffled<T>(items: readonly T[], clock: Clock): readonly T[] {
  return items
    .map((item) => ({ item, place: clock.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

/**
 * Moves the events that a host's transactions have left in a table to Postbell. Any number of processes may run one on the same table. Does nothing until `start()`.
 *
 * Guarantee: an event whose transaction committed is emitted, whichever process dies at whatever moment, with the same id in every try; since Postbell adds nothing for an
 * id that it knows, it has one event of it. Where an outcome stays unknown for 23 hours, the id may be forgotten before the next try: the row is parked then, and `logger.error` told.
 * One that is refused is parked too. Order is not kept.
 *
 * Errors: `invalid_option`.
 *
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
  const given = readOptions("outbox", outboxOptions, options);
  const { webhooks, batch, pollMs, leaseMs, clock } = given;
  if (!webhooks) throw missing("webhooks");
  if (!given.source) throw missing("source");
  const source = boundedSource(given.source, clock, leaseMs);
  const logger = guardedLogger(given.logger);

  let emitted = 0;
  let duplicates = 0;
  /** Passes in a row in which Postbell, or the source, was not to be used at all. */
  let failures = 0;
  let isRunning = false;
  let loop: Promise<void> | undefined;
  /** The passes one after another: idle() makes some of its own between those of the loop. */
  let last: Promise<unknown> = Promise.resolve();
  let isWanted = false;
  let endSleep = (): void => {};

  const emit = async (claim: OutboxClaim): Promise<void> => {
    const { duplicate } = await webhooks.emit(toEvent(claim));
    emitted += 1;
    if (duplicate) duplicates += 1;
  };

  /** Emits a row, unless it is known without what becomes of it. Never rejects. */
  const judge = async (claim: OutboxClaim, until: number): Promise<RowResult> => {
    const known = beforeEmit(claim);
    if (known) return known;
    // This process stood still, or was busy with others for a whole lease: the row may be somebody else's by now.
    if (clock.monotonic() >= until) return { kind: "retry", delayMs: 0, isUnsure: claim.unsureMs !== null };
    return emit(claim).then(
      () => ({ kind: "remove" }),
      (error: unknown) => afterFailure(claim, error),
    );
  };

  const settle = async (judged: readonly (readonly [OutboxClaim, RowResult])[]): Promise<void> => {
    const done = judged.filter(([, { kind }]) => kind === "remove").map(([{ key }]) => key);
    if (done.length > 0) await source.remove(done);
    for (const [{ key, id, claims }, verdict] of judged) {
      if (verdict.kind === "retry") {
        const { delayMs, isUnsure } = verdict;
        await source.retry({ key, claims, delayMs, isUnsure });
      } else if (verdict.kind === "park") {
        const { reason } = verdict;
        logger.error(
          { event: id, row: key, reason },
          "an event is parked: it is not tried until it is released",
        );
        await source.park({ key, claims, reason });
      }
    }
  };

  /** Emits rows beside one another and records what became of each. */
  const move = async (claims: readonly OutboxClaim[], until: number): Promise<Progress> => {
    const judged = await Promise.all(
      claims.map(async (claim) => [claim, await judge(claim, until)] as const),
    );
    const failed = judged.flatMap(([, verdict]) => (verdict.kind === "retry" ? [verdict.error] : []));
    if (failed.length > 0) {
      const [error] = failed;
      logger.warn({ events: failed.length, error }, "events could not be emitted; they are tried again");
    }
    try {
      await settle(judged);
    } catch (error) {
      // Their leases bring the rows back; what was emitted is known to Postbell by its id.
      logger.error({ error }, "the source could not record what became of its events");
      return "away";
    }
    if (failed.length < judged.length) return "through";
    return failed.every((error) => isPostbellError(error, "storage_full")) ? "full" : "away";
  };

  const pass = async (): Promise<Pass> => {
    // One row finds out as well as a hundred whether things are better, and leaves one outcome unsure.
    const limit = failures > 0 ? 1 : batch;
    const until = clock.monotonic() + leaseMs;
    let claims: readonly OutboxClaim[];
    try {
      claims = await source.claim({ limit, leaseMs });
    } catch (error) {
      logger.error({ error }, "the source could not be asked for due events");
      failures += 1;
      return { count: 0, isFull: false, progress: "away", error };
    }
    const suspects = claims.filter(isPoison);
    const others = claims.filter((claim) => !isPoison(claim));
    const moved: Progress[] = [];
    if (others.length > 0) moved.push(await move(others, until));
    // One at a time and in an order of chance: the one that kills the process does not take the same ones with it every time.
    for (const suspect of shuffled(suspects, clock)) moved.push(await move([suspect], until));
    const progress =
      claims.length === 0
        ? "through"
        : ((["through", "away"] as const).find((one) => moved.includes(one)) ?? "full");
    failures = progress === "away" ? failures + 1 : 0;
    return { count: claims.length, isFull: claims.length === limit, progress };
  };

  const nextPass = (): Promise<Pass> => {
    const next = last.then(pass);
    last = next;
    return next;
  };

  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clock.clearTimeout(timer);
        resolve();
      };
      const timer: Timer = clock.setTimeout(end, ms);
      endSleep = end;
    });

  const run = async (): Promise<void> => {
    while (isRunning) {
      isWanted = false;
      const { isFull, progress } = await nextPass();
      if (!isRunning || (progress === "through" && (isFull || isWanted))) continue;
      await sleep(progress === "away" ? Math.max(pollMs, rowRetryDelayMs(failures - 1)) : pollMs);
    }
    loop = undefined;
  };

  return Object.freeze<Outbox>({
    async start() {
      isRunning = true;
      loop ??= run();
    },
    async stop({ graceMs = DEFAULT_GRACE_MS } = {}) {
      isRunning = false;
      endSleep();
      if (loop !== undefined) await withTimeout(clock, graceMs, loop, () => new Error()).catch(() => {});
    },
    wake() {
      isWanted = true;
      // While nothing gets through, the pause is what protects the storage.
      if (failures === 0) endSleep();
    },
    async idle() {
      if (!isRunning)
        throw new PostbellError("not_started", "idle() needs a running outbox: call start() first.");
      let result: Pass;
      do result = await nextPass();
      while (result.count > 0);
      if (result.error !== undefined) throw result.error as Error;
    },
    async stats() {
      return { ...(await source.stats()), emitted, duplicates };
    },
    parked: async ({ limit = DEFAULT_PARKED } = {}) => source.parked({ limit: readLimit(limit) }),
    release: async (keys) => source.release(readKeys(keys)),
    discard: async (keys) => source.remove(readKeys(keys)),
  });
}
