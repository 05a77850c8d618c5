/** Unlocks protected posts with a reader's password, and limits wrong attempts on each post. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../core/clock.js";
import { RestError } from "../rest/error.js";

type Protected = { id: number; password: string };

export interface Passwords {
  /**
   * Returns the ids of the `posts` that `password` unlocks. A wrong password counts against every
   * post that it was tried on, even if it unlocks others. Posts without a password do not count.
   *
   * Compares in constant time. Compares nothing if one of the posts has no attempt left.
   *
   * @throws RestError 429 `rest_too_many_passwords`
   */
  open: (posts: Protected[], password: string) => Set<number>;
}

/** The number of wrong attempts on a post at a moment. It decreases evenly over time. */
interface Attempts {
  count: number;
  at: number;
}

const MAX_POSTS = 10_000;
const MINUTE_MS = 60_000;

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * Each process counts alone. Only existing protected posts have a count, and no count is
 * dropped before it has expired, so guesses on other posts cannot reset it. Once `maxPosts` posts
 * have wrong attempts, further posts stay locked.
 */
export function createPasswords({
  perMinute,
  clock,
  maxPosts = MAX_POSTS,
}: {
  /** Wrong passwords per post and minute, which may come all at once. 0 sets no limit. */
  perMinute: number;
  clock: Clock;
  /** Posts whose wrong attempts are counted at a time. Default: 10 000. */
  maxPosts?: number;
}): Passwords {
  const perMs = perMinute / MINUTE_MS;
  const attempts = new Map<number, Attempts>();

  const remaining = ({ count, at }: Attempts, now: number): number => Math.max(0, count - (now - at) * perMs);
  const getCount = (id: number, now: number): number => {
    const window = attempts.get(id);
    return window === undefined ? 0 : remaining(window, now);
  };

  function dropExpired(now: number): void {
    for (const [id, window] of attempts) if (remaining(window, now) === 0) attempts.delete(id);
  }

  /** Returns the milliseconds until each of `ids` has an attempt left; 0 if they have one now. */
  function getWait(ids: number[], now: number): number {
    const excess = Math.max(...ids.map((id) => getCount(id, now) + 1 - perMinute));
    if (excess > 0) return excess / perMs;
    const isNew = (id: number): boolean => !attempts.has(id);
    if (attempts.size + ids.filter(isNew).length <= maxPosts) return 0;
    dropExpired(now);
    return attempts.size + ids.filter(isNew).length <= maxPosts ? 0 : MINUTE_MS;
  }

  return {
    open(posts, sent) {
      const closed = posts.filter(({ password }) => password !== "");
      if (closed.length === 0) return new Set();
      const now = clock.monotonic();
      const ids = closed.map(({ id }) => id);
      const wait = perMinute === 0 ? 0 : getWait(ids, now);
      if (wait > 0) throw tooMany(Math.ceil(wait / 1000));
      const wanted = digest(sent);
      const opened = new Set<number>();
      for (const { id, password } of closed) {
        if (timingSafeEqual(wanted, digest(password))) opened.add(id);
        else if (perMinute > 0) attempts.set(id, { count: getCount(id, now) + 1, at: now });
      }
      return opened;
    },
  };
}

const tooMany = (seconds: number): RestError =>
  new RestError(429, "rest_too_many_passwords", `Too many passwords were tried; wait ${seconds} s.`, {
    retryAfter: seconds,
  });
