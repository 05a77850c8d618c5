/** Signs a body as Postbell does, for the tests of who receives it. */

import { systemClock } from "../core/clock.js";
import { PostbellError } from "../core/errors.js";
import { SIGNATURE_HEADER, signatureHeader, standardHeaders } from "../signature/signature.js";
import { FIXED_HEADERS } from "../webhooks/sender.js";

/** The arguments of {@link signNotification}. */
export interface SignNotificationInput {
  /** The body: bytes, text, or an object to send as JSON. */
  body: Uint8Array | string | object;
  /** The endpoint's secret, `whsec_…`. */
  secret: string;
  /** When it is signed. Default: now. Set it to test that an old delivery is refused. */
  at?: Date | undefined;
  /** The header of the signature. Default `X-Service-Signature`. */
  header?: string | undefined;
  /** Adds the three headers of Standard Webhooks. Default false. */
  standardWebhooks?: boolean | undefined;
}

/**
 * Returns the headers and the bytes of a delivery, as Postbell sends them, so that a test can post
 * it to an endpoint.
 *
 * @throws `invalid_argument` for an empty secret, and for an invalid time.
 *
 * @example
 * const { headers, body } = signNotification({ body: { id, type, timestamp, data }, secret });
 * const response = await fetch("http://localhost:3000/webhooks/in", { method: "POST", headers, body });
 * assert.equal(response.status, 204);
 */
export function signNotification({
  body: content,
  secret,
  at = new Date(systemClock.now()),
  header = SIGNATURE_HEADER,
  standardWebhooks = false,
}: SignNotificationInput): { headers: Record<string, string>; body: Buffer } {
  const isBytes = typeof content === "string" || content instanceof Uint8Array;
  const body = Buffer.from(isBytes ? (content as Uint8Array) : JSON.stringify(content));
  const timestamp = Math.floor(at.getTime() / 1_000);
  if (Number.isNaN(timestamp)) {
    throw new PostbellError("invalid_argument", "at must be a valid Date.", { field: "at" });
  }
  const headers: Record<string, string> = {
    ...FIXED_HEADERS,
    [header]: signatureHeader({ secret, timestamp, body }),
  };
  if (standardWebhooks)
    Object.assign(headers, standardHeaders({ secrets: [secret], id: readId(body), timestamp, body }));
  return { headers, body };
}

/** The id of the event, which `webhook-id` repeats. */
function readId(body: Buffer): string {
  const { id } = JSON.parse(body.toString()) as { id?: unknown };
  if (typeof id === "string" && id !== "") return id;
  const message = "body must be JSON with an id, for the header webhook-id of standardWebhooks.";
  throw new PostbellError("invalid_argument", message, { field: "body" });
}
