/**
 * The operations that list deliveries and recover missed events, of a webhook and of an account:
 * each with its description for OpenAPI and its handler.
 */

import { componentRef } from "../../http/openapi-document.js";
import type { HttpResponse } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import { invalidField, TAG_BOUNDS, TEXT_LENGTHS } from "../call-arguments.js";
import type { Delivery, RecoverySelection, ReplayRequest } from "../delivery/deliveries.js";
import { MAX_REPLAYED_TYPES, RECOVERABLE, REPLAYABLE } from "../delivery/recover.js";
import { findWebhook, parseInclude, parsePage, renameErrorField, toJsonResponse } from "./api-request.js";
import type { BodySchema, Operations, SubscriberCall } from "./operation.js";
import {
  cursorParameter,
  describeObject,
  describeTime,
  EXAMPLE_ATTEMPT,
  EXAMPLE_DELIVERY,
  EXAMPLE_WEBHOOK,
  eventTypeRef,
  limitParameter,
  nextCursor,
} from "./schemas.js";

const webhookId = { type: "string", format: "uuid" } as const;
const count = { type: "integer", minimum: 0, description: "The number of deliveries." } as const;

/** The query parameters of a list of deliveries. */
const logParameters: JsonObject[] = [
  { name: "state", in: "query", schema: componentRef("schemas", "DeliveryState") },
  {
    name: "type",
    in: "query",
    description: "An event type, or `webhook.test`.",
    schema: { anyOf: [eventTypeRef, { const: "webhook.test" }] },
  },
  {
    name: "since",
    in: "query",
    description: "Only deliveries created at or after this time: ISO 8601 with an offset.",
    schema: { type: "string", format: "date-time", maxLength: TEXT_LENGTHS.time },
  },
  {
    name: "event_id",
    in: "query",
    description: "Only the deliveries of this event: the first one, and those sent again.",
    schema: { type: "string", format: "uuid" },
  },
  {
    name: "subject",
    in: "query",
    description:
      "Only the deliveries of events about this subject, those of the newest event first. Only those are found whose `subject` the API key is shown.",
    schema: { type: "string", minLength: 1, maxLength: 256 },
  },
  {
    name: "tag",
    in: "query",
    description: "The same for one of their `tags`. At most one of `event_id`, `subject` and `tag`.",
    schema: { type: "string", minLength: 1, maxLength: TAG_BOUNDS.characters },
  },
  {
    name: "include",
    in: "query",
    description: "`attempts` adds the attempts of each delivery, without excerpts of responses.",
    schema: { const: "attempts" },
  },
  {
    name: "until",
    in: "query",
    description: "Only deliveries created before this time: ISO 8601 with an offset.",
    schema: { type: "string", format: "date-time", maxLength: TEXT_LENGTHS.time },
  },
  limitParameter,
  cursorParameter,
];

/** The response to a list of deliveries. */
const logResponse = {
  status: 200,
  description: "A page of deliveries.",
  schema: describeObject({
    deliveries: { type: "array", items: componentRef("schemas", "DeliveryRow") },
    next: nextCursor,
  }),
  example: {
    deliveries: [
      { ...EXAMPLE_DELIVERY, attemptCount: 1, lastAttempt: { ...EXAMPLE_ATTEMPT, durationMs: 120 } },
    ],
    next: null,
  },
};

/** The body of a request that recovers missed events. */
const recoveryBody: BodySchema = {
  properties: {
    since: {
      ...describeTime("ISO 8601 with an offset. Only `pending` events need none."),
      maxLength: TEXT_LENGTHS.time,
    },
    type: { ...eventTypeRef, description: "Only events of this type." },
    state: {
      type: "string",
      enum: RECOVERABLE,
      description:
        "Only events whose deliveries `failed`; only those `missed`, which have no delivery; only those `withheld`, for which access is checked again; or those `pending`, whose delivery waits for a retry and gets one more attempt in addition to its schedule; or `undelivered`: failed, missed and pending. Default: failed and missed.",
    },
  },
  example: { since: "2026-03-01T00:00:00Z" },
};

/** The body of a request that sends a span of time again. */
const replayBody: BodySchema = {
  required: ["since", "until"],
  properties: {
    since: { ...describeTime("ISO 8601 with an offset."), maxLength: TEXT_LENGTHS.time },
    until: { ...describeTime("Exclusive, and later than `since`."), maxLength: TEXT_LENGTHS.time },
    types: {
      type: "array",
      minItems: 1,
      maxItems: MAX_REPLAYED_TYPES,
      items: eventTypeRef,
      description: "Only events of these types.",
    },
    states: {
      type: "array",
      minItems: 1,
      maxItems: REPLAYABLE.length,
      items: { type: "string", enum: REPLAYABLE },
      description: "Only events in these states for the webhook; `missed` have no delivery. Default: all.",
    },
    subject: {
      type: "string",
      minLength: 1,
      maxLength: 256,
      description: "Only events about this subject, of those that were delivered.",
    },
    dry_run: { type: "boolean", default: false, description: "True counts the events and sends nothing." },
  },
  example: { since: "2026-03-01T08:00:00Z", until: "2026-03-01T09:00:00Z", dry_run: true },
};

export const logOperations: Operations = {
  listDeliveries: {
    method: "GET",
    path: "/v1/webhooks/:webhookId/deliveries",
    tag: "Deliveries",
    summary: "List a webhook's deliveries",
    description:
      "Newest first, without their attempts. A page can hold fewer deliveries than `limit`, even none, and still have a `next`. Continue until `next` is null.",
    parameters: logParameters,
    response: logResponse,
    errors: [400, 404],
    async handle(call) {
      const { id: webhookId } = await findWebhook(call);
      return listLog(call, { webhookId });
    },
  },
  recoverDeliveries: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/recover",
    tag: "Deliveries",
    summary: "Recover missed events",
    description:
      "Creates deliveries of all stored events since `since`, or since the webhook was registered, that it subscribes to and did not receive. They are sent one at a time, oldest first. With the state `pending`, nothing is created: deliveries that wait for a retry get one more attempt. Calling it again changes nothing. The response is 429 if the recoveries of the account have examined too many events in a minute. Only the API key that owns the webhook, or a key that may act for it, may recover events.",
    body: recoveryBody,
    response: {
      status: 202,
      description: "The deliveries were created, or made due, and will be sent.",
      schema: describeObject({
        count,
      }),
      example: { count: 12 },
    },
    errors: [403, 404, 409],
    async handle(call) {
      const { id: webhookId } = await findWebhook(call);
      const recovery = { ...(await readRecovery(call)), webhookId };
      return toJsonResponse(202, await call.webhooks.deliveries.recover(recovery));
    },
  },
  replayDeliveries: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/replay",
    tag: "Deliveries",
    summary: "Send the events of a span of time again",
    description:
      "Creates a new delivery of each stored event of the span that the webhook subscribes to, also of those that were delivered, but none of an event with a pending delivery, of one that was sent again a hundred times, or from before the webhook was registered. The event ids stay the same. They are sent one at a time, oldest first, within the limits of `recover`. Only the API key that owns the webhook, or a key that may act for it, may replay events.",
    body: replayBody,
    response: {
      status: 202,
      description: "The deliveries were created and will be sent; with `dry_run` they were only counted.",
      schema: describeObject({ count }),
      example: { count: 12 },
    },
    errors: [403, 404, 409],
    async handle(call) {
      const { id: webhookId } = await findWebhook(call);
      const { dry_run: dryRun, ...fields } = await call.readBody();
      // The service checks each field.
      const request = { ...fields, dryRun, webhookId } as unknown as ReplayRequest;
      const replay = call.webhooks.deliveries.replay(request);
      return toJsonResponse(202, await renameErrorField({ dryRun: "dry_run" }, replay));
    },
  },
  listAccountDeliveries: {
    method: "GET",
    path: "/v1/deliveries",
    tag: "Deliveries",
    summary: "List the deliveries of all webhooks",
    description:
      "Newest first, like the list of one webhook. A page can hold fewer deliveries than `limit`, even none, and still have a `next`. Continue until `next` is null. Each page counts as one more request of the account for each of its webhooks.",
    parameters: logParameters,
    response: logResponse,
    errors: [400],
    async handle(call) {
      await chargeForWebhooks(call);
      return listLog(call, { account: call.subscriber.account });
    },
  },
  recoverAccountDeliveries: {
    method: "POST",
    path: "/v1/deliveries/recover",
    tag: "Deliveries",
    summary: "Recover the missed events of all webhooks",
    description:
      "Does the same as recovering the events of each ENABLED webhook that the API key may manage, one after another, and within the same limits. It counts as one more request of the account for each of its webhooks. The response says which webhooks were skipped. Those with `rate_limited` can be recovered one by one later; if there are no others, the response is 429. Those with `unavailable` were not recovered, or only in part, because the storage refused a call; repeat the request.",
    body: recoveryBody,
    response: {
      status: 202,
      description: "The deliveries were created, or made due, and will be sent.",
      schema: describeObject({
        count,
        webhooks: { type: "array", items: describeObject({ webhookId, count }) },
        skipped: {
          type: "array",
          items: describeObject({
            webhookId,
            reason: {
              type: "string",
              enum: ["webhook_disabled", "webhook_owned_by_another_key", "rate_limited", "unavailable"],
            },
          }),
        },
      }),
      example: { count: 12, webhooks: [{ webhookId: EXAMPLE_WEBHOOK.id, count: 12 }], skipped: [] },
    },
    errors: [],
    async handle(call) {
      const recovery = { ...(await readRecovery(call)), account: call.subscriber.account };
      await chargeForWebhooks(call);
      return toJsonResponse(202, await call.webhooks.deliveries.recover(recovery));
    },
  },
};

/** Lists the deliveries of a webhook or of an account, as the query asks. */
async function listLog(
  { request, webhooks }: SubscriberCall,
  scope: { webhookId: string } | { account: string },
): Promise<HttpResponse> {
  const query = new URLSearchParams(request.query);
  const { attempts: isWithAttempts } = parseInclude(query, ["attempts"]);
  const page = webhooks.deliveries.list({
    ...scope,
    eventId: query.get("event_id") ?? undefined,
    subject: query.get("subject") ?? undefined,
    tag: query.get("tag") ?? undefined,
    state: (query.get("state") ?? undefined) as Delivery["state"] | undefined,
    type: query.get("type") ?? undefined,
    since: query.get("since") ?? undefined,
    until: query.get("until") ?? undefined,
    ...parsePage(query),
  });
  const { items: deliveries, next } = await renameErrorField({ eventId: "event_id" }, page);
  return toJsonResponse(200, {
    deliveries: deliveries.map((delivery) => toRow(delivery, isWithAttempts)),
    next,
  });
}

/**
 * A delivery in a list. Its attempts are left out unless they were asked for, and excerpts of
 * responses in any case: they can be long.
 */
function toRow({ attempts, ...delivery }: Delivery, isWithAttempts: boolean) {
  const withoutExcerpts = attempts.map((attempt) => ({ ...attempt, excerpt: null }));
  const last = attempts.at(-1);
  return {
    ...delivery,
    attemptCount: attempts.length,
    lastAttempt: last
      ? { at: last.at, kind: last.kind, status: last.status, code: last.code, durationMs: last.durationMs }
      : null,
    ...(isWithAttempts && { attempts: withoutExcerpts }),
  };
}

/** Reads a body of the form {@link recoveryBody}. */
async function readRecovery({ readBody }: SubscriberCall): Promise<RecoverySelection> {
  const { since, type, state } = await readBody();
  if (since === undefined && state !== "pending")
    throw invalidField("since", "since is missing: the time to recover from, in ISO 8601.");
  return { since, type, state } as RecoverySelection;
}

/** Charges the account for a request that works on each of its webhooks, before it does. */
async function chargeForWebhooks({ webhooks, charge }: SubscriberCall): Promise<void> {
  let count = 0;
  for await (const _webhook of webhooks.registrations.list({ limit: 100 })) count += 1;
  charge(count);
}
