/** Who calls, who subscribes, and the host's functions that decide what they may do. */

import type { HttpRequest } from "../http/types.js";
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

/**
 * A person who works for the host, within one account: `webhooks.as({ operator: "Ada", account })`.
 * An operator may do what the host may do with the webhooks of the account, but owns none, and so
 * registers none. The audit log has the name.
 */
export interface Operator {
  /** The person's name. The rules of {@link Subscriber} hold for it. */
  readonly operator: string;
  readonly account: string;
}

/**
 * In whose name a call is made: that of an API key, of an operator, or of the host with full
 * authority.
 */
export type Actor = Subscriber | Operator | "host";

/** True for who manages every webhook that it may see, without owning it. */
export const hasAuthority = (actor: Actor): actor is Operator | "host" =>
  actor === "host" || "operator" in actor;

/**
 * The host's functions that authenticate requests and decide what subscribers may read. Each has 5
 * seconds (`limits.hookMs`).
 *
 * @example
 * const access: Access = {
 *   authenticate: async (request) => {
 *     const apiKey = bearer(request);
 *     const key = apiKey && (await db.findApiKey(sha256(apiKey)));
 *     return key ? { id: key.id, account: key.clinicId } : null;
 *   },
 *   canRead: (subscriber, resource) => db.mayRead(subscriber.id, resource.resourceType),
 * };
 */
export interface Access<R = ParsedResource> {
  /**
   * Returns the subscriber that sends a request to the registration API, or `null` for an unknown
   * one (401). `bearer(request)` is its API key; a client certificate, the address or a session
   * serve as well. It is called for every request and must not read the body. If it throws, takes
   * too long or returns a subscriber whose `id` or `account` breaks the rules of
   * {@link Subscriber}, the failure is logged and the request is answered with 503.
   */
  authenticate(request: HttpRequest): Awaitable<Subscriber | null | undefined>;
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

/**
 * The same functions if all event types are plain. `canRead` can be left out: a webhook then gets
 * every event of its account that it subscribes to.
 */
export type PlainAccess<R> = Omit<Access<R>, "canRead"> & Partial<Pick<Access<R>, "canRead">>;

const BEARER = /^Bearer +([\x21-\x7e]{1,4096})$/i;

/**
 * Returns the Bearer token of a request, for `access.authenticate`: 1 to 4 096 visible ASCII
 * characters. Returns `undefined` if the `Authorization` header is missing or has another form.
 *
 * @example
 * authenticate: (request) => subscribers.get(bearer(request) ?? "") ?? null
 */
export const bearer = ({ headers }: Pick<HttpRequest, "headers">): string | undefined =>
  BEARER.exec(headers["authorization"] ?? "")?.[1];
