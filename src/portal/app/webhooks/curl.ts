/** A delivery as a shell command, to replay it to an endpoint. Pure. */

import type { DeliveryRequestJson } from "../../shapes.js";

/** Quotes a text for a POSIX shell. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The headers that the command computes, or that curl adds. */
const isComputed = (name: string): boolean => /signature|timestamp/i.test(name);

/**
 * Builds a command that sends the same request, signed for now with the secret in `WEBHOOK_SECRET`.
 * Without the body it reads `notification.json`.
 */
export function buildCurlCommand(
  { url, headers, body }: DeliveryRequestJson,
  signatureHeader: string,
): string {
  const sent = Object.entries(headers)
    .filter(([name]) => !isComputed(name))
    .map(([name, value]) => `  -H ${quote(`${name}: ${value}`)} \\`);
  return [
    ...(body === null ? [] : [`printf '%s' ${quote(body)} > notification.json`]),
    "t=$(date +%s)",
    `s=$( (printf '%s.' "$t"; cat notification.json) | openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" | sed 's/.* //')`,
    `curl ${quote(url)} \\`,
    ...sent,
    `  -H ${quote(`${signatureHeader}: t=`)}"$t, s=$s" \\`,
    "  --data-binary @notification.json",
  ].join("\n");
}

/** The name of the header with the signature; the host may have changed it. */
export const findSignatureHeader = ({ headers }: Pick<DeliveryRequestJson, "headers">): string =>
  Object.keys(headers).find(
    (name) => /signature/i.test(name) && name.toLowerCase() !== "webhook-signature",
  ) ?? "X-Service-Signature";
