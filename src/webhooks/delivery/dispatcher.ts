/** Moves deliveries: the loop claims what is due, flights attempt it, the settler settles it. This is their life cycle. */

import type { Clock, Timer } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { WebhookStore } from "../store.js";
import type { AttemptResult } from "./attempt-result.js";
import type { DeliveryContext } from "./context.js";
import type { Flight } from "./flight.js";
import { createFlights, type Flights } from "./flights.js";
import { createLoop, type Loop, type LoopStats, type Reservation } from "./loop.js";
import { createSettler } from "./settler.js";
import { createStorageOutage } from "./storage-outage.js";

export type { LoopStats } from "./loop.js";

export interface DispatcherContext {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: WebhooksSettings;
  readonly attempt: (flight: Flight) => AttemptResult | null | Promise<AttemptResult | null>;
  /** Takes the health steps that are due; resolves with when the next one is, `null` where none waits. */
  readonly takeNotices: () => Promise<number | null>;
  readonly telemetry: Telemetry | undefined;
}

export interface DeliveryDispatcher {
  /** For a call that makes deliveries, so that the first of them need no call of their own. `undefined` where no slot is free for them. */
  reserve(): Reservation | undefined;
  start(): void;
  /** Claims nothing more, lets what is in flight end within `graceMs`, then leaves the rest to its lease. Resolves in every case. */
  stop(graceMs: number): Promise<void>;
  /** Resolves once nothing is due and nothing in flight. Rejects with `not_started`, or with the error of an unavailable storage. */
  idle(): Promise<void>;
  /** How many deliveries are in flight. */
  inFlight(): number;
  stats(): LoopStats;
}

export function createDeliveryDispatcher({
  store,
  clock,
  logger,
  settings,
  attempt,
  takeNotices,
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
  /** Callers of idle() that wait for everything in flight to end. */
  const waiting: (() => void)[] = [];

  const isBusy = (): boolean => !flights.isEmpty() || loop.isTakingNotices();
  const notifyIdle = (): void => {
    if (!isBusy()) for (const resolve of waiting.splice(0)) resolve();
  };

  const settler = createSettler({
    ...shared,
    onEnded: (ended) => flights.end(ended),
    onFailure: (noticeAt) => loop.noteFailure(noticeAt),
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
    takeNotices,
    onNoticesTaken: notifyIdle,
  });

  return Object.freeze<DeliveryDispatcher>({
    reserve: () => loop.reserve(),

    start() {
      if (loop.isRunning()) return;
      flights.open();
      loop.start();
    },

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
            "idle() waits for deliveries, and nobody makes any: call start() first.",
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
