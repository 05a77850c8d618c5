/** The form of a signature scheme: how a receiver verifies a request and reads its event. */

import type { HttpResponse } from "../http/types.js";
import type { SignatureProblem } from "../signature/signature.js";

/** A delivery, for hosts that read the raw body themselves. */
export interface ReceivedRequest {
  /** The raw bytes. A string stands for its UTF-8 bytes. */
  readonly body: Uint8Array | string;
  /** Names in any case, as Node and most frameworks have them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** A request to verify, as a {@link WebhookScheme} gets it. */
export interface SignedRequest {
  /** The raw bytes. A string stands for its UTF-8 bytes. */
  readonly body: Uint8Array | string;
  /**
   * Returns a header by its name in lower case. Several headers of one name are joined by `, `, so
   * that a second signature makes the header malformed.
   */
  readonly header: (name: string) => string | undefined;
  /** Largest difference between the time of the signature and now. */
  readonly toleranceMs: number;
  /** Epoch milliseconds. */
  readonly now: number;
}

/**
 * How a sender signs its requests, for the option `verify` of `createReceiver`. `stripe`, `github`,
 * `shopify`, `slack` and `standardWebhooks` return one; write one for any other sender. If one of
 * its functions throws, the request is refused with 400, and the log names the function.
 *
 * @example
 * const acme: WebhookScheme<ProviderEvent> = {
 *   header: "x-acme-signature",
 *   verify: ({ body, header }) => (isGenuine(body, header("x-acme-…")) ? undefined : "no_match"),
 *   read({ body }) {
 *     try {
 *       return JSON.parse(Buffer.from(body).toString());
 *     } catch {
 *       return undefined; // signed, but not JSON
 *     }
 *   },
 * };
 */
export interface WebhookScheme<E extends { readonly id: string }> {
  /** The signature's header, in lower case. It tells a delivery from other requests. */
  readonly header: string;
  /** Returns why the request is refused, or `undefined` if it is genuine and fresh. */
  verify(request: SignedRequest): SignatureProblem | undefined;
  /**
   * Returns the event of a genuine request; `undefined` if it has none. Repetitions are recognised
   * by its `id`, a text of 1 to 256 characters. An event without one is refused.
   */
  read(request: SignedRequest): E | undefined;
  /**
   * Responds to what is no event, such as a challenge. `undefined`: it is an event for `onEvent`.
   */
  respond?(event: E): HttpResponse | undefined;
}

const MAX_ID_LENGTH = 256;

/**
 * True if repetitions of an event can be recognised. A scheme of the host may return any value.
 */
export function hasEventId<E extends { id: string }>(event: E | undefined): event is E {
  const id: unknown = event?.id;
  return typeof id === "string" && id !== "" && id.length <= MAX_ID_LENGTH;
}

/** Creates the view of a request that a scheme gets. */
export const toSignedRequest = (
  { body, headers }: ReceivedRequest,
  { toleranceMs, now }: { toleranceMs: number; now: number },
): SignedRequest => ({
  body,
  header: (name) => readHeader(headers, name),
  toleranceMs,
  now,
});

/** Finds a header whatever its case, without a look at the prototype of the object. */
export function readHeader(headers: ReceivedRequest["headers"], name: string): string | undefined {
  const values = Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value ?? []);
  return values.length === 0 ? undefined : values.join(", ");
}
