/**
 * Notifies sleeping workers, here and in other processes, that something may be due. Nothing
 * depends on a notification: a worker that misses one claims after `maxSleepMs`.
 */

import { type Clock, withTimeout } from "../../src/core/clock.js";
import type { RedisClient } from "./clients.js";
import { resultUnknown } from "./redis-errors.js";

/** How long a subscription may take. Without a reply the connection is replaced. */
const SUBSCRIBE_MS = 5_000;

export interface WorkerNotifications {
  notify(at: number): void;
  /**
   * Subscribes again, to be called when another connection to the same server was replaced: the one
   * that listens sends nothing, so it cannot notice by itself that it leads nowhere.
   */
  resubscribe(): void;
  /** Adds a listener, and returns the function that removes it. */
  watch(listener: (at: number) => void): () => void;
  close(): void;
}

/**
 * `subscriber` resolves with a client to subscribe with, created for the first listener; `null` if
 * there is no connection to spare. A process that listens takes its own work, so it publishes
 * nothing.
 */
export function createWorkerNotifications({
  channel,
  clock,
  now,
  publish,
  subscriber,
}: {
  channel: string;
  clock: Clock;
  now: () => number;
  publish: (channel: string, at: number) => Promise<unknown>;
  subscriber: (() => Promise<RedisClient>) | null;
}): WorkerNotifications {
  const listeners = new Set<(at: number) => void>();
  let subscribed: RedisClient | undefined;
  let isPublishing = false;
  let next: number | undefined;
  let isClosed = false;

  const notifyLocally = (at: number): void => {
    for (const listener of listeners) listener(at);
  };
  const onMessage = (from: unknown, message: unknown): void => {
    const at = Number(message);
    if (from === channel && Number.isFinite(at)) notifyLocally(at);
  };
  /** Publishes one at a time. Notifications that come meanwhile are merged into the earliest. */
  const publishNext = (at: number): void => {
    next = Math.min(next ?? at, at);
    if (isPublishing || isClosed) return;
    isPublishing = true;
    const earliest = next;
    next = undefined;
    const done = (): void => {
      isPublishing = false;
      if (next !== undefined) publishNext(next);
    };
    publish(channel, earliest).then(done, done);
  };

  /**
   * Also after a reconnection: notifications that were published meanwhile are lost, so workers
   * claim now.
   */
  const onReady = (): void => {
    const client = subscribed;
    if (client?.status !== "ready") return;
    const replace = (): Error => {
      // The client of a Cluster chooses the node that it listens to, and has the host's commands.
      if (!client.isCluster) client.disconnect(true);
      return resultUnknown("no reply in time");
    };
    withTimeout(clock, SUBSCRIBE_MS, client.subscribe(channel), replace).then(
      () => notifyLocally(now()),
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
    else onReady();
  };

  return {
    notify(at) {
      if (listeners.size > 0) notifyLocally(at);
      else publishNext(at);
    },
    resubscribe: onReady,
    watch(listener) {
      const watcher = (at: number): void => listener(at);
      listeners.add(watcher);
      // Without a subscription workers claim after `maxSleepMs`.
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
