/** Opens posts with the password that a reader gives, and limits how many wrong ones may be tried on each. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../core/clock.js";
import type { Post } from "../records/records.js";
import { RestError } from "../rest/error.js";

type Protected = Pick<Post, "id" | "password">;

export interface Passwords {
  /**
   * The ids of the `posts` that `given` opens. Every wrong password counts against the post that it was tried on, whatever it opens
   * besides; a right one never counts, nor does a post without a password.
   *
   * Compares in constant time, and nothing at all if one of the posts has no attempt left.
   * @throws RestError 429 `rest_too_many_passwords`
   */
  readonly open: (posts: readonly Protected[], given: string) => ReadonlySet<number>;
}

export interface PasswordsOptions {
  /** Wrong passwords on one post, all at once or over a minute. 0 sets no limit. */
  readonly perMinute: number;
  readonly clock: Pick<Clock, "monotonic">;
  /** Posts that have wrong attempts at a time. */
  readonly maxPosts?: number;
}

/** Wrong attempts on a post: as many as there were at a moment. They wear off evenly over time. */
interface Attempts {
  readonly count: number;
  readonly at: number;
}

const MAX_POSTS = 10_000;
const MINUTE_MS = 60_000;

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * The counts are this process's own. Only protected posts that exist have one, and none is dropped before it has worn off:
 * no guess on another post can make room for more. With wrong attempts on `maxPosts` posts, further posts stay closed.
 */
export function createPasswords({ perMinute, clock, maxPosts = MAX_POSTS }: PasswordsOptions): Passwords {
  const perMs = perMinute / MINUTE_MS;
  const attempts = new Map<number, Attempts>();

  const wornOff = ({ count, at }: Attempts, now: number): number => Math.max(0, count - (now - at) * perMs);
  const countOf = (id: number, now: number): number => {
    const known = attempts.get(id);
    return known === undefined ? 0 : wornOff(known, now);
  };

  function dropWornOff(now: number): void {
    for (const [id, known] of attempts) if (wornOff(known, now) === 0) attempts.delete(id);
  }

  /** Milliseconds until each of `ids` has an attempt left; 0 for now. */
  function waitFor(ids: readonly number[], now: number): number {
    const excess = Math.max(...ids.map((id) => countOf(id, now) + 1 - perMinute));
    if (excess > 0) return excess / perMs;
    const isNew = (id: number): boolean => !attempts.has(id);
    if (attempts.size + ids.filter(isNew).length <= maxPosts) return 0;
    dropWornOff(now);
    return attempts.size + ids.filter(isNew).length <= maxPosts ? 0 : MINUTE_MS;
  }

  return {
    open(posts, given) {
      const closed = posts.filter(({ password }) => password !== "");
      if (closed.length === 0) return new Set();
      const now = clock.monotonic();
      const ids = closed.map(({ id }) => id);
      const wait = perMinute === 0 ? 0 : waitFor(ids, now);
      if (wait > 0) throw tooMany(Math.ceil(wait / 1000));
      const wanted = digest(given);
      const opened = new Set<number>();
      for (const { id, password } of closed) {
        if (timingSafeEqual(wanted, digest(password))) opened.add(id);
        else if (perMinute > 0) attempts.set(id, { count: countOf(id, now) + 1, at: now });
      }
      return opened;
    },
  };
}

const tooMany = (seconds: number): RestError =>
  new RestError(429, "rest_too_many_passwords", `Too many passwords were tried; wait ${seconds} s.`, {
    retryAfter: seconds,
  });
