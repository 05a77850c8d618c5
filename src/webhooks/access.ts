/** Who calls, who subscribes, and the host's functions that decide what they may do. */

import type { ParsedResource } from "./fhir.js";

type Awaitable<T> = T | PromiseLike<T>;

/** The client behind an API key. */
export interface Subscriber {
  /**
   * Identifies the key in records and hooks. It must not be the key itself. 1 to 256 characters
   * without NUL and lone surrogates, compared exactly.
   */
  readonly id: string;
  /** The account that the key belongs to. The same rules hold as for `id`. */
  readonly account: string;
}

/** Selects in whose name a call from the host's own code is made. */
export interface Actor {
  /**
   * The API key that requests the call. The call then has that key's account and permissions, as
   * over REST. Leave it out to act as the host, with full authority. `as: undefined` is refused, so
   * that a session without a subscriber never acts as the host.
   */
  readonly as?: Subscriber;
}

/**
 * The host's functions that authenticate API keys and decide what they may read. Each has 5 seconds
 * (`limits.hookMs`).
 *
 * @example
 * const access: Access = {
 *   authenticate: async (apiKey) => {
 *     const key = await db.findApiKey(sha256(apiKey));
 *     return key && { id: key.id, account: key.clinicId };
 *   },
 *   canRead: (subscriber, resource) => db.mayRead(subscriber.id, resource.resourceType),
 * };
 */
export interface Access<R = ParsedResource> {
  /**
   * Returns the subscriber behind a Bearer token, or `null` for an unknown key (401). If it throws,
   * takes too long or returns a subscriber whose `id` or `account` breaks the rules of
   * {@link Subscriber}, the failure is logged and the request is answered with 503.
   */
  authenticate(apiKey: string): Awaitable<Subscriber | null | undefined>;
  /**
   * Returns true if the key that owns the webhook may read `resource` now. It is called for every
   * entry of a notification at every attempt, or with the whole of a plain event. If it throws,
   * takes too long or returns anything other than a boolean, nothing is sent and the delivery is
   * retried later.
   */
  canRead(subscriber: Subscriber, resource: R): Awaitable<boolean>;
  /**
   * Lets a key manage the webhooks of another key of its account. Return true only if `subscriber`
   * may receive everything that `owner` may: it can then change the URL of the owner's webhooks,
   * enable them, rotate their secret and resend events. Default: never. If it throws or takes too
   * long, the request is answered with 503.
   *
   * @example
   * canActFor: (subscriber, owner) =>
   *   scopesOf(owner).every((scope) => scopesOf(subscriber).includes(scope))
   */
  canActFor?(subscriber: Subscriber, owner: Subscriber): Awaitable<boolean>;
}
