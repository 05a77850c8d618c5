/** The registration API over HTTP: its one route table, who may call it, and how its errors look. */

import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type Clock, withTimeout } from "../../core/clock.js";
import { isPostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import { readBytes, readJson } from "../../http/body.js";
import { BODY_MS } from "../../http/body-chunks.js";
import { isMatch } from "../../http/entity-tag.js";
import { HttpError } from "../../http/errors.js";
import { createRateLimit } from "../../http/rate-limit.js";
import { createRouter, type Route } from "../../http/router.js";
import type { Handler, HttpRequest, HttpResponse } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { Deliveries } from "../delivery/delivery-log.js";
import type { Registrations } from "../registrations/registrations.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { Webhook } from "../webhook.js";
import { createAuthentication } from "./authentication.js";
import {
  type ApiRequest,
  invalidRequest,
  JSON_TYPE,
  rateLimited,
  readFields,
  readPage,
  serviceUnavailable,
  toJsonResponse,
} from "./call.js";
import { deliveryRoutes } from "./delivery-routes.js";
import { errorCodes, operations } from "./operations.js";

/** The record of the interface document, and nothing besides. */
const toResource = ({ id, status, url, createdDate, updatedDate }: Webhook) => ({
  id,
  status,
  url,
  createdDate,
  updatedDate,
});

/** The status of each code that a caller can bring about. Every other error is the service's own: 503. */
const STATUS: ReadonlyMap<string, number> = new Map(
  Object.entries(errorCodes).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)])),
);

function readIdempotencyKey(headers: HttpRequest["headers"]): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw invalidRequest("Idempotency-Key", "Idempotency-Key must be 1 to 255 visible ASCII characters.");
}

export function createRoutes({
  settings,
  registrations,
  openApi,
  deliveries,
  eventTypes,
  clock,
  logger,
}: {
  readonly settings: WebhooksSettings;
  readonly registrations: Registrations;
  readonly openApi: (baseUrl: string) => JsonObject;
  readonly deliveries: Deliveries;
  /** The catalogue, for whoever registers. */
  readonly eventTypes: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}): Handler {
  const { limits } = settings;
  const accounts = createRateLimit({ perMinute: limits.requestsPerMinute, clock });
  const authenticate = createAuthentication({ settings, clock, logger });

  const limit = limits.requestBytes;
  const inTime = <T>(read: Promise<T>): Promise<T> =>
    withTimeout(
      clock,
      BODY_MS,
      read,
      () => new HttpError(408, "request_timeout", "The body did not arrive in time."),
    );
  const readBody = (request: HttpRequest): Promise<unknown> => inTime(readJson(request, { limit }));
  const readOptionalBody = async (request: HttpRequest): Promise<unknown> => {
    if (request.body !== null && "parsed" in request.body) return readBody(request);
    const body = await inTime(readBytes(request, { limit }));
    return body.length === 0 ? {} : readJson({ headers: request.headers, body }, { limit });
  };

  /** The webhook of a path, if it is the caller's account's. Another account's is answered like one that does not exist. */
  const ownWebhook = ({ parameter, subscriber }: ApiRequest): Promise<Webhook> =>
    registrations.get(parameter("webhookId"), { as: subscriber });

  const routes: readonly Route<ApiRequest>[] = [
    ...deliveryRoutes({ registrations, deliveries, eventTypes, ownWebhook, readBody, readOptionalBody }),
    {
      ...operations.createWebhook,
      async handle({ request, subscriber }) {
        const idempotencyKey = readIdempotencyKey(request.headers);
        const { url, event_types } = readFields(await readBody(request), operations.createWebhook.body);
        const { webhook, secret } = await registrations.create(subscriber, {
          url: url as string,
          eventTypes: event_types as readonly string[] | undefined,
          idempotencyKey,
        });
        const location = `${request.baseUrl}/v1/webhooks/${webhook.id}`;
        return toJsonResponse(201, { webhook: toResource(webhook), secret }, { location });
      },
    },
    {
      ...operations.listWebhooks,
      async handle({ request, subscriber }) {
        const page = readPage(new URLSearchParams(request.query));
        const { webhooks, next } = await registrations.list({ account: subscriber.account, ...page });
        return toJsonResponse(200, { webhooks: webhooks.map(toResource), next });
      },
    },
    {
      ...operations.readWebhook,
      async handle(call) {
        return toJsonResponse(200, toResource(await ownWebhook(call)));
      },
    },
    {
      ...operations.updateWebhook,
      async handle(call) {
        const { id } = await ownWebhook(call);
        const { url, status, event_types } = readFields(
          await readBody(call.request),
          operations.updateWebhook.body,
        );
        if (url === undefined) throw invalidRequest("url", "url is missing: an update needs url and status.");
        if (status === undefined) throw invalidRequest("status", "status is missing: ENABLED or DISABLED.");
        const change = {
          url: url as string,
          status: status as Webhook["status"],
          eventTypes: event_types as readonly string[] | undefined,
        };
        const webhook = await registrations.update(id, change, { as: call.subscriber });
        return toJsonResponse(200, toResource(webhook));
      },
    },
    {
      ...operations.deleteWebhook,
      async handle(call) {
        await registrations.remove(call.parameter("webhookId"), { as: call.subscriber });
        return toJsonResponse(200, { message: "The webhook was deleted." });
      },
    },
  ];

  const toHttpError = (error: unknown): HttpError => {
    if (error instanceof HttpError) return error;
    if (isPostbellError(error)) {
      const { code, message, field, retryAfterSeconds } = error;
      const status = STATUS.get(code);
      const headers = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
      if (status === 500) logger.error({ error }, "a registration request could not be read");
      if (status !== undefined) return new HttpError(status, code, message, { field, headers });
    }
    logger.error({ error }, "a registration request failed");
    return serviceUnavailable();
  };

  const onError = (thrown: unknown): HttpResponse => {
    const { status, code, message, field, headers } = toHttpError(thrown);
    return toJsonResponse(
      status,
      { error: { code, message, ...(field === undefined ? {} : { field }) } },
      headers,
    );
  };

  const registered = createRouter(routes, {
    async context(request, parameter) {
      const subscriber = await authenticate(request);
      const seconds = accounts.take(subscriber.account);
      if (seconds > 0) throw rateLimited(seconds, "The account has sent too many requests");
      return { request, parameter, subscriber };
    },
    onError,
  });
  const texts = new LRUCache<string, PublishedText>({ max: MAX_PUBLISHED });
  const published = (baseUrl: string): PublishedText => {
    const known = texts.get(baseUrl) ?? publishedText(openApi(baseUrl));
    texts.set(baseUrl, known);
    return known;
  };
  const everybodys = createRouter(
    [
      {
        ...operations.readOpenApi,
        handle: async (request: HttpRequest) => asPublished(request, published(request.baseUrl)),
      },
    ],
    { context: (request) => request, onError },
  );
  return async (request) => (await registered(request)) ?? everybodys(request);
}

const PUBLISHED_HEADERS = {
  // Kept, and asked about before it is used: what it says depends on the version that is mounted.
  "cache-control": "public, no-cache",
  "access-control-allow-origin": "*",
  "x-content-type-options": "nosniff",
} as const;

/** Base URLs whose document is cached as text: they follow from the `Host` header, so there may be any number of them. */
const MAX_PUBLISHED = 16;

interface PublishedText {
  readonly body: string;
  readonly etag: string;
}

function publishedText(document: JsonObject): PublishedText {
  const body = JSON.stringify(document);
  return { body, etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"` };
}

/** Something that everybody may read and keep, with its validator. */
function asPublished({ headers }: HttpRequest, { body, etag }: PublishedText): HttpResponse {
  const own = { ...PUBLISHED_HEADERS, etag };
  if (isMatch(headers["if-none-match"], etag)) return { status: 304, headers: own, body: null };
  return { status: 200, headers: { "content-type": JSON_TYPE, ...own }, body };
}
