/**
 * Notifies sleeping workers, here and in other processes, with LISTEN and NOTIFY. Nothing depends
 * on a notification: a worker that misses one claims after `maxSleepMs`.
 *
 * Transactions that notify commit one after another, each with a write to the disk. So they
 * only notify while somebody sleeps. A worker that sleeps keeps a shared advisory lock on the
 * connection that listens. An append tries to take it exclusively, and gives it back at once: if it
 * succeeds, nobody sleeps. When notifications come in quick succession, a worker gives its lock up
 * and polls instead, until claims find nothing.
 */

import type { Clock, Timer } from "../../src/core/clock.js";
import type { ClaimResponse } from "../../src/webhooks/store.js";
import { createWatchers, type Watchers } from "../watchers.js";
import { type PgPoolClient, type PostgresPool, runQuery } from "./client.js";
import { borrow } from "./database.js";

const RECONNECT_MS = 1_000;

/** A connection that listens is asked so often if it is still there, and is ended so much later. */
const HEARTBEAT_MS = 10_000;
const SILENT_MS = 3_000;

/** How often a connection tries to say that a worker sleeps. */
const MAX_TRIES = 3;

/**
 * So many notifications in so little time have a worker poll. A slow disk allows few commits a
 * second that come one after another, so these must be enough.
 */
const MANY = 3;
const MANY_MS = 150;

/** How often a worker claims that polls, and after how many claims that found nothing it sleeps. */
const POLL_MS = 15;
const MAX_EMPTY = 4;

/**
 * When a worker claims that has just begun to sleep: what was appended before, and committed since,
 * notified nobody. A transaction of the host that takes longer is found after `maxSleepMs`.
 */
const SETTLE_MS = 100;

/** Returns the name of the channel of a schema. */
export const toChannel = (schema: string): string => `postbell_${schema}`;

export interface PostgresNotifications extends Watchers {
  /** Notes the response to a claim. Returns it, perhaps with an earlier time of the next one. */
  noteClaim: (response: ClaimResponse) => ClaimResponse;
  close: () => void;
}

export interface PostgresNotificationsOptions {
  pool: () => Promise<PostgresPool>;
  schema: string;
  /** False behind a pooler of transactions, which lends no connection to listen on. */
  isListening: boolean;
  getClock: () => Clock;
  now: () => number;
}

/** A connection that listens. It is never used again once it has failed or fallen silent. */
class Listener {
  /** True while this connection keeps the lock that says that a worker sleeps. */
  isMarked = false;
  #client: PgPoolClient;
  #clock: Clock;
  #schema: string;
  #onEnd: () => void;
  #timer: Timer | undefined;
  #isWanted = false;
  #isChanging = false;
  #isEnded = false;

  constructor(client: PgPoolClient, clock: Clock, schema: string, onEnd: () => void) {
    this.#client = client;
    this.#clock = clock;
    this.#schema = schema;
    this.#onEnd = onEnd;
    // It may tell several times that it has ended.
    for (const event of ["error", "end"]) client.on(event, () => this.end());
  }

  /** Runs a statement. Ends the connection if it fails, or takes too long. */
  async ask(text: string): Promise<unknown> {
    const timer = this.#clock.setTimeout(() => this.end(), SILENT_MS);
    try {
      const [row] = await runQuery<{ result: unknown }>(this.#client, text, []);
      return row?.result;
    } catch {
      this.end();
      return undefined;
    } finally {
      this.#clock.clearTimeout(timer);
    }
  }

  /** Notices when the connection falls silent, which neither pg nor the system tells in time. */
  watch(): void {
    if (this.#isEnded) return;
    this.#timer = this.#clock.setTimeout(() => {
      void this.ask("SELECT 1 AS result").then(() => this.watch());
    }, HEARTBEAT_MS);
  }

  /** Says that a worker sleeps, or that none does any more. The last call counts. */
  async mark(isWanted: boolean): Promise<void> {
    this.#isWanted = isWanted;
    if (this.#isChanging) return;
    this.#isChanging = true;
    // An append may have taken the lock for a moment. After the last try, the next claim goes on.
    for (let tries = 0; tries < MAX_TRIES && this.isMarked !== this.#isWanted && !this.#isEnded; tries++) {
      const isNext = this.#isWanted;
      const name = isNext ? "pg_try_advisory_lock_shared" : "pg_advisory_unlock_shared";
      const isDone = await this.ask(`SELECT pg_catalog.${name}("${this.#schema}".sleep_key()) AS result`);
      if (isDone === "t") this.isMarked = isNext;
    }
    this.#isChanging = false;
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#clock.clearTimeout(this.#timer);
    this.#client.connection?.stream?.destroy();
    this.#client.release(true);
    this.#onEnd();
  }
}

export function createPostgresNotifications({
  pool,
  schema,
  isListening,
  getClock,
  now,
}: PostgresNotificationsOptions): PostgresNotifications {
  const channel = toChannel(schema);
  const notifyText = `SELECT pg_notify($1, $2) WHERE NOT "${schema}".nobody_sleeps()`;
  const watchers = createWatchers();
  let listeners = 0;
  let listener: Listener | undefined;
  let isConnecting = false;
  let timer: Timer | undefined;
  let isClosed = false;
  let isPublishing = false;
  let next: number | undefined;
  let isPolling = false;
  let emptyClaims = 0;
  /** How many notifications have come since. */
  let count = 0;
  let countedSince = Number.NEGATIVE_INFINITY;

  const noteNotification = (): void => {
    const at = getClock().monotonic();
    if (at - countedSince > MANY_MS) [count, countedSince] = [0, at];
    count += 1;
    if (count < MANY || isPolling) return;
    [isPolling, emptyClaims] = [true, 0];
    void listener?.mark(false);
  };
  const onNotification = ({ payload }: { payload?: string | undefined }): void => {
    const at = Number(payload);
    if (!Number.isFinite(at)) return;
    noteNotification();
    watchers.notify(at);
  };
  const listenLater = (): void => {
    if (!isClosed) timer = getClock().setTimeout(() => void listen(), RECONNECT_MS);
  };

  /** Listens. What was published before is lost, so workers then claim. */
  const listen = async (): Promise<void> => {
    if (!isListening || isClosed || isConnecting || listener !== undefined) return;
    isConnecting = true;
    try {
      const client = await (await pool()).connect();
      const created = new Listener(client, getClock(), schema, () => {
        listener = undefined;
        listenLater();
      });
      listener = created;
      client.on("notification", onNotification);
      await created.ask(`LISTEN "${channel}"`);
      await created.mark(listeners > 0);
      created.watch();
      if (isClosed) created.end();
      else if (listener === created) watchers.notify(now());
    } catch {
      listenLater();
    } finally {
      isConnecting = false;
    }
  };

  /** Publishes one at a time. Notifications that come meanwhile are merged into the earliest. */
  const publish = (at: number): void => {
    next = Math.min(next ?? at, at);
    if (isPublishing || isClosed) return;
    isPublishing = true;
    const earliest = next;
    next = undefined;
    const done = (): void => {
      isPublishing = false;
      if (next !== undefined) publish(next);
    };
    pool()
      .then((lender) => borrow(lender, (lent) => runQuery(lent, notifyText, [channel, String(earliest)])))
      .then(done, done);
  };

  return {
    notify(at) {
      // A process that waits for work takes its own.
      if (listeners > 0) watchers.notify(at);
      else if (isListening) publish(at);
    },
    noteClaim(response) {
      if (listener === undefined || listeners === 0) return response;
      emptyClaims = response.claims.length === 0 ? emptyClaims + 1 : 0;
      if (emptyClaims >= MAX_EMPTY) isPolling = false;
      if (listener.isMarked && !isPolling) return response;
      if (!isPolling) void listener.mark(true);
      const at = now() + (isPolling ? POLL_MS : SETTLE_MS);
      return { ...response, nextAt: Math.min(response.nextAt ?? at, at) };
    },
    watch(onDue) {
      const end = watchers.watch(onDue);
      let isWatching = true;
      listeners += 1;
      void (listener === undefined ? listen() : listener.mark(true));
      return () => {
        if (isWatching) listeners -= 1;
        isWatching = false;
        if (listeners === 0) void listener?.mark(false);
        end();
      };
    },
    close() {
      isClosed = true;
      getClock().clearTimeout(timer);
      listener?.end();
    },
  };
}
