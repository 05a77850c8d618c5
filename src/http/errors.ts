/** The error a route throws to answer with a status; the service turns it into its own error body. */

export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: number;
  /** Stable and documented by the service; for programs. */
  readonly code: string;
  /** The field of the request at fault. */
  readonly field: string | undefined;
  /** Sent with the answer, names in lower case: `allow`, `retry-after` … */
  readonly headers: Readonly<Record<string, string>>;

  /** `message` reaches the client: nothing of its body, no secret. */
  constructor(
    status: number,
    code: string,
    message: string,
    details: {
      field?: string | undefined;
      headers?: Readonly<Record<string, string>> | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.status = status;
    this.code = code;
    this.field = details.field;
    this.headers = details.headers ?? {};
  }
}
