/** The time of the Redis server, sampled every ten seconds. */

import type { Clock } from "../src/core/clock.js";

/**
 * How long a sample is used. The clocks of two machines drift apart by a few milliseconds in this
 * time.
 */
const SAMPLE_MS = 10_000;
/** A larger change of the server's clock was made on purpose, and is followed at once. */
const JUMP_MS = 1_000;

export interface ServerTime {
  /** Returns epoch ms. The time does not run backwards, unless the server's clock was set back. */
  now: () => number;
  /** True once the server's time was read. Before that, `now` is the time of the clock. */
  isKnown: boolean;
  /** Reads the server's time if the last sample is older than ten seconds. */
  refresh: () => Promise<void>;
  /** Returns how far the server's clock is ahead of this machine's, in ms. */
  skewMs: () => number;
}

/** `readTime` resolves with the server's time in epoch ms. */
export function createServerTime(clock: Clock, readTime: () => Promise<number>): ServerTime {
  let offset: number | undefined;
  let sampledAt = Number.NEGATIVE_INFINITY;
  let sampling: Promise<void> | undefined;
  let latest = 0;

  const sample = async (): Promise<void> => {
    const before = clock.monotonic();
    const server = await readTime();
    const after = clock.monotonic();
    // The server read its clock between the two: their middle is wrong by half the round trip at
    // most.
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
      sampling ??= sample().finally(() => {
        sampling = undefined;
      });
      // The first sample is needed; later ones only correct it.
      if (offset === undefined) await sampling;
      else void sampling.catch(() => {});
    },
    skewMs: () => (offset === undefined ? 0 : Math.round(offset + clock.monotonic() - clock.now())),
  };
}

/**
 * A time that only the clock determines, for tests that move it. Setting the wall clock changes
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
