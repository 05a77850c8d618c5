/** The HTTP types between services and adapters. No framework type may appear here. */

/** A request as plain data. */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /**
   * The path below the mount point, with its leading slash, without the query, still
   * percent-encoded.
   */
  readonly path: string;
  /** The text after the first `?`, still encoded; empty if the URL has no query. */
  readonly query: string;
  /** Names in lower case; several values of one name are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RequestBody;
  /**
   * The absolute URL of the mount point as the client addressed it, without a trailing slash:
   * `https://api.example.com/hooks`.
   */
  readonly baseUrl: string;
  /**
   * True if a route of the host, such as `app.post("/webhooks/in", …)`, has matched the whole path.
   */
  readonly isRouted?: boolean | undefined;
  /** Aborts when the client leaves. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The request of the host's framework, with its session and user. Services pass it on to the
   * host's hooks and never read it. Each adapter has a function that returns it with its type, such
   * as `expressRequest`.
   */
  readonly hostRequest?: object | undefined;
}

/**
 * The bytes, at once or as a stream; or the value that a body parser of the host has parsed from
 * them. A route that needs the raw bytes refuses a {@link ParsedBody}.
 */
export type RequestBody = Uint8Array | ReadableBody | ParsedBody | null;

/** A stream of bytes, read at most once. A Node `Readable` and a web `ReadableStream` both fit. */
export type ReadableBody = AsyncIterable<Uint8Array>;

/** A body that a parser of the host has already read: its value, without its bytes. */
export interface ParsedBody {
  readonly parsed: unknown;
}

/**
 * A response as plain data. Header names are in lower case; a list sends several headers of that
 * name.
 */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Uint8Array | string | ReadableBody | null;
}

/**
 * Handles a request. Resolves with `undefined` if the path is not the service's: the host then
 * handles the request. Never rejects.
 */
export type Handler = (request: HttpRequest) => Promise<HttpResponse | undefined>;

/** Like {@link Handler}, but returns a response without a promise if it is ready. Never throws. */
export type DirectHandler = (
  request: HttpRequest,
) => HttpResponse | undefined | Promise<HttpResponse | undefined>;

/** A service that an adapter mounts. */
export interface Service {
  readonly handle: DirectHandler;
  /** Starts background work. Calling it again changes nothing. */
  start?(): Promise<void>;
  /**
   * Stops background work, and gives running work `graceMs` to finish. Calling it again changes
   * nothing.
   */
  stop?(options?: { graceMs?: number | undefined }): Promise<void>;
}
