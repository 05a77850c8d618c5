/**
 * The operations that register, list, change and delete webhooks: each with its description for
 * OpenAPI and its handler.
 */

import { isPostbellError } from "../../core/errors.js";
import { componentRef } from "../../http/openapi-document.js";
import type { HttpRequest } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import { invalidField } from "../call-arguments.js";
import { MAX_EVENT_TYPES } from "../event-types/catalogue.js";
import type { RegistrationChange } from "../registrations/registrations.js";
import type { Webhook } from "../webhook.js";
import { findWebhook, parseInclude, parsePage, renameErrorField, toJsonResponse } from "./api-request.js";
import { REQUEST_NAMES, toDetails, toSettings } from "./endpoint-settings.js";
import type { ApiService, Operations, SubscriberCalls } from "./operation.js";
import {
  cursorParameter,
  describeObject,
  describeTime,
  detailSchemas,
  EXAMPLE_SECRET,
  EXAMPLE_WEBHOOK,
  limitParameter,
  nextCursor,
  secretRef,
  webhookRef,
} from "./schemas.js";

const urlSchema = componentRef("schemas", "EndpointUrl");

const eventTypesSchema: JsonObject = {
  type: "array",
  description:
    "The event types to subscribe to: names, `prefix.*` or `*`. If it is missing: every type, also future ones.",
  minItems: 1,
  maxItems: MAX_EVENT_TYPES,
  uniqueItems: true,
  items: componentRef("schemas", "EventTypePattern"),
};

const statusSchema: JsonObject = { type: "string", enum: ["ENABLED", "DISABLED"] };

const INCLUDED = ["stats", "event_types", "details"] as const;
type Included = Record<(typeof INCLUDED)[number], boolean>;

const includeParameter: JsonObject = {
  name: "include",
  in: "query",
  description:
    "What to add to each webhook: `stats` its statistics, in a list with the latest 24 of its `hours`, `event_types` its subscription, `details` its description and metadata. Several are separated by commas.",
  style: "form",
  explode: false,
  schema: {
    type: "array",
    minItems: 1,
    maxItems: INCLUDED.length,
    uniqueItems: true,
    items: { type: "string", enum: INCLUDED },
  },
};

export const registrationOperations: Operations = {
  createWebhook: {
    method: "POST",
    path: "/v1/webhooks",
    tag: "Webhooks",
    summary: "Register an endpoint",
    description:
      "The webhook is ENABLED at once. Only this response contains the secret that signs its notifications.",
    parameters: [
      {
        name: "Idempotency-Key",
        in: "header",
        description:
          "Makes it safe to repeat the request after a lost response. For ten minutes the same key returns the same response, including the secret. If the webhook was deleted or its secret rotated since, the response is 409.",
        schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
      },
    ],
    body: {
      required: ["url"],
      properties: { url: urlSchema, event_types: eventTypesSchema, ...detailSchemas },
      takesSettings: true,
      example: { url: EXAMPLE_WEBHOOK.url, event_types: ["patient.*"] },
    },
    response: {
      status: 201,
      description: "The webhook and its secret.",
      schema: describeObject({ webhook: webhookRef, secret: secretRef }),
      example: { webhook: EXAMPLE_WEBHOOK, secret: EXAMPLE_SECRET },
      headers: {
        Location: {
          description: "The URL of the webhook.",
          required: true,
          schema: { type: "string", format: "uri" },
        },
      },
    },
    errors: [403, 409],
    async handle({ request, webhooks, readBody }) {
      const idempotencyKey = readIdempotencyKey(request.headers);
      const { url, event_types, ...more } = await readBody();
      const created = webhooks.registrations.create({
        url: url as string,
        eventTypes: event_types as string[] | undefined,
        idempotencyKey,
        ...toDetails(more),
      });
      const { webhook, secret } = await renameErrorField(REQUEST_NAMES, created);
      const location = `${request.baseUrl}/v1/webhooks/${webhook.id}`;
      return toJsonResponse(201, { webhook: toResource(webhook), secret }, { location });
    },
  },
  listWebhooks: {
    method: "GET",
    path: "/v1/webhooks",
    tag: "Webhooks",
    summary: "List the account's webhooks",
    description:
      "Oldest first. A page with statistics counts as one more request of the account for each webhook on it.",
    parameters: [limitParameter, cursorParameter, includeParameter],
    response: {
      status: 200,
      description: "A page of webhooks.",
      schema: describeObject({ webhooks: { type: "array", items: webhookRef }, next: nextCursor }),
      example: { webhooks: [EXAMPLE_WEBHOOK], next: null },
    },
    errors: [400],
    async handle({ request, webhooks: { registrations, deliveries }, charge }, { offered }) {
      const query = new URLSearchParams(request.query);
      const include = parseInclude(query, INCLUDED);
      const { items, next } = await registrations.list(parsePage(query));
      if (include.stats) charge(items.length);
      const resources = await toFullResources({ deliveries, offered }, items, include);
      return toJsonResponse(200, { webhooks: resources, next });
    },
  },
  readWebhook: {
    method: "GET",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Read a webhook",
    parameters: [includeParameter],
    response: { status: 200, description: "The webhook.", schema: webhookRef, example: EXAMPLE_WEBHOOK },
    errors: [400, 404],
    async handle(call, { offered }) {
      const include = parseInclude(new URLSearchParams(call.request.query), INCLUDED);
      const webhook = await findWebhook(call);
      const { deliveries } = call.webhooks;
      return toJsonResponse(200, await toFullResource({ deliveries, offered }, webhook, include));
    },
  },
  updateWebhook: {
    method: "PUT",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Change, enable or disable a webhook",
    description:
      "Pending deliveries go to the new URL. A new URL, or enabling the webhook again, resets the health of its endpoint. While the webhook is DISABLED, due attempts are skipped and new events create no deliveries. Only the API key that owns the webhook, or a key that may act for it, may change the URL or the event types, or enable the webhook. Every key of the account may disable it.",
    body: {
      required: ["url", "status"],
      properties: {
        url: urlSchema,
        status: statusSchema,
        event_types: {
          ...eventTypesSchema,
          description: "Replaces the event types. If it is missing, they do not change.",
        },
        ...detailSchemas,
        id: { type: "string", readOnly: true },
        createdDate: { type: "string", readOnly: true },
        updatedDate: { type: "string", readOnly: true },
      },
      takesSettings: true,
      example: { url: EXAMPLE_WEBHOOK.url, status: "DISABLED" },
    },
    response: {
      status: 200,
      description: "The updated webhook.",
      schema: webhookRef,
      example: { ...EXAMPLE_WEBHOOK, status: "DISABLED", updatedDate: "2026-03-02T08:30:00.000Z" },
    },
    errors: [403, 404, 409],
    async handle(call) {
      const { id } = await findWebhook(call);
      const change = parseChange(await call.readBody());
      const updated = call.webhooks.registrations.update({ id, ...change });
      const webhook = await renameErrorField(REQUEST_NAMES, updated);
      return toJsonResponse(200, toResource(webhook));
    },
  },
  deleteWebhook: {
    method: "DELETE",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Delete a webhook",
    description:
      "Deletes all its deliveries too: nothing more is sent. Every key of the account may delete it.",
    response: {
      status: 200,
      description: "The webhook was deleted.",
      schema: describeObject({ message: { type: "string" } }),
      example: { message: "The webhook was deleted." },
    },
    errors: [404],
    async handle({ parameter, webhooks }) {
      await webhooks.registrations.remove(parameter("webhookId"));
      return toJsonResponse(200, { message: "The webhook was deleted." });
    },
  },
  rotateSecret: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/rotate",
    tag: "Webhooks",
    summary: "Get a new secret",
    description:
      "The old secret signs until the cut-over, so that you can install the new one first. Only the API key that owns the webhook, or a key that may act for it, may rotate the secret.",
    body: {
      isOptional: true,
      properties: {
        overlap_seconds: {
          type: "integer",
          minimum: 0,
          maximum: 604_800,
          default: 86_400,
          description: "How long the old secret still signs.",
        },
      },
      example: { overlap_seconds: 3600 },
    },
    response: {
      status: 200,
      description: "The new secret. Only this response contains it.",
      schema: describeObject({
        secret: secretRef,
        rotatesAt: describeTime("When the new secret begins to sign."),
      }),
      example: { secret: EXAMPLE_SECRET, rotatesAt: "2026-03-01T13:00:00.000Z" },
    },
    errors: [403, 404],
    async handle(call) {
      const { id } = await findWebhook(call);
      const { overlap_seconds } = await call.readBody();
      const request = { id, overlapMs: parseOverlap(overlap_seconds) };
      return toJsonResponse(200, await call.webhooks.registrations.rotateSecret(request));
    },
  },
  finishRotation: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/rotate/finish",
    tag: "Webhooks",
    summary: "Sign with the new secret now",
    description:
      "Ends a rotation before its cut-over: from now on, only the new secret signs. Send it once your endpoint accepts the new secret. It changes nothing if no rotation is in progress. Only the API key that owns the webhook, or a key that may act for it, may finish the rotation.",
    response: {
      status: 200,
      description: "Only the new secret signs.",
      schema: describeObject({ message: { type: "string" } }),
      example: { message: "Only the new secret signs from now on." },
    },
    errors: [403, 404],
    async handle(call) {
      const { id } = await findWebhook(call);
      await call.webhooks.registrations.finishRotation(id);
      return toJsonResponse(200, { message: "Only the new secret signs from now on." });
    },
  },
};

/** The webhook with the properties of the OpenAPI document, and no others. */
const toResource = ({ id, status, url, createdAt, updatedAt }: Webhook) => ({
  id,
  status,
  url,
  createdDate: createdAt,
  updatedDate: updatedAt,
});

function readIdempotencyKey(headers: HttpRequest["headers"]): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw invalidField("Idempotency-Key", "Idempotency-Key must be 1 to 255 visible ASCII characters.");
}

const MAX_OVERLAP_SECONDS = 604_800;

/** Converts `overlap_seconds` to milliseconds. */
function parseOverlap(seconds: unknown): number | undefined {
  if (seconds === undefined) return undefined;
  if (Number.isInteger(seconds) && (seconds as number) >= 0 && (seconds as number) <= MAX_OVERLAP_SECONDS)
    return (seconds as number) * 1000;
  throw invalidField(
    "overlap_seconds",
    `overlap_seconds must be a whole number of seconds from 0 to ${MAX_OVERLAP_SECONDS} (7 days).`,
  );
}

type Change = Omit<RegistrationChange, "id">;

function parseChange({ url, status, event_types, ...more }: Record<string, unknown>): Change {
  if (url === undefined) throw invalidField("url", "url is missing: an update needs url and status.");
  if (status === undefined) throw invalidField("status", "status is missing: ENABLED or DISABLED.");
  return {
    url: url as string,
    status: status as Webhook["status"],
    eventTypes: event_types as string[] | undefined,
    ...toDetails(more),
  };
}

/** The parts of a call that records are read with. */
interface RecordReader {
  deliveries: SubscriberCalls["deliveries"];
  offered: ApiService["offered"];
}

/** The webhook with what a request asked to include. */
async function toFullResource({ deliveries, offered }: RecordReader, webhook: Webhook, include: Included) {
  return {
    ...toResource(webhook),
    // In the form that an update accepts, so that a record that was read can be sent back.
    ...(include.event_types && { event_types: webhook.eventTypes ?? ["*"] }),
    ...(include.details && {
      description: webhook.description,
      metadata: webhook.metadata,
      ...toSettings(webhook, offered),
    }),
    ...(include.stats && { stats: await deliveries.stats(webhook.id) }),
  };
}

/** The hours of one webhook in a list: enough for a day, at a third of the bytes. */
const LISTED_HOURS = 24;

/** Leaves out webhooks that were deleted since the list was read. */
async function toFullResources(reader: RecordReader, webhooks: readonly Webhook[], include: Included) {
  const read = async (webhook: Webhook) => {
    try {
      const { stats, ...resource } = await toFullResource(reader, webhook, include);
      if (stats === undefined) return [resource];
      return [{ ...resource, stats: { ...stats, hours: stats.hours.slice(-LISTED_HOURS) } }];
    } catch (error) {
      if (isPostbellError(error, "not_found")) return [];
      throw error;
    }
  };
  return (await Promise.all(webhooks.map(read))).flat();
}
