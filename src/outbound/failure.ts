/** Classifies errors before a status line as kinds of {@link OutboundFailure}. */

import type { AddressRefusal } from "./address-policy.js";
import type { OutboundFailure } from "./types.js";

/**
 * The phase of an exchange. `proxy` ends when the proxy has opened a tunnel. `http` begins when the
 * connection is open and its certificate is verified.
 */
export type Phase = "dns" | "connect" | "proxy" | "tls" | "http";

const FAILED_IN: Record<Phase, string> = {
  dns: "The host name could not be resolved",
  connect: "No connection to the endpoint could be opened",
  proxy: "The proxy opened no connection to the endpoint",
  tls: "The endpoint's certificate or TLS handshake is not acceptable",
  http: "The endpoint did not give a valid HTTP response",
};

const LATE_IN: Record<Phase, string> = {
  dns: "while its name was resolved",
  connect: "while the connection was opened",
  proxy: "while the proxy opened the connection",
  tls: "during the TLS handshake",
  http: "before the head of a response was complete",
};

/**
 * The code of a name that could not be resolved because of an outage of the resolver. It says
 * nothing about the endpoint.
 */
export const RESOLVER_UNAVAILABLE = "RESOLVER_UNAVAILABLE";

export const isResolverOutage = (failure: { kind: string; code?: unknown }): boolean =>
  failure.kind === "dns" && failure.code === RESOLVER_UNAVAILABLE;

/** The form of codes of Node, OpenSSL and c-ares. Other texts are not safe to log. */
const SAFE_CODE = /^[A-Z][A-Z0-9_]{1,63}$/;

/** With TLS 1.3, the endpoint's refusal of the handshake can arrive after the request was sent. */
const TLS_CODE = /^ERR_(?:SSL|TLS)_/;

/**
 * Returns the failure for an error in a phase. Accepts any value that can be thrown. The message
 * contains fixed words and the error's `code`, never the error's message, which can repeat bytes of
 * the endpoint. The code of a failure at the proxy begins with `PROXY_`, and its kind is `connect`.
 */
export function classifyError(error: unknown, phase: Phase): OutboundFailure {
  const found = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  const fallback = phase === "http" ? "BAD_RESPONSE" : "UNKNOWN";
  const code = typeof found === "string" && SAFE_CODE.test(found) ? found : fallback;
  if (phase === "proxy") return toProxyFailure(code);
  const kind = TLS_CODE.test(code) ? "tls" : phase;
  return Object.freeze({ kind, code, message: `${FAILED_IN[kind]} (${code}).` });
}

/** @param code of an error, or the problem with the response: `407`, `RESPONSE`, `CLOSED`. */
export function toProxyFailure(code: string): OutboundFailure {
  return Object.freeze({
    kind: "connect",
    code: `PROXY_${code}`,
    message: `${FAILED_IN.proxy} (PROXY_${code}).`,
  });
}

export function deadlineFailure(phase: Phase, deadlineMs: number): OutboundFailure {
  const message = `The endpoint ran into the deadline of ${deadlineMs} ms ${LATE_IN[phase]}.`;
  return Object.freeze({ kind: "timeout", code: "DEADLINE", message });
}

export function refusalFailure({ rule, message }: AddressRefusal): OutboundFailure {
  return Object.freeze({ kind: "refused", code: rule, message });
}

export const clientClosed: OutboundFailure = Object.freeze({
  kind: "connect",
  code: "CLIENT_CLOSED",
  message: "The outbound client was closed.",
});

export const unsendableHeader: OutboundFailure = Object.freeze({
  kind: "http",
  code: "INVALID_HEADER",
  message:
    "The request has a header that HTTP cannot carry, or that only the client may set. Nothing was sent.",
});
