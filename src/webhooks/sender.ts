/** Sends the requests of attempts: through the host's function, or the built-in HTTP client. */

import { type Clock, withTimeout } from "../core/clock.js";
import { createOutboundClient } from "../outbound/client.js";
import { createAddressPolicy } from "../outbound/destination-options.js";
import { parseProxy } from "../outbound/proxy.js";
import type { OutboundClient, OutboundFailure, OutboundResult, Send } from "../outbound/types.js";
import type { WebhooksConfig } from "./config/config.js";

export interface Sender {
  readonly send: Send;
  /** Closes the built-in client's connections. Sending again opens new ones. */
  readonly close: () => Promise<void>;
}

export function createSender({ delivery, destinations, clock }: WebhooksConfig): Sender {
  const policy = createAddressPolicy(destinations);
  // Created with the first request, so that a service that never sends holds nothing.
  let client: OutboundClient | undefined;
  const sendThroughClient: Send = (request) => {
    client ??= createOutboundClient({
      clock,
      policy,
      ca: destinations.ca && Buffer.from(destinations.ca),
      resolve: destinations.resolve,
      proxy: parseProxy(destinations.proxy),
      clientCertificate: destinations.clientCertificate,
    });
    return client.send(request);
  };
  return {
    send: delivery.send ? guardSend(delivery.send, clock) : sendThroughClient,
    async close() {
      const used = client;
      client = undefined;
      await used?.close();
    },
  };
}

/** The time that a host's `send` has to notice the deadline itself. */
const GRACE_MS = 1_000;

const failure = (kind: OutboundFailure["kind"], code: string, message: string): OutboundFailure => ({
  kind,
  code,
  message,
});

const KINDS: ReadonlySet<unknown> = new Set(["refused", "dns", "connect", "tls", "timeout", "http"]);

/** Returns the headers whose value is a string. */
const readHeaders = (given: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(typeof given === "object" && given !== null ? given : {}).filter(
      (header): header is [string, string] => typeof header[1] === "string",
    ),
  );

/** Returns the result of a host's `send`, or a failure if it is not valid. */
function readResult(given: unknown): OutboundResult {
  const result = (typeof given === "object" && given !== null ? given : {}) as Partial<
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
      const late = (): Error => new Error("deadline");
      return readResult(await withTimeout(clock, request.deadlineMs + GRACE_MS, result, late));
    } catch (error) {
      return error instanceof Error && error.message === "deadline"
        ? failure("timeout", "DEADLINE", "delivery.send did not return before the deadline.")
        : failure("connect", "SEND_THREW", "delivery.send threw.");
    }
  };
}
