/** What a client gives with a request: the parameters of its query and its body, read into plain objects. Knows no argument. */

import { isPostbellError } from "../../core/errors.js";
import { type ReadOptions, readBytes, readJson, refuseCoded } from "../../http/body.js";
import { HttpError } from "../../http/errors.js";
import type { HttpRequest } from "../../http/types.js";
import { checkJsonLimits } from "../../schema/json-limits.js";
import { parseQuery } from "../../schema/query-string.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { RestError } from "./error.js";
import type { PathParameters } from "./route-tree.js";

const NOTHING: JsonObject = Object.freeze(Object.create(null));

/**
 * The largest body that GET and DELETE take, and that anybody takes who is not signed in. WordPress's clients send their arguments in the query there,
 * seldom as JSON; 64 KiB are four times as much as Node takes in a URL.
 */
export const SMALL_BODY_BYTES = 65_536;

/** Characters of a query string; Node's own limit of a request's head is 16 KiB, other hosts may take more. */
const MAX_QUERY = 131_072;

/** Errors: RestError 400 `rest_invalid_query` for a query string that is too long, and as `readForm`. */
export function readQuery(text: string): JsonObject {
  if (text.length <= MAX_QUERY) return readForm(text);
  throw new RestError(400, "rest_invalid_query", `The query has at most ${MAX_QUERY} characters.`);
}

/** Errors: RestError 400 `rest_invalid_query` above the bounds of `parseQuery`. */
function readForm(text: string): JsonObject {
  if (text === "") return NOTHING;
  const result = parseQuery(text);
  if (result.ok) return result.values;
  throw new RestError(400, "rest_invalid_query", result.problem.message);
}

/**
 * The parameters in the body: the members of a JSON object or of a form. An empty body has none; a JSON value that is no object is refused with `noObject`.
 * With GET and HEAD only JSON is looked at, as in the reference.
 *
 * Errors: RestError 400 `rest_invalid_json`, also for JSON too deep or too large to be walked; 400 `rest_invalid_query` for such a form; 413
 * `rest_body_too_large`; 415 `rest_unsupported_media_type` for a body that is neither JSON in UTF-8 nor a form, or has a content coding;
 * 400 `rest_request_aborted`; 408 `rest_request_timeout`. PostbellError `raw_body_unavailable`.
 */
export async function readBody(
  request: Pick<HttpRequest, "method" | "body" | "headers" | "signal">,
  { noObject = noJsonObject, ...options }: ReadOptions & { readonly noObject?: () => RestError },
): Promise<JsonObject> {
  const { body, headers, method } = request;
  if (body === null) return NOTHING;
  const type = (headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase();
  const isForm = type === "application/x-www-form-urlencoded";
  if ((method === "GET" || method === "HEAD") && !type?.endsWith("json")) return NOTHING;
  try {
    if ("parsed" in body) {
      if ((body.parsed ?? null) === null && Number(headers["content-length"] ?? 0) === 0) return NOTHING;
      return readObject(isForm ? body.parsed : await readJson(request, options), noObject);
    }
    const bytes = await readBytes(request, options);
    if (bytes.length === 0) return NOTHING;
    if (isForm) {
      refuseCoded(headers);
      return readForm(new TextDecoder().decode(bytes));
    }
    return readObject(await readJson({ headers, body: bytes }, options), noObject);
  } catch (error) {
    throw isPostbellError(error) ? error : translated(error);
  }
}

/**
 * For a route that reads its body itself, before it does.
 *
 * Errors: RestError 415 `rest_unsupported_media_type` for a body with a content coding.
 */
export function refuseCodedBody({ headers }: Pick<HttpRequest, "headers">): void {
  try {
    refuseCoded(headers);
  } catch (error) {
    throw translated(error);
  }
}

/**
 * The members of a JSON object, without prototype. Checked, so that what comes after may walk them.
 *
 * Errors: what `noObject` makes for any other value; RestError 400 `rest_invalid_json` for a value too deep or too large.
 */
export function readObject(value: unknown, noObject: () => RestError = noJsonObject): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw noObject();
  const problem = checkJsonLimits(value);
  if (problem !== undefined) throw invalidJson(1, problem.message);
  return mergeParameters(value as JsonObject, NOTHING);
}

/** The error for a JSON body that is no object. */
export const noJsonObject = (): RestError => invalidJson(4, "The body must be a JSON object.");

/** The numbers are PHP's, which the reference answers. */
function invalidJson(number: number, reason: string): RestError {
  return new RestError(400, "rest_invalid_json", "Invalid JSON body passed.", {
    data: { json_error_code: number, json_error_message: reason },
  });
}

const CODES: { readonly [code: string]: string } = {
  body_too_large: "rest_body_too_large",
  unsupported_media_type: "rest_unsupported_media_type",
  request_aborted: "rest_request_aborted",
  request_timeout: "rest_request_timeout",
};

function translated(error: unknown): unknown {
  if (!(error instanceof HttpError)) return error;
  const code = CODES[error.code];
  return code === undefined
    ? invalidJson(4, "Syntax error")
    : new RestError(error.status, code, error.message);
}

/** One over the other; `null` does not hide a value below it. Without prototype. */
export function mergeParameters(over: JsonObject, under: JsonObject): JsonObject {
  const all: Record<string, Json> = Object.create(null);
  for (const name of Object.keys(under)) all[name] = under[name] as Json;
  for (const name of Object.keys(over)) {
    const value = over[name] as Json;
    if (value !== null || !(name in all)) all[name] = value;
  }
  return all;
}

/**
 * The path alone says which record is meant. The same value given again is ignored, any other is refused.
 *
 * Errors: RestError 400 `rest_invalid_param`, naming the parameters.
 */
export function refuseOtherIds(parameters: PathParameters, sources: readonly JsonObject[]): void {
  const params: Record<string, Json> = Object.create(null);
  const details: Record<string, Json> = Object.create(null);
  for (const [name, inPath] of Object.entries(parameters)) {
    const other = sources.map((source) => source[name] ?? inPath).find((given) => !isSame(given, inPath));
    if (other === undefined) continue;
    const type = typeof inPath === "string" ? "string" : "integer";
    const isType = type === "string" ? typeof other === "string" : isInteger(other);
    const message = isType ? `${name} is not that of the path.` : `${name} is not of type ${type}.`;
    params[name] = message;
    details[name] = { code: isType ? "rest_invalid_param" : "rest_invalid_type", message, data: null };
  }
  if (Object.keys(params).length > 0) throw invalidParams(params, details);
}

const isInteger = (given: Json): boolean =>
  Number.isInteger(given) || (typeof given === "string" && /^-?[0-9]{1,16}$/.test(given));

const isSame = (given: Json, inPath: number | string): boolean =>
  given === inPath || (typeof inPath === "number" && isInteger(given) && Number(given) === inPath);

/** `details`: by parameter, in the reference's form. */
export function invalidParams(params: JsonObject, details: JsonObject): RestError {
  return new RestError(400, "rest_invalid_param", `Invalid parameter(s): ${Object.keys(params).join(", ")}`, {
    data: { params, details },
  });
}
