/** The JSON Schemas of deliveries and their attempts. Plain data. */

import { componentRef } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { describeObject, describeTime, describeTimeOrNull, orNull } from "./shared-schemas.js";

export const attemptResultRef = componentRef("schemas", "Outcome");

/** The result of an attempt, in the log and in the statistics. */
const attemptResult: { readonly [name: string]: JsonObject } = {
  at: describeTime("When the attempt began."),
  kind: {
    type: "string",
    enum: ["delivered", "http", "dns", "connect", "tls", "timeout", "refused"],
    description:
      "`delivered`, or the kind of failure. `http`: a status other than 2xx. `dns`: the host name has no usable address. `refused`: the URL is not allowed.",
  },
  status: {
    type: ["integer", "null"],
    description: "The HTTP status of the response; null if nothing was received.",
  },
  code: {
    type: "string",
    description: "A short stable code: `HTTP_500`, `ECONNREFUSED`, `NO_USABLE_ADDRESS`.",
  },
};

const DELIVERY_FIELDS: { readonly [name: string]: JsonObject } = {
  id: { type: "string" },
  webhookId: { type: "string", format: "uuid" },
  eventId: { type: "string", format: "uuid", description: "`id` of the notification." },
  type: { type: "string", description: "The event type; `webhook.test` for a test." },
  subject: {
    type: ["string", "null"],
    description:
      "The reference of the event's own record: `Patient/123`. Null if the record has no id, before the first attempt, for tests and withheld deliveries, and for API keys that may not manage the webhook.",
  },
  state: componentRef("schemas", "DeliveryState"),
  reason: {
    type: ["string", "null"],
    enum: [
      "exhausted",
      "test_failed",
      "disabled",
      "access_denied",
      "access_unknown",
      "crashed",
      "payload_unreadable",
      "payload_missing",
      "record_unreadable",
      null,
    ],
    description: "Why the delivery ended without success; otherwise null.",
  },
  createdAt: describeTime("When the delivery was created."),
  startedAt: describeTimeOrNull("When the first attempt began; null before it. The schedule starts here."),
  nextAttemptAt: describeTimeOrNull("When the next attempt is due; null once the delivery has completed."),
  endedAt: describeTimeOrNull("When the delivery completed; null while it is pending."),
};

const durationMs: JsonObject = { type: "integer", minimum: 0 };

const attempts: JsonObject = {
  type: "array",
  description: "In chronological order.",
  items: describeObject({
    ...attemptResult,
    durationMs,
    step: { type: "integer", minimum: 0, description: "The step of the schedule, from 0." },
    isExtra: { type: "boolean", description: "True for an attempt outside the schedule." },
    excerpt: {
      type: ["string", "null"],
      description:
        "The beginning of the response to a failed attempt, if the service stores it. Only the API key that owns the webhook, or a key that may act for it, sees it.",
    },
  }),
};

/** The schemas of deliveries, by component name. */
export const deliverySchemas: { readonly [name: string]: JsonObject } = {
  DeliveryState: { type: "string", enum: ["pending", "delivered", "failed", "withheld"] },
  Outcome: describeObject(attemptResult),
  Stats: describeObject({
    pending: { type: "integer", minimum: 0 },
    delivered: { type: "integer", minimum: 0 },
    failed: { type: "integer", minimum: 0, description: "Failed tests do not count." },
    withheld: { type: "integer", minimum: 0 },
    lastDay: describeObject({
      attempts: {
        type: "integer",
        minimum: 0,
        description: "The attempts of the last 24 hours, to the hour. Failed tests do not count.",
      },
      succeeded: { type: "integer", minimum: 0 },
      averageMs: {
        type: ["integer", "null"],
        minimum: 0,
        description: "How long those that succeeded took on average; null if none did.",
      },
    }),
    eventTypes: orNull({
      type: "array",
      items: componentRef("schemas", "EventTypePattern"),
      description: "The event types that the webhook subscribes to; null for all, also future ones.",
    }),
    health: describeObject({
      status: { type: "string", enum: ["ok", "failing", "warned", "disabled"] },
      failingSince: describeTimeOrNull("The first failure since the last success."),
      warnAt: describeTimeOrNull("When the operator is warned if the failures continue."),
      disableAt: describeTimeOrNull("When the webhook is disabled if the failures continue."),
    }),
    rotatesAt: describeTimeOrNull("When a new secret begins to sign; null without a rotation."),
    nextAttemptAt: describeTimeOrNull(
      "When the next attempt is due; in the past if it waits for a free slot.",
    ),
    lastAttempt: orNull(attemptResultRef),
  }),
  Delivery: describeObject({ ...DELIVERY_FIELDS, attempts }),
  DeliveryRow: {
    type: "object",
    required: [...Object.keys(DELIVERY_FIELDS), "attemptCount", "lastAttempt"],
    properties: {
      ...DELIVERY_FIELDS,
      attemptCount: { type: "integer", minimum: 0 },
      lastAttempt: orNull(describeObject({ ...attemptResult, durationMs })),
      attempts: { ...attempts, description: "Only with `include=attempts`, and without excerpts." },
    },
    additionalProperties: false,
  },
};
