/** The error that a row of the route table throws; answered in the reference's form `{code, message, data: {status, params?, details?}}`. */

import type { Json, JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";

export class RestError extends Error {
  override readonly name = "RestError";
  readonly code: string;
  readonly status: number;
  /** Further members of `data`: `params`, `details`, `term_id` … */
  readonly data: JsonObject;
  /** Seconds after which it is worth trying again; answered as `Retry-After`. */
  readonly retryAfter: number | undefined;
  /** Answered as `additional_errors`. */
  readonly additional: readonly { readonly code: string; readonly message: string; readonly data: Json }[];

  /** `message` reaches the client: no secret, no text of a record he may not read. */
  constructor(
    status: number,
    code: string,
    message: string,
    {
      data = {},
      additional = [],
      retryAfter,
    }: {
      readonly data?: JsonObject;
      readonly additional?: RestError["additional"];
      readonly retryAfter?: number;
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

/** 401 asks an anonymous caller to say who he is; 403 tells a known one that it does not help. */
export const refusal = (caller: Caller, code: string, message: string): RestError =>
  new RestError(caller.id === 0 ? 401 : 403, code, message);
