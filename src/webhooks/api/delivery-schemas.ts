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
  state: componentRef("schemas", "DeliveryState"),
  reason: {
    type: ["string", "null"],
    enum: [
      "exhausted",
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

/** The schemas of deliveries, by component name. */
export const deliverySchemas: { readonly [name: string]: JsonObject } = {
  DeliveryState: { type: "string", enum: ["pending", "delivered", "failed", "withheld"] },
  Outcome: describeObject(attemptResult),
  Delivery: describeObject({
    ...DELIVERY_FIELDS,
    attempts: {
      type: "array",
      description: "In chronological order.",
      items: describeObject({
        ...attemptResult,
        durationMs: { type: "integer", minimum: 0 },
        step: { type: "integer", minimum: 0, description: "The step of the schedule, from 0." },
        isExtra: { type: "boolean", description: "True for an attempt outside the schedule." },
        excerpt: {
          type: ["string", "null"],
          description:
            "The beginning of the response to a failed attempt, if the service stores it. Only the API key that owns the webhook, or a key that may act for it, sees it.",
        },
      }),
    },
  }),
  DeliveryRow: describeObject({
    ...DELIVERY_FIELDS,
    attemptCount: { type: "integer", minimum: 0 },
    lastAttempt: orNull(attemptResultRef),
  }),
};
