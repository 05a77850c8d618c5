/** Starts and stops delivery: the loop claims, the flights attempt, the settler settles. */

import type { Clock, Timer } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { WebhookStore } from "../store.js";
import type { MakeAttempt } from "./attempt.js";
import { createStorageOutage, type DeliveryContext } from "./context.js";
import { createFlights, type Flights } from "./flights.js";
import { createLoop, type Loop, type LoopStats, type Reservation } from "./loop.js";
import { createSettler } from "./settler.js";

export type { LoopStats } from "./loop.js";

export interface DispatcherContext {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: WebhooksSettings;
  readonly attempt: MakeAttempt;
  /**
   * Sends what is due. Resolves with the next due time, or `null` if no health step is scheduled.
   */
  readonly sendHealthNotifications: () => Promise<number | null>;
  readonly telemetry: Telemetry | undefined;
}

export interface DeliveryDispatcher {
  /**
   * Reserves slots for a call that creates deliveries, which can then also claim the first of them.
   * Returns `undefined` if no slot is free.
   */
  reserve(): Reservation | undefined;
  start(): void;
  isRunning(): boolean;
  /**
   * Stops claiming, gives deliveries in flight `graceMs` to end, and leaves the rest to their
   * leases. Never rejects.
   */
  stop(graceMs: number): Promise<void>;
  /**
   * Resolves when nothing is due and nothing is in flight. Rejects with `not_started`, or with the
   * error of an unavailable storage.
   */
  idle(): Promise<void>;
  /** The number of deliveries in flight. */
  inFlight(): number;
  stats(): LoopStats;
}

export function createDeliveryDispatcher({
  store,
  clock,
  logger,
  settings,
  attempt,
  sendHealthNotifications,
  telemetry,
}: DispatcherContext): DeliveryDispatcher {
  const { leaseMs } = settings.delivery;
  const shared: DeliveryContext = {
    store,
    clock,
    logger,
    telemetry,
    outage: createStorageOutage(clock),
    leaseMs,
  };
  /** Callers of idle() that wait until nothing is in flight. */
  const waiting: (() => void)[] = [];

  const isBusy = (): boolean => !flights.isEmpty() || loop.isSendingHealthNotifications();
  const notifyIdle = (): void => {
    if (!isBusy()) for (const resolve of waiting.splice(0)) resolve();
  };

  const settler = createSettler({
    ...shared,
    onEnded: (ended) => flights.end(ended),
    onFailure: (dueAt) => loop.expectHealthStep(dueAt),
  });
  const flights: Flights = createFlights({
    clock,
    logger,
    settings,
    attempt,
    settler,
    onFreed: () => loop.wakeIfBacklogged(),
    onEmpty: notifyIdle,
  });
  const loop: Loop = createLoop({
    ...shared,
    flights,
    sendHealthNotifications,
    onHealthNotificationsSent: notifyIdle,
  });

  return Object.freeze<DeliveryDispatcher>({
    reserve: () => loop.reserve(),

    start() {
      if (loop.isRunning()) return;
      flights.open();
      loop.start();
    },

    isRunning: () => loop.isRunning(),

    async stop(graceMs) {
      if (!loop.isRunning()) return;
      let timer: Timer | undefined;
      const grace = new Promise<void>((resolve) => {
        timer = clock.setTimeout(resolve, graceMs);
      });
      const released = flights.close();
      const landed = loop.stop().then(() => Promise.all([released, flights.landed()]));
      await Promise.race([landed, grace]);
      clock.clearTimeout(timer);
      const cancelled = flights.cancel();
      settler.endPauses();
      await cancelled;
    },

    async idle() {
      for (;;) {
        if (!loop.isRunning()) {
          throw new PostbellError(
            "not_started",
            "idle() waits for deliveries, but the service is not started: call start() first.",
          );
        }
        const before = loop.passCount();
        loop.wake();
        await loop.passes();
        if (isBusy()) await new Promise<void>((resolve) => waiting.push(resolve));
        else if (!loop.isPassing() && loop.passCount() > before) return;
      }
    },

    inFlight: flights.size,
    stats: () => loop.stats(),
  });
}
