/** Starts and stops the delivery of a service. Both calls may be repeated and may overlap. */

import { AsyncResource } from "node:async_hooks";
import { callHook, whenAborted } from "../core/clock.js";
import { PostbellError } from "../core/errors.js";
import type { Reading } from "../core/telemetry.js";
import type { ServiceBase } from "./config/config.js";
import {
  type DrainBounds,
  type Drained,
  type DrainOptions,
  drain,
  readDrainOptions,
} from "./delivery/drain.js";
import { DrainLimit } from "./delivery/slots.js";
import type { DeliveryWorker } from "./delivery/worker.js";
import type { Sender } from "./sender.js";
import type { StartReminder } from "./start-reminder.js";
import type { WebhookStore } from "./store.js";

const DEFAULT_GRACE_MS = 10_000;

export interface Lifecycle {
  drain: (options?: DrainOptions) => Promise<Drained>;
  start: () => Promise<void>;
  stop: (options?: StopOptions) => Promise<void>;
  /**
   * Returns the signal that ends calls with requests of their own, such as `deliveries.examine`.
   * After `stop` it is aborted until the next start.
   */
  getSignal: () => AbortSignal;
}

/** How long `stop` waits for what is in flight. */
export interface StopOptions {
  /** Attempts in flight get this long to finish. Default 10 000. */
  graceMs?: number | undefined;
  /** Ends the grace period at once when it is aborted. */
  signal?: AbortSignal | undefined;
}

/** Never rejects: gauges that the storage cannot read are left out. */
async function readGauges(store: WebhookStore, inFlight: number): Promise<Reading[]> {
  const inFlightReading: Reading = { metric: "deliveriesInFlight", labels: {}, value: inFlight };
  const stats = await store.stats().catch(() => undefined);
  if (stats === undefined) return [inFlightReading];
  return [
    inFlightReading,
    { metric: "deliveriesPending", labels: {}, value: stats.pending },
    { metric: "deliveriesDue", labels: {}, value: stats.due },
    ...Object.entries(stats.endpoints ?? {}).map(
      ([health, value]): Reading => ({ metric: "endpoints", labels: { health }, value }),
    ),
  ];
}

export function createLifecycle(
  { store, config, logger, telemetry, audit }: ServiceBase,
  worker: DeliveryWorker,
  sender: Sender,
  reminder: StartReminder,
): Lifecycle {
  const { clock, notify, limits, delivery, awaitStorage } = config;
  let isWanted = false;
  /** True from `stop` until the next start. */
  let isStopped = false;
  /** Aborted when the service stops. */
  let running = new AbortController();
  let stopping: Promise<void> | undefined;
  /** Ends the grace period of `stopping`. */
  let cut = new AbortController();
  let draining: Promise<Drained> | undefined;
  let stopObserving: (() => void) | undefined;
  /** Of the last `start`: results are reported in it also while stopping. */
  let context = new AsyncResource("Webhooks");

  const closeNotifiers = async (): Promise<void> => {
    try {
      await callHook(clock, limits.hookMs, () => notify.close?.());
    } catch (error) {
      logger.error({ error }, "notify.close failed; what the notifiers hold may stay open");
    }
  };

  const end = async (graceMs: number, signal: AbortSignal): Promise<void> => {
    running.abort(stopped());
    await worker.stop(graceMs, signal);
    stopObserving?.();
    stopObserving = undefined;
    await sender.close();
    await audit.settled();
    await closeNotifiers();
  };

  /** Rejects if the storage cannot be reached, unless `stop` was called meanwhile. */
  const checkStorage = async (): Promise<void> => {
    try {
      await store.stats();
    } catch (error) {
      if (isWanted) throw error;
    }
  };

  const stop = (graceMs: number, signal?: AbortSignal): Promise<void> => {
    const current = cut;
    if (signal !== undefined) void whenAborted(signal).then(() => current.abort());
    // A second call (a second SIGTERM) must not shorten the grace period of the first.
    stopping ??= context.runInAsyncScope(end, undefined, graceMs, cut.signal).finally(() => {
      stopping = undefined;
      cut = new AbortController();
    });
    return stopping;
  };

  const runDrain = async ({ forMs, deliveries }: DrainBounds): Promise<Drained> => {
    while (stopping !== undefined) await stopping;
    isStopped = false;
    const limit = new DrainLimit(deliveries);
    context = new AsyncResource("Webhooks");
    reminder.started();
    let isEmpty: boolean;
    try {
      isEmpty = await drain(worker, clock, { forMs, limit });
    } finally {
      // No attempt takes longer, so each in flight is settled.
      await stop(delivery.deadlineMs + limits.hookMs);
      reminder.stopped();
    }
    return { attempted: limit.attempts, isEmpty };
  };

  return {
    async drain(options) {
      const bounds = readDrainOptions(options);
      if (isWanted || draining !== undefined) {
        throw new PostbellError(
          "already_started",
          isWanted
            ? "drain() is for a service that is not started, and this one delivers already: leave drain() out, or call stop() first."
            : "drain() is running already: await it before you call it again.",
        );
      }
      reminder.dismissAtExit();
      draining = runDrain(bounds).finally(() => {
        draining = undefined;
      });
      return draining;
    },
    async start() {
      reminder.dismissAtExit();
      isWanted = true;
      isStopped = false;
      if (awaitStorage) await checkStorage();
      // `stop` may have been called while this call waited, and perhaps `start` again.
      while (stopping !== undefined || draining !== undefined) await Promise.allSettled([stopping, draining]);
      if (!isWanted) return;
      if (!worker.isRunning()) context = new AsyncResource("Webhooks");
      worker.start();
      reminder.started();
      stopObserving ??= telemetry?.observe(() => readGauges(store, worker.inFlight()));
    },
    stop({ graceMs = DEFAULT_GRACE_MS, signal } = {}) {
      reminder.stopped();
      isWanted = false;
      isStopped = true;
      return stop(graceMs, signal);
    },
    getSignal() {
      if (running.signal.aborted && !isStopped && stopping === undefined) running = new AbortController();
      return running.signal;
    },
  };
}

const stopped = (): PostbellError =>
  new PostbellError(
    "not_started",
    "The service was stopped, so it sends no requests of an examination: call start() first.",
  );
