/** Serves the registration API from its table: authentication, rate limit, bodies and errors. */

import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { callHook } from "../../core/clock.js";
import { createConcurrencyLimit } from "../../core/concurrency-limit.js";
import type { Logger } from "../../core/logger.js";
import { HttpError, rateLimited, serviceUnavailable, toHttpError } from "../../http/errors.js";
import { createRateLimit } from "../../http/rate-limit.js";
import { createRouter, type Route } from "../../http/router.js";
import type { Handler, HttpRequest } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { Subscriber } from "../access.js";
import { readSubscriber } from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import type { Deliveries } from "../delivery/deliveries.js";
import type { Registrations } from "../registrations/registrations.js";
import { parseBodyFields, readBodyValue, toErrorResponse } from "./api-request.js";
import { type ApiService, apiErrors, type Operation, type SubscriberCall } from "./operation.js";
import { buildKeySet, cacheDocumentTexts, listOperations } from "./operations.js";

/** The status of each code that a caller can cause. All others are errors of the service: 503. */
const STATUSES: Map<string, number> = new Map(
  Object.entries(apiErrors).flatMap(([status, { codes }]) => codes.map((code) => [code, Number(status)])),
);

const createErrorTranslator =
  (logger: Logger) =>
  (thrown: unknown): HttpError => {
    const error = toHttpError(thrown, STATUSES);
    if (error === undefined) {
      logger.error({ error: thrown }, "a registration request failed");
      return serviceUnavailable();
    }
    if (error !== thrown && error.status === 500)
      logger.error({ error: thrown }, "a registration request could not be read");
    return error;
  };

/** Serves the registration API. */
export interface ApiHandlers {
  /** For requests with an API key. */
  handle: Handler;
  /** For a subscriber that the host has identified. Rejects only with `invalid_argument`. */
  handleAs: (request: HttpRequest, subscriber: Subscriber, options?: HandleAsOptions) => ReturnType<Handler>;
}

/** The options of `handleAs`. */
export interface HandleAsOptions {
  /**
   * Called if a request costs as much as several: with the number beyond the first. A list with
   * statistics counts as one more request for each webhook on the page.
   */
  onCost?: ((requests: number) => void) | undefined;
}

/** An API key that was admitted, or a subscriber that the host has identified. */
type Caller = Pick<SubscriberCall, "subscriber" | "charge">;

type Incoming = Pick<SubscriberCall, "request" | "parameter"> & { caller: Caller | undefined };

/** @param registrations those of subscribers. */
export function createApiHandlers(
  base: ServiceBase,
  registrations: Registrations,
  deliveries: Deliveries,
  openApi: (baseUrl: string) => JsonObject,
): ApiHandlers {
  const { config, catalogue, audit, logger } = base;
  const { clock, limits } = config;
  const accounts = createRateLimit({ perMinute: limits.requestsPerMinute, clock });
  const authenticate = createAuthentication(base);
  const translateError = createErrorTranslator(logger);
  const service: ApiService = {
    registrations,
    deliveries,
    catalogue,
    audit: audit.log,
    getDocument: cacheDocumentTexts(openApi),
    keySet: buildKeySet(config),
  };

  const admit = async (request: HttpRequest): Promise<Caller> => {
    const subscriber = await authenticate(request);
    const seconds = accounts.take(subscriber.account);
    if (seconds > 0) throw rateLimited(seconds, "The account has sent too many requests");
    return { subscriber, charge: (count) => accounts.charge(subscriber.account, count) };
  };

  const toRoute = (operation: Operation): Route<Incoming> => ({
    ...operation,
    async handle({ request, parameter, caller }) {
      if (operation.isPublic) return operation.handle(request, service);
      const { subscriber, charge } = caller ?? (await admit(request));
      const { isOptional = false, properties = {} } = operation.body ?? {};
      const readBody = async () =>
        parseBodyFields(
          await readBodyValue(request, isOptional, { bytes: limits.requestBytes, clock }),
          properties,
        );
      return operation.handle({ request, parameter, subscriber, charge, readBody }, service);
    },
  });

  const routes = listOperations(config).map(([, operation]) => toRoute(operation));
  const handle = createRouter<Incoming, Caller>(routes, {
    context: (request, parameter, caller) => ({ request, parameter, caller }),
    onError: (thrown) => toErrorResponse(translateError(thrown)),
  });
  return {
    handle: (request) => handle(request),
    handleAs: async (request, subscriber, { onCost = () => {} } = {}) =>
      handle(request, { subscriber: readSubscriber(subscriber), charge: onCost }),
  };
}

/** The number of recently valid keys to remember. The least recently used is forgotten first. */
const MAX_KNOWN_KEYS = 10_000;

/**
 * Concurrent calls of `authenticate` for unknown keys, and requests that wait for one. This bounds
 * the load that guessing can put on the host.
 */
const UNKNOWN_KEYS = { running: 16, waiting: 1_000 } as const;

const BEARER = /^Bearer +([\x21-\x7e]{1,4096})$/i;

const unauthorized = (): HttpError =>
  new HttpError(401, "unauthorized", "Send a valid API key: Authorization: Bearer <API_KEY>.", {
    headers: { "www-authenticate": "Bearer" },
  });

/**
 * Returns a function that returns the subscriber of a request.
 *
 * A recently valid key goes to the host at once. All other keys share a concurrency limit: this
 * process cannot tell a guess from a valid key that it has not seen yet, so it refuses no key
 * because of the guesses of others. Concurrent calls for the same unknown key are coalesced. A key
 * that was invalid `requestsPerMinute` times within a minute is refused without a call.
 *
 * The function throws HttpError 401 `unauthorized`, 429 `rate_limited`, and 503 `unavailable` if
 * the host throws, returns an invalid value or does not respond in time.
 */
function createAuthentication({
  config: { access, limits, clock },
  logger,
}: ServiceBase): (request: HttpRequest) => Promise<Subscriber> {
  /** By digest, as everywhere below, so that no key stays in memory. */
  const knownKeys = new LRUCache<string, true>({ max: MAX_KNOWN_KEYS });
  const wrongKeys = createRateLimit({ perMinute: limits.requestsPerMinute, clock });
  const unknownKeyCalls = createConcurrencyLimit(UNKNOWN_KEYS);
  const inFlight = new Map<string, Promise<Subscriber | null>>();

  const callHost = async (key: string): Promise<Subscriber | null> => {
    try {
      const found = await callHook(clock, limits.hookMs, () => access.authenticate(key));
      return found ? readSubscriber(found) : null;
    } catch (error) {
      logger.error({ error }, "access.authenticate failed or returned an invalid value");
      throw serviceUnavailable();
    }
  };

  /**
   * Only the wait for a free call expires. A call that has begun gets the full `hookMs`: with less
   * time than the host needs, it would occupy a place and time out without a result.
   */
  const callHostLimited = (key: string): Promise<Subscriber | null> => {
    const waitUntil = clock.monotonic() + limits.hookMs;
    const call = unknownKeyCalls.run(async () => {
      if (clock.monotonic() >= waitUntil) throw serviceUnavailable();
      return callHost(key);
    });
    if (call === undefined) throw rateLimited(1, "Too many requests came with unknown API keys");
    return call;
  };

  const identifyUnknown = async (key: string, digest: string): Promise<Subscriber | null> => {
    const seconds = wrongKeys.take(digest);
    if (seconds > 0) throw rateLimited(seconds, "Too many requests came with this invalid API key");
    let isWrong = false;
    try {
      const found = await callHostLimited(key);
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
      const found = await callHost(key);
      if (!found) knownKeys.delete(digest);
      return found;
    }
    const call = inFlight.get(digest) ?? identifyUnknown(key, digest).finally(() => inFlight.delete(digest));
    inFlight.set(digest, call);
    return call;
  };

  return async ({ headers }) => {
    const key = BEARER.exec(headers["authorization"] ?? "")?.[1];
    const found = key === undefined ? null : await identify(key);
    if (found) return found;
    throw unauthorized();
  };
}
