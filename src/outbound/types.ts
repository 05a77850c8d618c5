/** What the outbound client takes and gives. A host may put its own {@link Send} in its place. */

export interface OutboundRequest {
  readonly url: string;
  readonly method: "GET" | "POST";
  /** Sent as they are, beside `host`, `content-length` and `accept-encoding: identity`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  /** Milliseconds for everything: DNS, connect, TLS, request, and the last byte read of the response. */
  readonly deadlineMs: number;
  /** Bytes of the response body to read at most; the connection is destroyed beyond them. */
  readonly maxBodyBytes: number;
}

export type OutboundResult = OutboundResponse | OutboundFailure;

/** A status line was read. What came after it may have been cut off by the byte cap or the deadline: the status already decides. */
export interface OutboundResponse {
  readonly kind: "response";
  readonly status: number;
  /** Names in lower case; several values of one name are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** At most `maxBodyBytes`, never decompressed. */
  readonly body: Uint8Array;
  /** False where the body was not read to its end. */
  readonly complete: boolean;
}

/** No status line was read. */
export interface OutboundFailure {
  /**
   * `refused`: by the address policy, no socket was opened to that address. `dns`: the name did not resolve. `connect`: no connection.
   * `tls`: the certificate or the handshake. `timeout`: the deadline. `http`: what came back is no HTTP response, or was cut off in its head.
   */
  readonly kind: "refused" | "dns" | "connect" | "tls" | "timeout" | "http";
  /** A short stable word (`ECONNREFUSED`, `R5`, `CERT_HAS_EXPIRED` …), safe to log. */
  readonly code: string;
  /** One sentence for a person; holds no secret and nothing of a body. */
  readonly message: string;
}

/** Sends one request and says what came of it. Never rejects, never follows a redirect, never retries. */
export type Send = (request: OutboundRequest) => Promise<OutboundResult>;

export interface OutboundClient {
  readonly send: Send;
  /** Closes idle connections and destroys the others. Later sends fail with `connect`. */
  close(): Promise<void>;
}
