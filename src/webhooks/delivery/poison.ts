/** Runs poison deliveries, which may crash the process, one at a time. */

import type { Clock } from "../../core/clock.js";
import type { Claim, Lane } from "../store.js";
import type { Flight } from "./flight.js";
import { crashDelayMs, type RetryPolicy } from "./retry-schedule.js";
import type { Settler } from "./settler.js";

/**
 * A delivery whose lease expired this often without a settlement may be poison: it crashes the
 * process, and with it all deliveries in flight. A process attempts one such delivery at a time and
 * releases the others, so that only the guilty one is in flight when the process dies.
 */
const POISON_CRASHES = 3;
const POISON_DELAY_MS = 1_000;

export interface PoisonContext {
  readonly retry: RetryPolicy;
  readonly clock: Clock;
  readonly settler: Pick<Settler, "release">;
  readonly flights: ReadonlySet<Flight>;
  readonly hasFreeSlot: (lane: Lane) => boolean;
  readonly isOpen: () => boolean;
  readonly launch: (claim: Claim, claimedAt: number) => void;
}

export interface PoisonControl {
  /** A delivery that is quarantined for its crashes is not attempted now, so it can do no harm. */
  readonly isPoison: (claim: Claim) => boolean;
  /** Attempts at most one of the claims. Resolves when the others are released. */
  readonly take: (poison: readonly Claim[], claimedAt: number) => Promise<void>;
}

export function createPoisonControl(context: PoisonContext): PoisonControl {
  const { retry, clock, settler, flights, hasFreeSlot, isOpen, launch } = context;
  /** True while a chosen delivery waits for the release of the others. */
  let isChosen = false;

  const isPoison = ({ crashes, isRecovered }: Claim): boolean =>
    crashes >= POISON_CRASHES && !(isRecovered && crashDelayMs(crashes, retry) > 0);

  const isPoisonInFlight = (): boolean =>
    isChosen || [...flights].some(({ claim, isOver }) => !isOver && isPoison(claim));

  const take = async (poison: readonly Claim[], claimedAt: number): Promise<void> => {
    const [first] = poison;
    const isFree = first !== undefined && hasFreeSlot(first.lane) && !isPoisonInFlight();
    const chosen = isFree ? first : undefined;
    const others = poison.filter((claim) => claim !== chosen);
    if (chosen !== undefined) isChosen = true;
    // Released first: if the chosen one ends the process, it must not count as a crash of the
    // others.
    await Promise.all(
      others.map((claim) => settler.release([claim], POISON_DELAY_MS * (1 + clock.random()))),
    );
    if (chosen === undefined) return;
    isChosen = false;
    if (isOpen()) launch(chosen, claimedAt);
    else await settler.release([chosen]);
  };

  return Object.freeze<PoisonControl>({ isPoison, take });
}
