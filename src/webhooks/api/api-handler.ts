/** The registration API over HTTP: its routes, authentication, rate limit and errors. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { type HttpError, rateLimited, serviceUnavailable, toHttpError } from "../../http/errors.js";
import { createRateLimit } from "../../http/rate-limit.js";
import { createRouter, type Route } from "../../http/router.js";
import type { Handler, HttpRequest } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { Subscriber } from "../access.js";
import { readSubscriber } from "../call-arguments.js";
import type { Deliveries } from "../delivery/deliveries.js";
import type { Registrations } from "../registrations/registrations.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { Webhook } from "../webhook.js";
import { type ApiRequest, toErrorResponse, toJsonResponse } from "./api-request.js";
import { createAuthentication } from "./authentication.js";
import { deliveryRoutes } from "./delivery-routes.js";
import { errorCodes } from "./error-codes.js";
import { createDocumentRoute } from "./openapi-route.js";
import { operations } from "./operations.js";
import { registrationRoutes } from "./registration-routes.js";
import { createBodyReader } from "./request-body.js";

export interface ApiContext {
  readonly settings: WebhooksSettings;
  readonly registrations: Registrations;
  readonly openApi: (baseUrl: string) => JsonObject;
  readonly deliveries: Deliveries;
  /** The names of the catalogue, for subscribers. */
  readonly eventTypes: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The status of each code that a caller can cause. All others are errors of the service: 503. */
const STATUSES: ReadonlyMap<string, number> = new Map(
  Object.entries(errorCodes).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)])),
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

export function createApiHandlers(context: ApiContext): ApiHandlers {
  const { settings, registrations, openApi, deliveries, eventTypes, clock, logger } = context;
  const { limits } = settings;
  const accounts = createRateLimit({ perMinute: limits.requestsPerMinute, clock });
  const authenticate = createAuthentication({ settings, clock, logger });
  const bodies = createBodyReader(limits.requestBytes, clock);
  const translateError = createErrorTranslator(logger);

  /** A webhook of another account gives the same error as one that does not exist. */
  const findWebhook = ({ parameter, subscriber }: ApiRequest): Promise<Webhook> =>
    registrations.get(parameter("webhookId"), { as: subscriber });

  const routes: readonly Route<ApiRequest>[] = [
    ...registrationRoutes({ registrations, deliveries, findWebhook, bodies }),
    ...deliveryRoutes({ deliveries, findWebhook, bodies }),
    { ...operations.listEventTypes, handle: async () => toJsonResponse(200, { eventTypes }) },
  ];

  const handlePrivate = createRouter<ApiRequest, Pick<ApiRequest, "subscriber" | "charge">>(routes, {
    async context(request, parameter, caller) {
      if (caller !== undefined) return { request, parameter, ...caller };
      const subscriber = await authenticate(request);
      const seconds = accounts.take(subscriber.account);
      if (seconds > 0) throw rateLimited(seconds, "The account has sent too many requests");
      const charge = (count: number): void => accounts.charge(subscriber.account, count);
      return { request, parameter, subscriber, charge };
    },
    onError: (thrown) => toErrorResponse(translateError(thrown)),
  });
  const handlePublic = createRouter<HttpRequest>([createDocumentRoute(openApi)], {
    context: (request) => request,
    onError: (thrown) => toErrorResponse(translateError(thrown)),
  });
  return {
    handle: async (request) => (await handlePrivate(request)) ?? handlePublic(request),
    async handleAs(request, subscriber, { onCost = () => {} } = {}) {
      const caller = { subscriber: readSubscriber(subscriber), charge: onCost };
      return (await handlePrivate(request, caller)) ?? handlePublic(request);
    },
  };
}
