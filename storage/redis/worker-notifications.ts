/** Tells sleeping dispatchers, here and in other processes, that something may be due. Nothing depends on a hint: who hears none looks by itself. */

import type { RedisClient } from "./client.js";

export interface WorkerNotifications {
  tell(at: number): void;
  watch(listener: (at: number) => void): () => void;
  close(): void;
}

/**
 * `client` publishes. `subscriber` gives a connection to listen on, made for the first listener; none where connections are needed for other things.
 * A process that listens itself takes up its own work, so only others' hints travel.
 */
export function createWorkerNotifications({
  channel,
  now,
  publish,
  subscriber,
}: {
  readonly channel: string;
  readonly now: () => number;
  readonly publish: (channel: string, at: number) => Promise<unknown>;
  readonly subscriber: (() => Promise<RedisClient>) | null;
}): WorkerNotifications {
  const listeners = new Set<(at: number) => void>();
  let subscribed: RedisClient | undefined;
  let isPublishing = false;
  let next: number | undefined;
  let isClosed = false;

  const tellHere = (at: number): void => {
    for (const listener of listeners) listener(at);
  };
  const onMessage = (from: unknown, message: unknown): void => {
    const at = Number(message);
    if (from === channel && Number.isFinite(at)) tellHere(at);
  };
  /** One at a time: what comes meanwhile is one hint, the earliest. */
  const tellOthers = (at: number): void => {
    next = Math.min(next ?? at, at);
    if (isPublishing || isClosed) return;
    isPublishing = true;
    const earliest = next;
    next = undefined;
    const done = (): void => {
      isPublishing = false;
      if (next !== undefined) tellOthers(next);
    };
    publish(channel, earliest).then(done, done);
  };

  /** Also after a reconnection. What was published while nobody listened is unknown. */
  const onReady = (): void => {
    subscribed?.subscribe(channel).then(
      () => tellHere(now()),
      () => {},
    );
  };

  let isListening = false;
  const listen = async (): Promise<void> => {
    if (isListening || !subscriber) return;
    isListening = true;
    const client = await subscriber();
    if (isClosed) return;
    subscribed = client;
    client.on("message", onMessage);
    client.on("ready", onReady);
    if (client.status === "wait") await client.connect();
    else if (client.status === "ready") onReady();
  };

  return {
    tell(at) {
      if (listeners.size > 0) tellHere(at);
      else tellOthers(at);
    },
    watch(listener) {
      const watcher = (at: number): void => listener(at);
      listeners.add(watcher);
      // Without a subscription the dispatcher looks by itself.
      void listen().catch(() => {});
      return () => {
        listeners.delete(watcher);
      };
    },
    close() {
      isClosed = true;
      listeners.clear();
      subscribed?.off("message", onMessage);
      subscribed?.off("ready", onReady);
      void subscribed?.unsubscribe(channel).catch(() => {});
    },
  };
}
