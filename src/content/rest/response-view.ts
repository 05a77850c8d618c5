/**
 * The form in which the client wants the response: `_fields`, `_embed`, `_envelope`, `_pretty`,
 * `_jsonp`.
 */

import type { HttpRequest } from "../../http/types.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { type Caller, isAnonymous } from "../auth/caller.js";
import { RestError } from "./error.js";
import { refuseLongSelection } from "./field-selection.js";
import { isCallback, JSON_TYPE, JSONP_TYPE } from "./response-headers.js";
import type { RouteOutcome } from "./types.js";

export interface ResponseView {
  readonly fields: Json | undefined;
  readonly embed: Json | undefined;
  readonly isEnveloped: boolean;
  readonly isPretty: boolean;
  readonly callback: string | undefined;
}

export const PLAIN_VIEW: ResponseView = {
  fields: undefined,
  embed: undefined,
  isEnveloped: false,
  isPretty: false,
  callback: undefined,
};

/**
 * Returns `PLAIN_VIEW` itself where the client wants nothing special. `fields`: the `_fields` that
 * count, from the query or the body.
 *
 * @throws RestError 400 `rest_invalid_param` for a selection that is too long
 */
export function parseView(query: JsonObject, fields: Json | undefined): ResponseView {
  refuseLongSelection(fields, "_fields");
  refuseLongSelection(query["_embed"], "_embed");
  const view = {
    fields,
    embed: query["_embed"],
    isEnveloped: query["_envelope"] !== undefined,
    isPretty: query["_pretty"] !== undefined,
    callback: parseCallback(query["_jsonp"]),
  };
  const isPlain = fields === undefined && view.embed === undefined && view.callback === undefined;
  return isPlain && !view.isEnveloped && !view.isPretty ? PLAIN_VIEW : view;
}

/**
 * A value that is not a string becomes its JSON, which is not a valid name and is refused later.
 */
function parseCallback(given: Json | undefined): string | undefined {
  if (given === undefined || given === "") return undefined;
  return typeof given === "string" ? given : JSON.stringify(given);
}

/** The code of the error that WordPress sends as a script, without `data`. */
export const INVALID_CALLBACK = "rest_callback_invalid";

/**
 * @throws RestError 400 `rest_callback_disabled` unless the request is an anonymous GET,
 *   `rest_callback_invalid`
 */
export function refuseCallback(callback: string, { method }: HttpRequest, caller: Caller): void {
  if (!isAnonymous(caller) || (method !== "GET" && method !== "HEAD")) {
    throw new RestError(
      400,
      "rest_callback_disabled",
      "A callback is only called with the response to an anonymous GET.",
    );
  }
  if (!isCallback(callback))
    throw new RestError(400, INVALID_CALLBACK, "Invalid JSONP callback export function.");
}

/** True if the outcome is sent as the document it is, with nothing around it. */
export const isDocument = ({ body }: RouteOutcome, { isEnveloped, callback }: ResponseView): boolean =>
  "text" in body && !isEnveloped && callback === undefined;

export function getContentType(outcome: RouteOutcome, view: ResponseView): string {
  if ("text" in outcome.body && isDocument(outcome, view)) return outcome.body.type;
  return view.callback === undefined ? JSON_TYPE : JSONP_TYPE;
}
