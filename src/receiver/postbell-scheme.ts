/** The scheme of Postbell's deliveries, by secrets or by public keys. */

import { PostbellError } from "../core/errors.js";
import type { OptionValues } from "../core/options.js";
import { readPublicKey, verifyAsymmetricSignature } from "../signature/asymmetric.js";
import { SIGNATURE_HEADER, verifySignature } from "../signature/signature.js";
import {
  type EventNotification,
  type PlainNotification,
  readNotification,
  readPlainNotification,
} from "./notification.js";
import type { receiverOptions } from "./options.js";
import type { SignedRequest, WebhookScheme } from "./scheme.js";

export type AnyNotification = EventNotification | PlainNotification;

type SchemeOptions = OptionValues<typeof receiverOptions>;

/**
 * By secrets or by public keys, never by either: a sender must not choose the weaker one.
 *
 * @throws `invalid_option` if both or neither of them are set.
 */
export function createPostbellScheme(options: SchemeOptions): WebhookScheme<AnyNotification> {
  const { secrets, publicKeys, body: form } = options;
  const read = ({ body }: SignedRequest): AnyNotification | undefined =>
    form === "plain" ? readPlainNotification(body) : readNotification(body);
  if (publicKeys === undefined) {
    if (secrets === undefined) throw missingOption("secrets");
    const list = typeof secrets === "string" ? [secrets] : [...secrets];
    const name = options.header.toLowerCase();
    return {
      header: name,
      read,
      verify({ body, header, toleranceMs, now }) {
        const result = verifySignature({ body, header: header(name), secrets: list, toleranceMs, now });
        return result.ok ? undefined : result.code;
      },
    };
  }
  if (secrets !== undefined || options.header !== SIGNATURE_HEADER) {
    const other = secrets === undefined ? "header" : "secrets";
    const message = `createReceiver: publicKeys cannot be combined with ${other}: leave out one of them.`;
    throw new PostbellError("invalid_option", message, { field: "publicKeys" });
  }
  const keys = [publicKeys].flat().flatMap((key) => readPublicKey(key) ?? []);
  return {
    header: "webhook-signature",
    read,
    verify({ body, header, toleranceMs, now }) {
      const result = verifyAsymmetricSignature({
        body,
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        keys,
        toleranceMs,
        now,
      });
      return result.ok ? undefined : result.code;
    },
  };
}

export function missingOption(option: string): PostbellError {
  return new PostbellError("invalid_option", `createReceiver: ${option} is required.`, { field: option });
}
