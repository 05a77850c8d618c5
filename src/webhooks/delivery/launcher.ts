/** Runs one flight: takes a slot, makes the attempt, frees the slot. */

import type { Clock } from "../../core/clock.js";
import { createDeadlines } from "../../core/deadlines.js";
import type { Logger } from "../../core/logger.js";
import type { MakeAttempt } from "./attempt.js";
import type { AttemptResult } from "./attempt-result.js";
import type { Slots } from "./concurrency-budget.js";
import type { Flight } from "./flight.js";

export interface LauncherContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly attempt: MakeAttempt;
  readonly slots: Slots;
  /** After this time an attempt moves to the slow budget. */
  readonly slowAfterMs: number;
  /** Called with the result; `null` if the lease has to decide. The slot is free already. */
  readonly onLanded: (flight: Flight, result: AttemptResult | null) => void;
  /** Called when a slot was freed. */
  readonly onFreed: () => void;
}

/** Returns a function that begins the attempt of a flight. It never throws. */
export function createLauncher({
  clock,
  logger,
  attempt,
  slots,
  slowAfterMs,
  onLanded,
  onFreed,
}: LauncherContext): (flight: Flight) => void {
  const slowMarks = createDeadlines(clock);

  const land = (flight: Flight, result: AttemptResult | null): void => {
    flight.isOver = true;
    slowMarks.remove(flight.slowMark);
    // The connection is free: settling the delivery needs no slot.
    slots.leave(flight);
    onLanded(flight, result);
    onFreed();
  };

  const fail = (flight: Flight, error: unknown): void => {
    // A defect of Postbell: the lease expires, and the rules for crashes delay the delivery.
    logger.error({ delivery: flight.claim.id, error }, "an attempt failed unexpectedly");
    land(flight, null);
  };

  const carryOut = (flight: Flight): void => {
    let result: ReturnType<MakeAttempt>;
    try {
      result = attempt(flight);
    } catch (error) {
      fail(flight, error);
      return;
    }
    if (result instanceof Promise)
      result.then(
        (known) => land(flight, known),
        (error: unknown) => fail(flight, error),
      );
    else land(flight, result);
  };

  return (flight) => {
    const { lane } = flight.claim;
    slots.enter(flight, lane);
    if (lane === "fast")
      flight.slowMark = slowMarks.add(clock.monotonic() + slowAfterMs, () => {
        slots.slowDown(flight);
        onFreed();
      });
    carryOut(flight);
  };
}
