/** The signature schemes of other senders: Stripe, GitHub, Shopify, Slack, Standard Webhooks. */

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { PostbellError } from "../core/errors.js";
import { readPublicKey, verifyAsymmetricSignature } from "../signature/asymmetric.js";
import { decodeStandardKey, isSecret, type SignatureProblem, verifyAge } from "../signature/signature.js";
import { isObject, parseBody } from "./notification.js";
import type { SignedRequest, WebhookScheme } from "./scheme.js";

/** An event of another sender, as it arrives. */
export interface ProviderEvent<P = unknown> {
  /** The same in every repetition, and by which repetitions are recognised. */
  readonly id: string;
  /** The event type, as the sender names it: `invoice.paid`, `pull_request`, `orders/paid`. */
  readonly type: string;
  /** The parsed body. */
  readonly payload: P;
}

/** Longer headers are refused unread. */
const MAX_HEADER_LENGTH = 4_096;
/** More signatures than a sender has secrets are an attempt to keep the receiver busy. */
const MAX_SIGNATURES = 10;
const MAX_SECRETS = 10;

const ID = /^[\x21-\x7e]{1,256}$/;
const SECONDS = /^[0-9]{1,15}$/;
const HEX_DIGEST = /^[0-9a-f]{64}$/;
const BASE64_DIGEST = /^[A-Za-z0-9+/]{43}=$/;

/**
 * Verifies webhooks of Stripe: `Stripe-Signature` with its time and any number of `v1`.
 *
 * @param secret the signing secret of the endpoint, `whsec_…`; during a roll, both.
 * @throws `invalid_option` for a secret that is missing.
 *
 * @example
 * const receiver = createReceiver({
 *   verify: stripe<Stripe.Event>(process.env.STRIPE_WEBHOOK_SECRET),
 *   onEvent: async ({ type, payload }) => queue.add(type, payload.data.object),
 * });
 * app.post("/webhooks/stripe", expressAdapter(receiver)); // before any body parser
 */
export function stripe<P = unknown>(
  secret: string | readonly string[] | undefined,
): WebhookScheme<ProviderEvent<P>> {
  const keys = readKeys("stripe", secret);
  return Object.freeze<WebhookScheme<ProviderEvent<P>>>({
    header: "stripe-signature",
    verify(request) {
      const header = readBounded(request, "stripe-signature");
      if (typeof header !== "string") return header.problem;
      const elements = header.split(",").map((element) => element.trim());
      const [time = "", ...otherTimes] = selectValues("t=", elements);
      const signatures = selectValues("v1=", elements).filter((text) => HEX_DIGEST.test(text));
      const isCounted = signatures.length > 0 && signatures.length <= MAX_SIGNATURES;
      if (!SECONDS.test(time) || otherTimes.length > 0 || !isCounted) return "malformed_header";
      const received = signatures.map((text) => Buffer.from(text, "hex"));
      return check(keys, [`${time}.`, request.body], received) ?? checkAge(time, request);
    },
    read(request) {
      const payload = readObject(request);
      return payload && toEvent<P>(payload["id"], payload["type"], payload);
    },
  });
}

/**
 * Verifies webhooks of GitHub: `X-Hub-Signature-256`. The type is `X-GitHub-Event`, the id
 * `X-GitHub-Delivery`, which stays the same when a delivery is sent again.
 *
 * GitHub signs the body only, and no time: who has seen a request can repeat it under another id
 * and another type, which are not signed.
 *
 * @param secret the secret of the webhook; during a change, both.
 * @throws `invalid_option` for a secret that is missing.
 *
 * @example
 * const receiver = createReceiver({ verify: github(process.env.GITHUB_SECRET), onEvent });
 */
export function github<P = unknown>(
  secret: string | readonly string[] | undefined,
): WebhookScheme<ProviderEvent<P>> {
  const keys = readKeys("github", secret);
  return Object.freeze<WebhookScheme<ProviderEvent<P>>>({
    header: "x-hub-signature-256",
    verify: (request) => verifyPrefixed(request, { name: "x-hub-signature-256", prefix: "sha256=", keys }),
    read(request) {
      const payload = readObject(request);
      return (
        payload && toEvent<P>(request.header("x-github-delivery"), request.header("x-github-event"), payload)
      );
    },
  });
}

/**
 * Verifies webhooks of Shopify: `X-Shopify-Hmac-Sha256`. The type is the topic, `orders/paid`, and
 * the id the topic and `X-Shopify-Event-Id`, because events of one action share their id.
 *
 * Shopify signs the body only, and no time: who has seen a request can repeat it under another id
 * and another type, which are not signed.
 *
 * @param secret the client secret of the app; during a rotation, both.
 * @throws `invalid_option` for a secret that is missing.
 *
 * @example
 * const receiver = createReceiver({ verify: shopify(process.env.SHOPIFY_API_SECRET), onEvent });
 */
export function shopify<P = unknown>(
  secret: string | readonly string[] | undefined,
): WebhookScheme<ProviderEvent<P>> {
  const keys = readKeys("shopify", secret);
  return Object.freeze<WebhookScheme<ProviderEvent<P>>>({
    header: "x-shopify-hmac-sha256",
    verify(request) {
      const header = readBounded(request, "x-shopify-hmac-sha256");
      if (typeof header !== "string") return header.problem;
      if (!BASE64_DIGEST.test(header)) return "malformed_header";
      return check(keys, [request.body], [Buffer.from(header, "base64")]);
    },
    read(request) {
      const topic = request.header("x-shopify-topic");
      const id = request.header("x-shopify-event-id") ?? request.header("x-shopify-webhook-id");
      const payload = readObject(request);
      return payload && toEvent<P>(id && `${topic}/${id}`, topic, payload);
    },
  });
}

/**
 * Verifies requests of Slack's Events API: `X-Slack-Signature` of `v0`. Answers the
 * `url_verification` of a new URL itself. The type is that of the inner event, `app_mention`, the
 * id its `event_id`.
 *
 * @param secret the signing secret of the app, not its verification token.
 * @throws `invalid_option` for a secret that is missing.
 *
 * @example
 * const receiver = createReceiver({ verify: slack(process.env.SLACK_SIGNING_SECRET), onEvent });
 */
export function slack<P = unknown>(
  secret: string | readonly string[] | undefined,
): WebhookScheme<ProviderEvent<P>> {
  const keys = readKeys("slack", secret);
  return Object.freeze<WebhookScheme<ProviderEvent<P>>>({
    header: "x-slack-signature",
    verify(request) {
      const time = request.header("x-slack-request-timestamp");
      if (!time) return "missing_header";
      if (!SECONDS.test(time)) return "malformed_header";
      const name = "x-slack-signature";
      return (
        verifyPrefixed(request, { name, prefix: "v0=", keys, before: `v0:${time}:` }) ??
        checkAge(time, request)
      );
    },
    read(request) {
      const payload = readObject(request);
      if (payload === undefined) return undefined;
      const { event, event_id: eventId } = payload;
      const type = isObject(event) ? event["type"] : payload["type"];
      return toEvent<P>(eventId ?? `${String(type)}/${digest(request.body)}`, type, payload);
    },
    respond({ type, payload }) {
      const { challenge } = payload as { challenge?: unknown };
      if (type !== "url_verification" || typeof challenge !== "string") return undefined;
      return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body: challenge };
    },
  });
}

/**
 * Verifies webhooks of any sender that follows Standard Webhooks: Svix, Clerk, Resend, OpenAI, and
 * Postbell with `signature.standardWebhooks`. Takes `v1` with a secret, `whsec_…`, or `v1a` with a
 * public key, `whpk_…`; never both, so that a sender cannot choose the weaker one.
 *
 * @param secret the secret of the endpoint, or several during a rotation; or public keys.
 * @throws `invalid_option` for a secret that is missing or has another form.
 *
 * @example
 * const verify = standardWebhooks(process.env.WEBHOOK_SECRET);
 * const receiver = createReceiver({ verify, onEvent });
 */
export function standardWebhooks<P = unknown>(
  secret: string | readonly string[] | undefined,
): WebhookScheme<ProviderEvent<P>> {
  const list = toList(secret);
  const publicKeys = list.flatMap((text) => readPublicKey(text) ?? []);
  const isAsymmetric = list.length > 0 && publicKeys.length === list.length;
  const keys = isAsymmetric ? [] : readStandardKeys(list);
  return Object.freeze<WebhookScheme<ProviderEvent<P>>>({
    header: "webhook-signature",
    verify(request) {
      const { body, toleranceMs, now } = request;
      const id = request.header("webhook-id");
      const timestamp = request.header("webhook-timestamp");
      const signature = request.header("webhook-signature");
      if (isAsymmetric) {
        const input = { body, id, timestamp, signature, keys: publicKeys, toleranceMs, now };
        const result = verifyAsymmetricSignature(input);
        return result.ok ? undefined : result.code;
      }
      if (!id || !timestamp || !signature) return "missing_header";
      const isLong = signature.length > MAX_HEADER_LENGTH;
      if (isLong || !ID.test(id) || !SECONDS.test(timestamp)) return "malformed_header";
      const received = signature.split(" ").flatMap((entry) => readVersion1(entry) ?? []);
      if (received.length === 0 || received.length > MAX_SIGNATURES) return "malformed_header";
      return check(keys, [`${id}.${timestamp}.`, body], received) ?? checkAge(timestamp, request);
    },
    read(request) {
      const payload = readObject(request);
      const type = payload?.["type"] ?? payload?.["eventType"] ?? "event";
      return payload && toEvent<P>(request.header("webhook-id"), type, payload);
    },
  });
}

const toList = (secret: string | readonly string[] | undefined): unknown[] => {
  const list: unknown[] = Array.isArray(secret) ? secret : [secret];
  return list.length > MAX_SECRETS ? [] : list;
};

function invalidSecret(factory: string, expected: string): PostbellError {
  return new PostbellError("invalid_option", `${factory}: secret must be ${expected}.`, { field: "secret" });
}

/** Copies the secrets, so that later changes of the list have no effect. */
function readKeys(factory: string, secret: string | readonly string[] | undefined): string[] {
  const list = toList(secret);
  if (list.length > 0 && list.every(isSecret)) return [...list];
  throw invalidSecret(factory, `a secret that is not empty, or a list of at most ${MAX_SECRETS}`);
}

function readStandardKeys(list: unknown[]): Buffer[] {
  try {
    if (list.length > 0 && list.every(isSecret)) return list.map(decodeStandardKey);
  } catch {
    // The message must not quote a secret, so it is the same for each fault.
  }
  throw invalidSecret("standardWebhooks", "'whsec_' and Base64, 'whpk_' and Base64, or a list of one kind");
}

const readVersion1 = (entry: string): Buffer | undefined =>
  entry.startsWith("v1,") && BASE64_DIGEST.test(entry.slice(3))
    ? Buffer.from(entry.slice(3), "base64")
    : undefined;

const selectValues = (prefix: string, elements: string[]): string[] =>
  elements.filter((element) => element.startsWith(prefix)).map((element) => element.slice(prefix.length));

/** Returns a header of acceptable length, or the problem with it. */
function readBounded(request: SignedRequest, name: string): string | { problem: SignatureProblem } {
  const header = request.header(name);
  if (!header) return { problem: "missing_header" };
  return header.length > MAX_HEADER_LENGTH ? { problem: "malformed_header" } : header;
}

/** Verifies one hexadecimal signature behind a prefix. */
function verifyPrefixed(
  request: SignedRequest,
  { name, prefix, keys, before = "" }: { name: string; prefix: string; keys: string[]; before?: string },
): SignatureProblem | undefined {
  const header = readBounded(request, name);
  if (typeof header !== "string") return header.problem;
  const signature = header.startsWith(prefix) ? header.slice(prefix.length) : "";
  if (!HEX_DIGEST.test(signature)) return "malformed_header";
  return check(keys, [before, request.body], [Buffer.from(signature, "hex")]);
}

/** Compares in constant time, each key with each signature, whichever matches. */
function check(
  keys: (string | Buffer)[],
  parts: (Uint8Array | string)[],
  received: Buffer[],
): SignatureProblem | undefined {
  let isMatch = false;
  for (const key of keys) {
    const hmac = createHmac("sha256", key);
    for (const part of parts) hmac.update(part);
    const expected = hmac.digest();
    for (const signature of received) isMatch = timingSafeEqual(expected, signature) || isMatch;
  }
  return isMatch ? undefined : "no_match";
}

function checkAge(seconds: string, request: SignedRequest): SignatureProblem | undefined {
  const result = verifyAge(Number(seconds), request);
  return result.ok ? undefined : result.code;
}

const digest = (body: Uint8Array | string): string => createHash("sha256").update(body).digest("hex");

/** Parses the body, also the form that GitHub can send JSON in. */
function readObject(request: SignedRequest): Record<string, unknown> | undefined {
  const isForm = request
    .header("content-type")
    ?.toLowerCase()
    .startsWith("application/x-www-form-urlencoded");
  const text = isForm
    ? new URLSearchParams(Buffer.from(request.body as Uint8Array).toString()).get("payload")
    : request.body;
  const parsed = text === null ? undefined : parseBody(text);
  return isObject(parsed) && !Array.isArray(parsed) ? parsed : undefined;
}

/** Returns the event, unless the sender has left out its id or its type. */
const toEvent = <P>(id: unknown, type: unknown, payload: object): ProviderEvent<P> | undefined =>
  typeof id === "string" && ID.test(id) && typeof type === "string" && ID.test(type)
    ? { id, type, payload: payload as P }
    : undefined;
