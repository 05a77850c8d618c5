/**
 * Reads the parameters in the query and the body of a request into plain objects, and builds the
 * request that the functions of an endpoint receive from them.
 */

import { isPostbellError } from "../../core/errors.js";
import { type BodyRequest, type ReadOptions, readBytes, readJson, refuseCoded } from "../../http/body.js";
import { HttpError } from "../../http/errors.js";
import type { HttpRequest } from "../../http/types.js";
import { validateArguments } from "../../schema/arguments.js";
import { checkJsonLimits } from "../../schema/json-limits.js";
import { parseQuery } from "../../schema/query-string.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { RestError } from "./error.js";
import { readFields } from "./multipart.js";
import type { Method, PathParameters, RestEndpoint, RestRequest, RouteCall } from "./types.js";

const NOTHING: JsonObject = Object.freeze(Object.create(null));

/**
 * The largest body for GET and DELETE, and for anonymous callers. WordPress's clients send such
 * arguments in the query, seldom as JSON. 64 KiB are four times what Node accepts in a URL.
 */
export const SMALL_BODY_BYTES = 65_536;

/** In characters. Node accepts 16 KiB in the head of a request; other hosts may accept more. */
const MAX_QUERY = 131_072;

/**
 * @throws RestError 400 `rest_invalid_query` if the query is too long or exceeds the bounds of
 * `parseQuery`
 */
export function readQuery(text: string): JsonObject {
  if (text.length <= MAX_QUERY) return readForm(text);
  throw new RestError(400, "rest_invalid_query", `The query has at most ${MAX_QUERY} characters.`);
}

/** @throws RestError 400 `rest_invalid_query` above the bounds of `parseQuery` */
function readForm(text: string): JsonObject {
  if (text === "") return NOTHING;
  const result = parseQuery(text);
  if (result.ok) return result.values;
  throw new RestError(400, "rest_invalid_query", result.problem.message);
}

/** Only POST may stand for another method: a link or an image must not change anything. */
export function readMethod({ method, headers }: HttpRequest, query: JsonObject): string {
  if (method === "HEAD") return "GET";
  if (method !== "POST") return method;
  const override = readOverride(headers, query);
  return override === "" ? method : override === "HEAD" ? "GET" : override;
}

/** True for a `POST` that asks to be treated as `HEAD`, whose response has no body. */
export const isHeadOverride = ({ method, headers }: HttpRequest, query: JsonObject): boolean =>
  method === "POST" && readOverride(headers, query) === "HEAD";

function readOverride(headers: HttpRequest["headers"], query: JsonObject): string {
  const inQuery = query["_method"];
  return (typeof inQuery === "string" ? inQuery : (headers["x-http-method-override"] ?? "")).toUpperCase();
}

/**
 * Reads the parameters in the body: the members of a JSON object or of a form.
 *
 * An empty body has none. For GET and HEAD only JSON counts, as in WordPress. `noObject` creates
 * the error for a JSON value that is not an object.
 *
 * @throws RestError 400 `rest_invalid_json`, also for JSON that is too deep or too large; 400
 *   `rest_invalid_query` for such a form; 400 `rest_invalid_multipart` for a malformed one or one
 *   with a file; 400 `rest_request_aborted`; 408 `rest_request_timeout`;
 *   413 `rest_body_too_large`; 415 `rest_unsupported_media_type` for a body that is neither JSON in
 *   UTF-8 nor a form, or has a content coding
 * @throws PostbellError `raw_body_unavailable`
 */
export async function readBody(
  request: BodyRequest & { method: string },
  { noObject = noJsonObject, ...options }: ReadOptions & { noObject?: (() => RestError) | undefined },
): Promise<JsonObject> {
  const { body, method } = request;
  if (body === null) return NOTHING;
  const type = readMediaType(request.headers);
  if ((method === "GET" || method === "HEAD") && !type.endsWith("json")) return NOTHING;
  const isForm = FORM_TYPES.has(type);
  try {
    if ("parsed" in body) return await readParsed(request, body.parsed, { isForm, noObject, options });
    const bytes = await readBytes(request, options);
    return await readSent(request.headers, bytes, { isForm, noObject, options });
  } catch (error) {
    throw isPostbellError(error) ? error : translateError(error);
  }
}

const MULTIPART = "multipart/form-data";
const FORM_TYPES: ReadonlySet<string> = new Set(["application/x-www-form-urlencoded", MULTIPART]);

interface BodyForm {
  isForm: boolean;
  noObject: () => RestError;
  options: ReadOptions;
}

const readMediaType = (headers: HttpRequest["headers"]): string =>
  headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() ?? "";

/**
 * Reads the value that a body parser of the host left. Few parsers read multipart bodies: without a
 * value, the bytes are missing.
 */
async function readParsed(
  request: BodyRequest,
  parsed: unknown,
  { isForm, noObject, options }: BodyForm,
): Promise<JsonObject> {
  const isEmpty = (parsed ?? null) === null && Number(request.headers["content-length"] ?? 0) === 0;
  if (isEmpty) return NOTHING;
  if (isForm && parsed === undefined) await readBytes(request, options);
  return isForm ? readObject(parsed, noObject) : readJsonBody(await readJson(request, options), noObject);
}

async function readSent(
  headers: HttpRequest["headers"],
  bytes: Uint8Array,
  { isForm, noObject, options }: BodyForm,
): Promise<JsonObject> {
  if (bytes.length === 0) return NOTHING;
  if (!isForm) return readJsonBody(await readJson({ headers, body: bytes }, options), noObject);
  refuseCoded(headers);
  if (readMediaType(headers) === MULTIPART) return readFields(headers, bytes);
  return readForm(new TextDecoder().decode(bytes));
}

/**
 * Refuses a body with a content coding, for a route that reads its body itself.
 *
 * @throws RestError 415 `rest_unsupported_media_type`
 */
export function refuseCodedBody({ headers }: HttpRequest): void {
  try {
    refuseCoded(headers);
  } catch (error) {
    throw translateError(error);
  }
}

/**
 * Copies the members of a JSON object into one without prototype. Its depth and size are bounded,
 * so that later code may walk it.
 *
 * @throws the error of `noObject` for any other value; RestError 400 `rest_invalid_json` for a
 *   value that is too deep or too large
 */
export function readObject(value: unknown, noObject: () => RestError = noJsonObject): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw noObject();
  const problem = checkJsonLimits(value);
  if (problem !== undefined) throw invalidJson(1, problem.message);
  return mergeParameters(value as JsonObject, NOTHING);
}

/** Reads a JSON body as {@link readObject} does. Also refuses half a surrogate pair. */
export function readJsonBody(value: unknown, noObject?: () => RestError): JsonObject {
  const body = readObject(value, noObject);
  if (hasHalfSurrogate(body)) throw invalidJson(10, "Single unpaired high surrogate in Unicode escape");
  return body;
}

const HALF = /\p{Surrogate}/u;

/** True for half a surrogate pair in a text or a name: no UTF-8 can hold it, so storages differ. */
function hasHalfSurrogate(value: object): boolean {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string" && HALF.test(next)) return true;
    if (typeof next !== "object" || next === null) continue;
    for (const [name, child] of Object.entries(next)) {
      if (HALF.test(name)) return true;
      open.push(child);
    }
  }
  return false;
}

/** Creates the error for a JSON body that is not an object. */
export const noJsonObject = (): RestError => invalidJson(4, "The body must be a JSON object.");

/** The numbers are those of PHP, which WordPress shows. */
function invalidJson(number: number, reason: string): RestError {
  return new RestError(400, "rest_invalid_json", "Invalid JSON body passed.", {
    data: { json_error_code: number, json_error_message: reason },
  });
}

const CODES: { [code: string]: string } = {
  body_too_large: "rest_body_too_large",
  unsupported_media_type: "rest_unsupported_media_type",
  request_aborted: "rest_request_aborted",
  request_timeout: "rest_request_timeout",
};

function translateError(error: unknown): unknown {
  if (!(error instanceof HttpError)) return error;
  const code = CODES[error.code];
  return code === undefined
    ? invalidJson(4, "Syntax error")
    : new RestError(error.status, code, error.message);
}

/** Merges two sets; `null` in `over` does not hide a value of `under`. Without prototype. */
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
 * Refuses an id that differs from the one in the path. The same value again is ignored.
 *
 * @throws RestError 400 `rest_invalid_param`, naming the parameters
 */
export function refuseOtherIds(parameters: PathParameters, sources: JsonObject[]): void {
  const params: Record<string, Json> = Object.create(null);
  const details: Record<string, Json> = Object.create(null);
  for (const [name, inPath] of Object.entries(parameters)) {
    const other = sources.map((source) => source[name] ?? inPath).find((value) => !isSame(value, inPath));
    if (other === undefined) continue;
    const type = typeof inPath === "string" ? "string" : "integer";
    const isType = type === "string" ? typeof other === "string" : isInteger(other);
    const message = isType ? `${name} is not that of the path.` : `${name} is not of type ${type}.`;
    params[name] = message;
    details[name] = { code: isType ? "rest_invalid_param" : "rest_invalid_type", message, data: null };
  }
  if (Object.keys(params).length > 0) throw invalidParams(params, details);
}

const isInteger = (value: Json): boolean =>
  Number.isInteger(value) || (typeof value === "string" && /^-?[0-9]{1,16}$/.test(value));

const isSame = (value: Json, inPath: number | string): boolean =>
  value === inPath || (typeof inPath === "number" && isInteger(value) && Number(value) === inPath);

/** `details`: by parameter, in WordPress's form. */
export function invalidParams(params: JsonObject, details: JsonObject): RestError {
  return new RestError(400, "rest_invalid_param", `Invalid parameter(s): ${Object.keys(params).join(", ")}`, {
    data: { params, details },
  });
}

export type ReadValues = { [name: string]: Json | undefined };

/** `input`: what the client sent, body over query. */
export function buildRestRequest(
  call: RouteCall,
  endpoint: RestEndpoint,
  values: ReadValues,
  input: JsonObject,
): RestRequest {
  return {
    method: (endpoint.methods as string[]).includes(call.method)
      ? (call.method as Method)
      : (endpoint.methods[0] as Method),
    path: call.path,
    values: Object.assign(Object.create(null), values, call.match?.parameters),
    isGiven: (name) => name in input,
    input,
    query: call.query,
    caller: call.caller,
    url: (path) => call.baseUrl + path,
    headers: call.headers,
    received: call.received,
    sanitised: call.sanitised ?? { characters: 0 },
  };
}

/**
 * Builds a request for a permission check of any endpoint of the path. It has the endpoint's
 * arguments that are valid alone; the others are left out.
 */
export function buildLenientRequest(call: RouteCall, endpoint: RestEndpoint): RestRequest {
  const sent = mergeParameters(call.body, call.query);
  const all = mergeParameters(call.match?.parameters ?? {}, sent);
  return buildRestRequest(call, endpoint, readValidValues(all, endpoint), sent);
}

function readValidValues(parameters: JsonObject, { args }: RestEndpoint): ReadValues {
  const all = validateArguments(args, parameters);
  if (all.ok) return all.values;
  const values: Record<string, Json | undefined> = Object.create(null);
  for (const [name, argument] of Object.entries(args)) {
    const one = validateArguments({ [name]: argument }, parameters);
    if (one.ok) values[name] = one.values[name];
  }
  return values;
}
