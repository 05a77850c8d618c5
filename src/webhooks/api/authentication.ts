/** Finds out who sends a request: asks the host about its API key, however many guesses come in. */

import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type Clock, withTimeout } from "../../core/clock.js";
import { createConcurrencyLimit } from "../../core/concurrency-limit.js";
import type { Logger } from "../../core/logger.js";
import { HttpError } from "../../http/errors.js";
import { createRateLimit } from "../../http/rate-limit.js";
import type { HttpRequest } from "../../http/types.js";
import type { Subscriber } from "../access.js";
import { checkName } from "../call-arguments.js";
import type { WebhooksSettings } from "../settings/settings.js";
import { rateLimited, serviceUnavailable } from "./call.js";

/** Keys that were valid lately. Beyond it, the one that was not used for longest counts as unknown again. */
const MAX_KNOWN_KEYS = 10_000;

/** Calls of `authenticate` about unknown keys that run at once, and requests that wait for one: the most that guessing can take of the host. */
const UNKNOWN_KEYS = { running: 16, waiting: 1_000 } as const;

const BEARER = /^Bearer +([\x21-\x7e]{1,4096})$/i;

const unauthorized = (): HttpError =>
  new HttpError(401, "unauthorized", "Send a valid API key: Authorization: Bearer <API_KEY>.", {
    headers: { "www-authenticate": "Bearer" },
  });

/**
 * Returns a function that gives the subscriber of a request.
 *
 * The host is asked at once about a key that was valid lately. Other keys take turns: nobody can tell a guess from a valid key that this process has not seen yet,
 * so none is refused for the guesses of others, and what bounds guessing is how many questions run at once. The same unknown key is asked about once at a time, and
 * beyond `requestsPerMinute` wrong answers a minute not at all.
 *
 * Errors: HttpError 401 `unauthorized`; 429 `rate_limited`; 503 `serviceUnavailable` where the host gives no usable answer, or none in time.
 */
export function createAuthentication({
  settings: { access, limits },
  clock,
  logger,
}: {
  readonly settings: WebhooksSettings;
  readonly clock: Clock;
  readonly logger: Logger;
}): (request: Pick<HttpRequest, "headers">) => Promise<Subscriber> {
  /** By digest, here and below, so that no key stays in memory. */
  const knownKeys = new LRUCache<string, true>({ max: MAX_KNOWN_KEYS });
  const wrongKeys = createRateLimit({ perMinute: limits.requestsPerMinute, clock });
  const turns = createConcurrencyLimit(UNKNOWN_KEYS);
  const inFlight = new Map<string, Promise<Subscriber | null>>();

  const askHost = async (key: string): Promise<Subscriber | null> => {
    try {
      const answer = (async () => access.authenticate(key))();
      const found = await withTimeout(clock, limits.hookMs, answer, () => new Error("no answer in time"));
      if (!found) return null;
      const { id, account } = found;
      checkName("subscriber.id", id);
      checkName("subscriber.account", account);
      return { id, account };
    } catch (error) {
      logger.error({ error }, "access.authenticate gave no usable answer");
      throw serviceUnavailable();
    }
  };

  /**
   * Only the wait for a turn expires. A question that has begun gets the full `hookMs`: with less than the host needs,
   * it would take a turn, be given up, and serve nobody.
   */
  const askInTurn = (key: string): Promise<Subscriber | null> => {
    const until = clock.monotonic() + limits.hookMs;
    const turn = turns.run(async () => {
      if (clock.monotonic() >= until) throw serviceUnavailable();
      return askHost(key);
    });
    if (turn === undefined) throw rateLimited(1, "Too many requests came with unknown API keys");
    return turn;
  };

  const identifyUnknown = async (key: string, digest: string): Promise<Subscriber | null> => {
    const seconds = wrongKeys.take(digest);
    if (seconds > 0)
      throw rateLimited(seconds, "Too many requests came with this API key, which is not valid");
    let isWrong = false;
    try {
      const found = await askInTurn(key);
      isWrong = found === null;
      if (found) knownKeys.set(digest, true);
      return found;
    } finally {
      if (!isWrong) wrongKeys.putBack(digest);
    }
  };

  const identify = async (key: string): Promise<Subscriber | null> => {
    const digest = createHash("sha256").update(key).digest("base64");
    if (knownKeys.get(digest) === true) {
      const found = await askHost(key);
      if (!found) knownKeys.delete(digest);
      return found;
    }
    const asked = inFlight.get(digest) ?? identifyUnknown(key, digest).finally(() => inFlight.delete(digest));
    inFlight.set(digest, asked);
    return asked;
  };

  return async ({ headers }) => {
    const key = BEARER.exec(headers["authorization"] ?? "")?.[1];
    const found = key === undefined ? null : await identify(key);
    if (found) return found;
    throw unauthorized();
  };
}
