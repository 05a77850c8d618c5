/** Limits how long a storage call may take, so that no service hangs whatever a backend does. */

import { type Clock, withTimeout } from "./clock.js";
import { PostbellError } from "./errors.js";

/** Registration requests must be answered within five seconds. */
const LIMIT_MS = 4_000;

const late = (): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    "The storage did not respond within 4 seconds; the call may or may not have taken effect.",
  );

/**
 * Returns the same call with a time limit: it rejects with `storage_unavailable` if it has not
 * settled after four seconds. It may or may not have taken effect then.
 */
export const withCallTimeout =
  (clock: Clock) =>
  <A extends readonly unknown[], R>(call: (...given: A) => Promise<R>): ((...given: A) => Promise<R>) =>
  (...given) =>
    withTimeout(clock, LIMIT_MS, call(...given), late);
