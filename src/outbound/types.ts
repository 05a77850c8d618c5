/** What the outbound client takes and gives. A host may put its own {@link Send} in its place. */

/** One request to an endpoint. */
export interface OutboundRequest {
  readonly url: string;
  readonly method: "GET" | "POST";
  /**
   * Sent as they are, beside those of the client: `host`, `connection`, `content-length` and `accept-encoding: identity`. The
   * built-in client refuses these names, and others that decide about the connection or the framing of the body.
   */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  /**
   * Milliseconds for everything: DNS, connect, TLS, request, and the last byte read of the response. The built-in
   * client may be up to 50 ms late, because all its requests share one timer.
   */
  readonly deadlineMs: number;
  /** Bytes of the response body to read at most; the connection is destroyed beyond them. */
  readonly maxBodyBytes: number;
}

/** What came of a request: an answer, or why there is none. */
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

/** Takes a response as it comes, so that it need not fit into memory. */
export interface ResponseReceiver {
  /** Called once, before any data. Must not throw. */
  readonly onHead: (head: {
    readonly status: number;
    readonly headers: OutboundResponse["headers"];
    /** Lets data come again; does nothing after the exchange. */
    readonly resume: () => void;
    /** Ends the exchange and drops the connection; does nothing after the exchange. */
    readonly stop: () => void;
  }) => void;
  /** At most `maxBodyBytes` in all. `false`: no more until `resume` is called. Must not throw. */
  readonly onData: (chunk: Uint8Array) => boolean;
}

export interface OutboundClient {
  /** With a receiver, the `body` of the result is empty. */
  readonly send: (request: OutboundRequest, receiver?: ResponseReceiver) => Promise<OutboundResult>;
  /** Closes idle connections and destroys the others. Later sends fail with `connect`. */
  close(): Promise<void>;
}
