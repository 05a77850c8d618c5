/** The HTTP values that every service speaks and every adapter translates. No framework type may appear here. */

/** A request as plain data. */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** The path below the mount point as the client sent it, still percent-encoded, with its leading slash and without the query. */
  readonly path: string;
  /** What follows the first `?`, still encoded; empty where there is none. */
  readonly query: string;
  /** Names in lower case; several values of one name are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RequestBody;
  /** Absolute URL of the mount point as the client addressed it, without a trailing slash: `https://api.example.com/hooks`. */
  readonly baseUrl: string;
  /** Aborts when the client leaves. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The bytes, all at once or streamed; or, where a body parser of the host has consumed them, the value it made of them.
 * A route that needs the raw bytes refuses a {@link ParsedBody}.
 */
export type RequestBody = Uint8Array | ReadableBody | ParsedBody | null;

/** A stream of bytes, read at most once. A Node `Readable` and a web `ReadableStream` both fit. */
export type ReadableBody = AsyncIterable<Uint8Array>;

/** A body that a parser of the host has read already: its value, without its bytes. */
export interface ParsedBody {
  readonly parsed: unknown;
}

/** A response as plain data. Names of headers in lower case; a list gives several headers of that name. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Uint8Array | string | ReadableBody | null;
}

/** Answers a request, or says with `undefined` that the path is not its own, and the host goes on. Never rejects. */
export type Handler = (request: HttpRequest) => Promise<HttpResponse | undefined>;

/** The same, without a promise where the response is ready. Never throws. */
export type DirectHandler = (
  request: HttpRequest,
) => HttpResponse | undefined | Promise<HttpResponse | undefined>;

/** What an adapter mounts. */
export interface Service {
  readonly handle: DirectHandler;
  /** Begins background work. Calling it again changes nothing. */
  start?(): Promise<void>;
  /** Ends background work, giving what is under way `graceMs` to finish. Calling it again changes nothing. */
  stop?(options?: { readonly graceMs?: number | undefined }): Promise<void>;
}
