/** The time of the Redis server, read without asking it each time. */

import type { Clock } from "../../src/core/clock.js";

/**
 * How long a sample serves: clocks of two machines drift apart by a few milliseconds in this time.
 */
const SAMPLE_MS = 10_000;
/**
 * A change of the server's clock by more than this was set by somebody, and is followed at once.
 */
const JUMP_MS = 1_000;

export interface ServerTime {
  /** Epoch milliseconds. Does not run backwards, unless the server's own clock was set back. */
  readonly now: () => number;
  /** Whether the server has been asked yet; before that, `now` is the clock's. */
  readonly isKnown: boolean;
  /** Asks the server, where the last answer is older than ten seconds. */
  readonly refresh: () => Promise<void>;
  /** What the server's clock is ahead of this machine's, ms. */
  readonly skewMs: () => number;
}

/** `ask` resolves with the server's time in epoch milliseconds. */
export function createServerTime(clock: Clock, ask: () => Promise<number>): ServerTime {
  let offset: number | undefined;
  let sampledAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;
  let latest = 0;

  const sample = async (): Promise<void> => {
    const before = clock.monotonic();
    const server = await ask();
    const after = clock.monotonic();
    // The answer was read somewhere between the two: the middle is wrong by half the way at most.
    offset = server - (before + after) / 2;
    sampledAt = after;
  };

  return {
    get isKnown() {
      return offset !== undefined;
    },
    now() {
      const at = Math.round(offset === undefined ? clock.now() : offset + clock.monotonic());
      latest = Math.abs(at - latest) > JUMP_MS ? at : Math.max(latest, at);
      return latest;
    },
    async refresh() {
      if (clock.monotonic() - sampledAt < SAMPLE_MS) return;
      asking ??= sample().finally(() => {
        asking = undefined;
      });
      // The first answer has to be there; later ones only correct it.
      if (offset === undefined) await asking;
      else void asking.catch(() => {});
    },
    skewMs: () => (offset === undefined ? 0 : Math.round(offset + clock.monotonic() - clock.now())),
  };
}

/**
 * A time that nobody but the clock decides, for tests that move it. Setting the wall clock moves
 * nothing.
 */
export function createClockTime(clock: Clock): ServerTime {
  const epoch = clock.now() - clock.monotonic();
  return {
    isKnown: true,
    now: () => Math.round(epoch + clock.monotonic()),
    refresh: async () => {},
    skewMs: () => 0,
  };
}
