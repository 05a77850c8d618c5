/** The spans of claims and attempts, for a service with telemetry. */

import type { Clock } from "../../core/clock.js";
import { getServerAttributes, type Span, type Telemetry, toLabel } from "../../core/telemetry.js";
import type { PreparedEvent } from "../events/notification.js";
import type { Attempt, Claim } from "../store.js";

/** `url` is not among the attributes: hosts of subscribers put secrets into paths and queries. */
export const beginAttempt = (
  telemetry: Telemetry,
  clock: Clock,
  { id, webhook, lane, step, isExtra }: Claim,
  { id: eventId, type, trace }: PreparedEvent,
): Span | undefined =>
  telemetry.begin?.({
    name: "attempt",
    kind: "client",
    at: clock.now(),
    link: trace,
    attributes: {
      "messaging.system": "postbell",
      "messaging.operation.name": "attempt",
      "messaging.operation.type": "send",
      "messaging.destination.name": type,
      "messaging.message.id": eventId,
      "http.request.method": "POST",
      ...getServerAttributes(webhook.url),
      "postbell.delivery.id": id,
      "postbell.lane": lane,
      "postbell.step": step,
      "postbell.extra": isExtra,
    },
  });

/** Returns the end of a span. The `code` of a host's `send` can be any text. */
export const describeEnd = ({ kind, status, code }: Attempt) => ({
  attributes: {
    "postbell.outcome": kind,
    ...(status === null ? {} : { "http.response.status_code": status }),
  },
  error: kind === "delivered" ? undefined : status === null ? toLabel(code, kind) : String(status),
});

/** Claims without a result get no span: there are thousands of them. */
export function traceClaim(telemetry: Telemetry, clock: Clock, at: number, count: number): void {
  if (count === 0) return;
  const attributes = {
    "messaging.system": "postbell",
    "messaging.operation.name": "claim",
    "messaging.operation.type": "receive",
    "messaging.batch.message_count": count,
  };
  const span = telemetry.begin?.({ name: "claim", kind: "consumer", at, attributes });
  span?.end({ at: clock.now() });
}
