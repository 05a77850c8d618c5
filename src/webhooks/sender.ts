/**
 * Builds the requests of attempts, with the headers of the host, and sends them: through the host's
 * function, or the built-in HTTP client.
 */

import { type Clock, callHook, withTimeout } from "../core/clock.js";
import { createOutboundClient } from "../outbound/client.js";
import { createAddressPolicy } from "../outbound/destination-options.js";
import { isResolverOutage } from "../outbound/failure.js";
import { HEADER_NAME, RESERVED_HEADERS } from "../outbound/http-message.js";
import { parseProxy } from "../outbound/proxy.js";
import type {
  OutboundClient,
  OutboundFailure,
  OutboundRequest,
  OutboundResult,
  Send,
} from "../outbound/types.js";
import { asymmetricSignature } from "../signature/asymmetric.js";
import { signatureHeader, standardHeaders } from "../signature/signature.js";
import type { ServiceBase, WebhooksConfig } from "./config/config.js";
import { getRotation } from "./store/records.js";
import type { Claim, WebhookRecord } from "./store.js";
import { toWebhook } from "./webhook.js";

export interface Sender {
  send: Send;
  /** True in an outage of the resolver, and until the deliveries that waited were attempted. */
  isResolverDown: (url: string) => Promise<boolean>;
  /** Closes the built-in client's connections. Sending again opens new ones. */
  close: () => Promise<void>;
}

/** Twice the longest pause of deliveries that wait for the resolver: all were tried by then. */
const OUTAGE_ENDS_MS = 1_800_000;

export function createSender({ config: { delivery, destinations, clock }, telemetry }: ServiceBase): Sender {
  const policy = createAddressPolicy(destinations);
  // Created with the first request, so that a service that never sends holds nothing.
  let client: OutboundClient | undefined;
  const open = (): OutboundClient => {
    client ??= createOutboundClient({
      clock,
      policy,
      ca: destinations.ca && Buffer.from(destinations.ca),
      resolve: destinations.resolve,
      deadlineMs: delivery.deadlineMs,
      proxy: parseProxy(destinations.proxy),
      clientCertificate: destinations.clientCertificate,
      onRepeat: telemetry && (() => telemetry.record("attemptRepeats", 1, {})),
    });
    return client;
  };
  const send = delivery.send
    ? guardSend(delivery.send, clock)
    : (request: OutboundRequest) => open().send(request);
  /** When an attempt last met an outage of the resolver, in monotonic time. */
  let outageAt = Number.NEGATIVE_INFINITY;
  return {
    async send(request) {
      const result = await send(request);
      if (result.kind !== "response" && isResolverOutage(result)) outageAt = clock.monotonic();
      return result;
    },
    async isResolverDown(url) {
      if (clock.monotonic() - outageAt < OUTAGE_ENDS_MS) return true;
      return delivery.send === undefined && open().isResolverDown(url);
    },
    async close() {
      const used = client;
      client = undefined;
      await used?.close();
    },
  };
}

/** The headers that are the same for every attempt. */
export const FIXED_HEADERS = { "content-type": "application/json", "user-agent": "Postbell" } as const;

/** True for headers that every delivery has, or that the client sets itself. */
export const isDeliveryHeader = (name: string): boolean =>
  RESERVED_HEADERS.has(name.toLowerCase()) || /^(?:content-type|user-agent|webhook-.*)$/i.test(name);

/** Lists the headers of an attempt, with `perAttempt` for values that each attempt computes. */
export const listHeaders = (
  { signature }: WebhooksConfig,
  { id, perAttempt }: { id: string; perAttempt: string },
): Record<string, string> => ({
  ...FIXED_HEADERS,
  [signature.header]: perAttempt,
  ...(signature.standardWebhooks && {
    "webhook-id": id,
    "webhook-timestamp": perAttempt,
    "webhook-signature": perAttempt,
  }),
});

/**
 * The secrets that sign now. The first one signs `X-Service-Signature`. During a rotation this is
 * the old one, until the subscriber has had time to learn the new one.
 */
export const listSecrets = (webhook: WebhookRecord, now: number): SigningSecrets => {
  const rotation = getRotation(webhook, now);
  return rotation === null ? [webhook.secret] : [rotation.previousSecret, webhook.secret];
};

type SigningSecrets = readonly [secret: string, ...others: string[]];

/** The content of a signature. `timestamp` in Unix seconds. */
export interface SignedContent {
  id: string;
  timestamp: number;
  body: Buffer;
  secrets: SigningSecrets;
}

/** Returns the headers of a delivery that are the same for every host. */
export function signHeaders(
  { header, standardWebhooks, ed25519 }: WebhooksConfig["signature"],
  content: SignedContent,
): Record<string, string> {
  const { id, timestamp, body, secrets } = content;
  const headers: Record<string, string> = {
    ...FIXED_HEADERS,
    [header]: signatureHeader({ secret: secrets[0], timestamp, body }),
  };
  if (standardWebhooks) {
    const standard = standardHeaders(content);
    const [key] = ed25519;
    if (key !== undefined)
      standard["webhook-signature"] += ` ${asymmetricSignature({ key, id, timestamp, body })}`;
    Object.assign(headers, standard);
  }
  return headers;
}

export function buildRequest(
  { delivery, signature, clock }: WebhooksConfig,
  { webhook, event: { id } }: Claim,
  body: Buffer,
  now: number,
): OutboundRequest {
  const timestamp = Math.floor(clock.now() / 1000);
  return {
    url: webhook.url,
    method: "POST",
    headers: signHeaders(signature, { id, timestamp, body, secrets: listSecrets(webhook, now) }),
    body,
    deadlineMs: delivery.deadlineMs,
    maxBodyBytes: delivery.maxResponseBytes,
  };
}

/**
 * Adds the secret headers of the webhook and those of the host to a signed request. Postbell's own
 * headers replace both, and those of the host replace the webhook's, in whatever case.
 */
export function addHeaders(
  signed: OutboundRequest,
  { headers: secrets }: WebhookRecord,
  host: HostHeaders | null,
): OutboundRequest {
  if (secrets === undefined && host === null) return signed;
  const others = { ...host, ...signed.headers };
  if (secrets === undefined) return { ...signed, headers: others };
  const names = new Set(Object.keys(others).map((name) => name.toLowerCase()));
  const added = Object.entries(secrets).filter(([name]) => !names.has(name));
  return { ...signed, headers: { ...Object.fromEntries(added), ...others } };
}

/** The headers of `delivery.headers` for one attempt, checked. Secret: never log or store them. */
export type HostHeaders = Record<string, string>;

const MAX_HEADERS = 32;
const MAX_NAME_LENGTH = 128;
const MAX_VALUE_LENGTH = 8_192;
const MAX_HEADERS_LENGTH = 16_384;
/** Visible ASCII, with spaces and tabs inside. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;

/** Returns why a header cannot be sent. Names it, but never its value. */
export function findHeaderFault(
  name: string,
  value: unknown,
  { signatureName, maxLength }: { signatureName: string; maxLength: number },
): string | undefined {
  if (name.length > MAX_NAME_LENGTH || !HEADER_NAME.test(name))
    return `a header name must be an RFC 9110 token of at most ${MAX_NAME_LENGTH} characters`;
  const isOurs = isDeliveryHeader(name) || /^proxy-/i.test(name) || name.toLowerCase() === signatureName;
  if (isOurs) return `the header ${name} is set by Postbell: leave it out`;
  if (typeof value === "string" && value.length <= maxLength && HEADER_VALUE.test(value)) return undefined;
  return `the header ${name} must be visible ASCII of at most ${maxLength} characters`;
}

/** False for instances of a class: the headers of a `Headers` or a `Map` are not its properties. */
function isObjectLiteral(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Copies the result of the hook, or returns why it cannot be sent: a text that is safe to log. */
function readHostHeaders(result: unknown, signatureHeaderName: string): HostHeaders | string {
  if (!isObjectLiteral(result)) return "the result must be an object of names and values, {} for no headers";
  const names = Object.keys(result);
  if (names.length > MAX_HEADERS) return `there are more than ${MAX_HEADERS} headers`;
  const headers: [name: string, value: string][] = [];
  const seen = new Set<string>();
  let length = 0;
  for (const name of names) {
    const value = result[name];
    const signatureName = signatureHeaderName.toLowerCase();
    const fault = findHeaderFault(name, value, { signatureName, maxLength: MAX_VALUE_LENGTH });
    if (fault !== undefined) return fault;
    if (seen.has(name.toLowerCase())) return `the header ${name} is there twice, in another case`;
    seen.add(name.toLowerCase());
    length += name.length + (value as string).length;
    headers.push([name, value as string]);
  }
  return length > MAX_HEADERS_LENGTH
    ? `the headers are longer than ${MAX_HEADERS_LENGTH} bytes together`
    : Object.fromEntries(headers);
}

/**
 * Returns a function that calls `delivery.headers` and resolves with the headers, or with `null` if
 * the host threw, timed out or returned an invalid value. `undefined` if the host has no such hook.
 */
export function createHostHeaders({ config: { delivery, limits, signature, clock }, logger }: ServiceBase) {
  const { headers: hook } = delivery;
  if (hook === undefined) return undefined;

  const fail = ({ account, id: webhook }: WebhookRecord, fields: object): null => {
    const message = "delivery.headers failed or returned an invalid value; the delivery waits";
    logger.warn({ account, webhook, ...fields }, message);
    return null;
  };

  return async (record: WebhookRecord): Promise<HostHeaders | null> => {
    try {
      const settled = await callHook(clock, limits.hookMs, () => hook(toWebhook(record)));
      const read = readHostHeaders(settled, signature.header);
      return typeof read === "string" ? fail(record, { problem: read }) : read;
    } catch (error) {
      return fail(record, { error });
    }
  };
}

const LATE = new Error("delivery.send did not return before the deadline.");

/** The time that a host's `send` has to notice the deadline itself. */
const GRACE_MS = 1_000;

const failure = (kind: OutboundFailure["kind"], code: string, message: string): OutboundFailure => ({
  kind,
  code,
  message,
});

const KINDS: Set<unknown> = new Set(["refused", "dns", "connect", "tls", "timeout", "http"]);

/** Returns the headers whose value is a string. */
const readHeaders = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(typeof value === "object" && value !== null ? value : {}).filter(
      (header): header is [string, string] => typeof header[1] === "string",
    ),
  );

/** Returns the result of a host's `send`, or a failure if it is not valid. */
function readResult(value: unknown): OutboundResult {
  const result = (typeof value === "object" && value !== null ? value : {}) as Partial<
    Record<string, unknown>
  >;
  const { kind, status, headers, body, code, message } = result;
  if (kind === "response" && Number.isInteger(status)) {
    return {
      kind,
      status: status as number,
      headers: readHeaders(headers),
      body: body instanceof Uint8Array ? body : new Uint8Array(0),
      complete: result["complete"] === true,
    };
  }
  if (KINDS.has(kind)) return failure(kind as OutboundFailure["kind"], String(code), String(message));
  return failure("http", "SEND_NONSENSE", "delivery.send must return a response or a failure.");
}

/**
 * Wraps the host's `send`. The result never rejects, ends soon after the deadline, and turns
 * invalid values into failures.
 */
export function guardSend(send: Send, clock: Clock): Send {
  return async (request) => {
    try {
      const result = (async () => send(request))();
      return readResult(await withTimeout(clock, request.deadlineMs + GRACE_MS, result, () => LATE));
    } catch (error) {
      return error === LATE
        ? failure("timeout", "DEADLINE", LATE.message)
        : failure("connect", "SEND_THREW", "delivery.send threw.");
    }
  };
}
