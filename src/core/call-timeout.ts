/**
 * Limits how long a storage call may take, so that no service hangs whatever a backend does.
 *
 * During an outage of the storage, a call fails with `storage_unavailable`, either from the storage
 * itself (`storage/redis/connection.ts`, after 3.5 seconds at most) or from the limit below.
 * `webhooks/store-timeout.ts` and `content/repository/store-timeout.ts` put the limit on every
 * method of a store. Then `emit` and host calls reject: nothing is queued, and the caller emits
 * again with the same id. REST routes respond 503 with `Retry-After`. `webhooks/delivery/loop.ts`
 * claims again and `webhooks/delivery/settler.ts` settles again, with the delays of
 * `webhooks/delivery/storage-outage.ts`, which also counts how long the outage lasts. After some
 * seconds both `health-status.ts` report it. Once calls succeed, all of this ends by itself.
 */

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
