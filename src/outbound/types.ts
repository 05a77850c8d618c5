/** The types of the outbound client. A host may replace {@link Send}. */

/** One request to an endpoint. */
export interface OutboundRequest {
  readonly url: string;
  readonly method: "GET" | "POST";
  /**
   * Sent unchanged, in addition to those of the client: `host`, `connection`, `content-length` and
   * `accept-encoding: identity`. The built-in client refuses these names, and others that decide
   * about the connection or the framing of the body.
   */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  /**
   * Milliseconds for the whole exchange: DNS, connect, TLS, request, and the last byte read of the
   * response. The built-in client may be up to 50 ms late, because all its requests share one
   * timer.
   */
  readonly deadlineMs: number;
  /**
   * The maximum number of bytes to read of the response body; the connection is destroyed after
   * them.
   */
  readonly maxBodyBytes: number;
  /**
   * Sends the body slowly, in eight parts with this many milliseconds between them, to test how the
   * endpoint deals with it. Its connection is not used again. Default: all at once.
   */
  readonly bodyPauseMs?: number | undefined;
}

/** The result of a request. */
export type OutboundResult = OutboundResponse | OutboundFailure;

/**
 * A response: its status line was received. The rest may have been cut off by the size limit or the
 * deadline, because the status alone decides.
 */
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

/** A failure: no status line was received. */
export interface OutboundFailure {
  /**
   * `refused`: by the address policy; no socket was opened to that address. `dns`: the name did not
   * resolve; with the code `RESOLVER_UNAVAILABLE` no name does, and no attempt is counted.
   * `connect`: no connection. `tls`: the certificate or the handshake. `timeout`: the deadline.
   * `http`: the bytes are not an HTTP response, or the head was cut off.
   */
  readonly kind: "refused" | "dns" | "connect" | "tls" | "timeout" | "http";
  /** A short stable code (`ECONNREFUSED`, `R5`, `CERT_HAS_EXPIRED` …), safe to log. */
  readonly code: string;
  /** One sentence for a person, without secrets and without parts of a body. */
  readonly message: string;
}

/**
 * Sends one request and resolves with the response or the failure. Never rejects or follows a
 * redirect.
 */
export type Send = (request: OutboundRequest) => Promise<OutboundResult>;

/** Receives a response as a stream, so that it need not fit into memory. */
export interface ResponseReceiver {
  /** Called once, before any data. Must not throw. */
  onHead: (head: {
    status: number;
    headers: OutboundResponse["headers"];
    /** Resumes the data; does nothing after the exchange. */
    resume: () => void;
    /** Ends the exchange and drops the connection; does nothing after the exchange. */
    stop: () => void;
  }) => void;
  /**
   * Receives at most `maxBodyBytes` in total. Return `false` to pause until `resume` is called.
   * Must not throw.
   */
  onData: (chunk: Uint8Array) => boolean;
}

export interface OutboundClient {
  /** With a receiver, the `body` of the result is empty. */
  send: (request: OutboundRequest, receiver?: ResponseReceiver) => Promise<OutboundResult>;
  /** Looks the name of a URL up. Resolves with true in an outage of the resolver. Never rejects. */
  isResolverDown: (url: string) => Promise<boolean>;
  /** Closes idle connections and destroys the others. Later sends fail with `connect`. */
  close(): Promise<void>;
}
