/** Serves the registration API from its table: authentication, rate limit, bodies and errors. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { type HttpError, rateLimited, serviceUnavailable, toHttpError } from "../../http/errors.js";
import { createRateLimit } from "../../http/rate-limit.js";
import { createRouter, type Route } from "../../http/router.js";
import type { Handler, HttpRequest } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { Subscriber } from "../access.js";
import { readSubscriber } from "../call-arguments.js";
import type { WebhooksConfig } from "../config/config.js";
import { parseBodyFields, readBodyValue, toErrorResponse } from "./api-request.js";
import { createAuthentication } from "./authentication.js";
import { type ApiService, apiErrors, type Operation, type SubscriberCall } from "./operation.js";
import { buildKeySet, cacheDocumentTexts, listOperations } from "./operations.js";

/** The status of each code that a caller can cause. All others are errors of the service: 503. */
const STATUSES: ReadonlyMap<string, number> = new Map(
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
  readonly handle: Handler;
  /** For a subscriber that the host has identified. Rejects only with `invalid_argument`. */
  readonly handleAs: (
    request: HttpRequest,
    subscriber: Subscriber,
    options?: HandleAsOptions,
  ) => ReturnType<Handler>;
}

/** The options of `handleAs`. */
export interface HandleAsOptions {
  /**
   * Called if a request costs as much as several: with the number beyond the first. A list with
   * statistics counts as one more request for each webhook on the page.
   */
  readonly onCost?: ((requests: number) => void) | undefined;
}

/** An API key that was admitted, or a subscriber that the host has identified. */
type Caller = Pick<SubscriberCall, "subscriber" | "charge">;

type Incoming = Pick<SubscriberCall, "request" | "parameter"> & { readonly caller: Caller | undefined };

export function createApiHandlers({
  config,
  registrations,
  deliveries,
  eventTypes,
  catalogue,
  audit,
  openApi,
  clock,
  logger,
}: Omit<ApiService, "getDocument" | "keySet"> & {
  readonly config: WebhooksConfig;
  readonly openApi: (baseUrl: string) => JsonObject;
  readonly clock: Clock;
  readonly logger: Logger;
}): ApiHandlers {
  const { requestsPerMinute, requestBytes } = config.limits;
  const accounts = createRateLimit({ perMinute: requestsPerMinute, clock });
  const authenticate = createAuthentication({ config, clock, logger });
  const translateError = createErrorTranslator(logger);
  const service: ApiService = {
    ...{ registrations, deliveries, eventTypes, catalogue, audit },
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
        parseBodyFields(await readBodyValue(request, isOptional, { bytes: requestBytes, clock }), properties);
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
