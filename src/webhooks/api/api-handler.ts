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
import { bearer, type Operator, type Subscriber } from "../access.js";
import { readSubscriber } from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { parseBodyFields, readBodyValue, toErrorResponse } from "./api-request.js";
import {
  type ApiService,
  apiErrors,
  type Operation,
  type SubscriberCall,
  type SubscriberCalls,
} from "./operation.js";
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
  /** For requests that `access.authenticate` identifies. */
  handle: Handler;
  /** For a subscriber that the host has identified. */
  handleFor: (who: Subscriber | Operator) => SubscriberHandler;
}

/** Serves the registration API to one subscriber, whom the host has identified. */
export type SubscriberHandler = (
  request: HttpRequest,
  options?: SubscriberHandlerOptions,
) => ReturnType<Handler>;

/** The options of `as(subscriber).handle`. */
export interface SubscriberHandlerOptions {
  /**
   * Called if a request costs as much as several: with the number beyond the first. A list with
   * statistics counts as one more request for each webhook on the page.
   */
  onCost?: ((requests: number) => void) | undefined;
}

/** A subscriber that was admitted, or that the host has identified. */
interface Caller {
  subscriber: SubscriberCall["subscriber"];
  charge: SubscriberCall["charge"];
}

interface Incoming {
  request: SubscriberCall["request"];
  parameter: SubscriberCall["parameter"];
  caller: Caller | undefined;
}

/** @param callsOf returns the calls of a subscriber. */
export function createApiHandlers(
  base: ServiceBase,
  callsOf: (who: Subscriber | Operator) => SubscriberCalls,
  openApi: (baseUrl: string) => JsonObject,
): ApiHandlers {
  const { config, catalogue, logger } = base;
  const { clock, limits } = config;
  const accounts = createRateLimit({ perMinute: limits.requestsPerMinute, clock });
  const authenticate = createAuthentication(base);
  const translateError = createErrorTranslator(logger);
  const service: ApiService = {
    catalogue,
    offered: config.registrations,
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
      const webhooks = callsOf(subscriber);
      return operation.handle({ request, parameter, subscriber, webhooks, charge, readBody }, service);
    },
  });

  const routes = listOperations(config).map(([, operation]) => toRoute(operation));
  const handle = createRouter<Incoming, Caller>(routes, {
    context: (request, parameter, caller) => ({ request, parameter, caller }),
    onError: (thrown) => toErrorResponse(translateError(thrown)),
  });
  return {
    handle: (request) => handle(request),
    handleFor:
      (subscriber) =>
      (request, { onCost = () => {} } = {}) =>
        handle(request, { subscriber, charge: onCost }),
  };
}

/**
 * The number of recently valid credentials to remember. The least recently used is forgotten first.
 */
const MAX_KNOWN_CREDENTIALS = 10_000;

/**
 * Concurrent calls of `authenticate` for unknown credentials, and requests that wait for one. This
 * bounds the load that guessing can put on the host.
 */
const UNKNOWN_CREDENTIALS = { running: 16, waiting: 1_000 } as const;

const unauthorized = (): HttpError =>
  new HttpError(401, "unauthorized", "Send a valid API key: Authorization: Bearer <API_KEY>.", {
    headers: { "www-authenticate": "Bearer" },
  });

/**
 * Returns a digest of what a request presents to be recognised: its Bearer token, otherwise its
 * cookies; `undefined` if it has neither. A digest, so that no key stays in memory.
 */
function digestCredentials(request: HttpRequest): string | undefined {
  const presented = bearer(request) ?? request.headers["cookie"];
  return presented && createHash("sha256").update(presented).digest("base64");
}

/**
 * Returns a function that returns the subscriber of a request.
 *
 * Recently valid credentials go to the host at once. All others share a concurrency limit: this
 * process cannot tell a guess from a valid key that it has not seen yet, so it refuses no key
 * because of the guesses of others. Credentials that were invalid `requestsPerMinute` times within
 * a minute are refused without a call. Each request gets a separate call, because the host may
 * also look at its address or its certificate.
 *
 * The function throws HttpError 401 `unauthorized`, 429 `rate_limited`, and 503 `unavailable` if
 * the host throws, returns an invalid value or does not respond in time.
 */
function createAuthentication({
  config: { access, limits, clock },
  logger,
}: ServiceBase): (request: HttpRequest) => Promise<Subscriber> {
  const known = new LRUCache<string, true>({ max: MAX_KNOWN_CREDENTIALS });
  const refused = createRateLimit({ perMinute: limits.requestsPerMinute, clock });
  const unknownCalls = createConcurrencyLimit(UNKNOWN_CREDENTIALS);

  const callHost = async (request: HttpRequest): Promise<Subscriber | null> => {
    try {
      const found = await callHook(clock, limits.hookMs, () => access.authenticate(request));
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
  const callHostLimited = (request: HttpRequest): Promise<Subscriber | null> => {
    const waitUntil = clock.monotonic() + limits.hookMs;
    const call = unknownCalls.run(async () => {
      if (clock.monotonic() >= waitUntil) throw serviceUnavailable();
      return callHost(request);
    });
    if (call === undefined) throw rateLimited(1, "Too many requests came with unknown API keys");
    return call;
  };

  const identifyUnknown = async (request: HttpRequest, digest: string): Promise<Subscriber | null> => {
    const seconds = refused.take(digest);
    if (seconds > 0) throw rateLimited(seconds, "Too many requests came with this invalid API key");
    let isRefused = false;
    try {
      const found = await callHostLimited(request);
      isRefused = found === null;
      if (found) known.set(digest, true);
      return found;
    } finally {
      if (!isRefused) refused.putBack(digest);
    }
  };

  const identify = async (request: HttpRequest): Promise<Subscriber | null> => {
    const digest = digestCredentials(request);
    if (digest === undefined) return callHostLimited(request);
    if (known.get(digest) !== true) return identifyUnknown(request, digest);
    const found = await callHost(request);
    if (!found) known.delete(digest);
    return found;
  };

  return async (request) => {
    const found = await identify(request);
    if (found) return found;
    throw unauthorized();
  };
}
