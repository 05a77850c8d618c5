/**
 * The error that a route throws. Its response body is WordPress's `{code, message, data: {status,
 * params?, details?}}`.
 */

import type { Json, JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";

export class RestError extends Error {
  override name = "RestError";
  code: string;
  status: number;
  /** Further members of `data`: `params`, `details`, `term_id` … */
  data: JsonObject;
  /** Seconds until a retry makes sense; sent as `Retry-After`. */
  retryAfter: number | undefined;
  /** Sent as `additional_errors`. */
  additional: { code: string; message: string; data: Json }[];

  /**
   * `message` reaches the client: no secrets, and no text of a record that the caller may not read.
   */
  constructor(
    status: number,
    code: string,
    message: string,
    {
      data = {},
      additional = [],
      retryAfter,
    }: {
      data?: JsonObject;
      additional?: RestError["additional"];
      retryAfter?: number;
    } = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.data = data;
    this.additional = additional;
    this.retryAfter = retryAfter;
  }
}

/** Creates a 401 for an anonymous caller, who may sign in and retry, or a 403 for a known one. */
export const refusal = (caller: Caller, code: string, message: string): RestError =>
  new RestError(caller.id === 0 ? 401 : 403, code, message);

/** Returns the first error, with the others as its additional ones. */
export function combineErrors([first, ...others]: RestError[]): RestError {
  const { status, code, message, data } = first as RestError;
  const additional = others.map((error) => ({
    code: error.code,
    message: error.message,
    data: { status: error.status, ...error.data },
  }));
  return new RestError(status, code, message, { data, additional });
}
