/** How long a storage may take: whatever a backend does, each call settles, so that nothing of a service can hang on it. */

import { type Clock, withTimeout } from "./clock.js";
import { PostbellError } from "./errors.js";

/** A registration request has to be answered within five seconds. */
const LIMIT_MS = 4_000;

const late = (): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    "The storage did not answer in time; whether it did what was asked is unknown.",
  );

/** The same call, except that it rejects with `storage_unavailable` where it has not settled after four seconds. What it did is unknown then. */
export const withCallTimeout =
  (clock: Clock) =>
  <A extends readonly unknown[], R>(call: (...given: A) => Promise<R>): ((...given: A) => Promise<R>) =>
  (...given) =>
    withTimeout(clock, LIMIT_MS, call(...given), late);
