/** Writes the spans of claims and attempts. */

import type { Clock } from "../../core/clock.js";
import type { Span, Telemetry } from "../../core/telemetry.js";
import { getServerAttributes, toLabel } from "../../core/telemetry.js";
import type { PreparedEvent } from "../events/notification.js";
import type { Attempt, Claim, ClaimResponse } from "../store.js";

/** Claims without a result get no span: there are thousands of them. */
export function traceClaim(
  telemetry: Telemetry,
  { at, endAt }: { readonly at: number; readonly endAt: number },
  { claims }: ClaimResponse,
): void {
  if (claims.length === 0) return;
  const attributes = {
    "messaging.system": "postbell",
    "messaging.operation.name": "claim",
    "messaging.operation.type": "receive",
    "messaging.batch.message_count": claims.length,
  };
  telemetry.begin?.({ name: "claim", kind: "consumer", at, attributes })?.end({ at: endAt });
}

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

/** Returns the end of a span. The `code` of a host's own `send` can be any text. */
export const spanOutcome = ({ kind, status, code }: Pick<Attempt, "kind" | "status" | "code">) => ({
  attributes: {
    "postbell.outcome": kind,
    ...(status === null ? {} : { "http.response.status_code": status }),
  },
  error: kind === "delivered" ? undefined : status === null ? toLabel(code, kind) : String(status),
});
