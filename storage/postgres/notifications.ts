/**
 * Notifies sleeping workers, here and in other processes, with LISTEN and NOTIFY. Nothing depends
 * on a notification: a worker that misses one claims after `maxSleepMs`.
 */

import type { Clock, Timer } from "../../src/core/clock.js";
import { createWatchers, type Watchers } from "../watchers.js";
import { type PgPoolClient, type PostgresPool, runQuery } from "./client.js";
import { borrow } from "./database.js";

const RECONNECT_MS = 1_000;

/** Returns the name of the channel of a schema. */
export const toChannel = (schema: string): string => `postbell_${schema}`;

const NOTIFY = "SELECT pg_notify($1, $2)";

export interface PostgresNotifications extends Watchers {
  readonly close: () => void;
}

export interface PostgresNotificationsOptions {
  readonly pool: () => Promise<PostgresPool>;
  readonly schema: string;
  /** False behind a pooler of transactions, which lends no connection to listen on. */
  readonly isListening: boolean;
  readonly getClock: () => Clock;
  readonly now: () => number;
}

export function createPostgresNotifications({
  pool,
  schema,
  isListening,
  getClock,
  now,
}: PostgresNotificationsOptions): PostgresNotifications {
  const channel = toChannel(schema);
  const watchers = createWatchers();
  let listeners = 0;
  let client: PgPoolClient | undefined;
  let isConnecting = false;
  let timer: Timer | undefined;
  let isClosed = false;
  let isPublishing = false;
  let next: number | undefined;

  const onNotification = ({ payload }: { readonly payload?: string | undefined }): void => {
    const at = Number(payload);
    if (Number.isFinite(at)) watchers.notify(at);
  };
  /**
   * Listens again later. What was published meanwhile is lost, so workers then claim. A connection
   * may tell several times that it has ended, also when another one has taken its place.
   */
  const onEnd = (ended: PgPoolClient | undefined): void => {
    if (client === undefined || client !== ended) return;
    client = undefined;
    ended.release(true);
    if (!isClosed) timer = getClock().setTimeout(() => void listen(), RECONNECT_MS);
  };

  const listen = async (): Promise<void> => {
    if (!isListening || isClosed || isConnecting || client !== undefined) return;
    isConnecting = true;
    try {
      const lent = await (await pool()).connect();
      client = lent;
      for (const event of ["error", "end"]) lent.on(event, () => onEnd(lent));
      lent.on("notification", onNotification);
      await lent.query(`LISTEN "${channel}"`);
      watchers.notify(now());
      if (isClosed) onEnd(lent);
    } catch {
      if (client !== undefined) onEnd(client);
      else if (!isClosed) timer = getClock().setTimeout(() => void listen(), RECONNECT_MS);
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
      .then((own) => borrow(own, (lent) => runQuery(lent, NOTIFY, [channel, String(earliest)])))
      .then(done, done);
  };

  return {
    notify(at) {
      // A process that waits for work takes its own.
      if (listeners > 0) watchers.notify(at);
      else if (isListening) publish(at);
    },
    watch(listener) {
      const end = watchers.watch(listener);
      let isWatching = true;
      listeners += 1;
      void listen();
      return () => {
        if (isWatching) listeners -= 1;
        isWatching = false;
        end();
      };
    },
    close() {
      isClosed = true;
      getClock().clearTimeout(timer);
      onEnd(client);
    },
  };
}
