/**
 * The stage "render": turns the outcome of a call, or an error, into JSON and an HTTP response, in
 * the form that the client wants.
 */

import { createHash } from "node:crypto";
import { isPostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { HttpRequest } from "../../http/types.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { type Caller, isAnonymous } from "../auth/caller.js";
import { type Cors, type Headers, SHARED_HEADERS } from "./cors.js";
import { RestError } from "./error.js";
import type { RenderedResponse } from "./response-cache.js";
import { type RestHeaders, toWordPressNames } from "./rest-headers.js";
import {
  type FetchEmbeddedAs,
  parseEmbed,
  parseFields,
  refuseLongSelection,
  select,
  toBytes,
  toJson,
  toJsonText,
} from "./serialise.js";
import type { RouteOutcome } from "./types.js";

/** An outcome with everything its rendering depends on. */
interface Rendering {
  outcome: RouteOutcome;
  view: ResponseView;
  /** `undefined`: authentication failed. */
  caller: Caller | undefined;
  /** Links in the response begin with it. */
  baseUrl: string;
}

export interface Renderer {
  /** Returns the JSON with `_fields` and `_embed` applied. */
  renderJson: (rendering: Rendering) => Json | Promise<Json>;
  /** Returns the response to GET, or to any other method as if it had no conditions. */
  renderResponse: (request: HttpRequest, rendering: Rendering) => Promise<RenderedResponse>;
}

export function createRenderer(cors: Cors, fetchAs: FetchEmbeddedAs): Renderer {
  const renderJson = ({ outcome, view, caller, baseUrl }: Rendering): Json | Promise<Json> => {
    if (outcome.isError || caller === undefined) return toJson(outcome.body);
    const selection = { fields: parseFields(view.fields), embed: parseEmbed(view.embed) };
    return select(outcome.body, selection, fetchAs(caller, baseUrl));
  };

  const renderBytes = async (rendering: Rendering): Promise<Uint8Array> => {
    const { outcome, view } = rendering;
    if (view === PLAIN_VIEW || isDocument(outcome, view)) return toBytes(outcome.body);
    const body = await renderJson(rendering);
    const { status, headers } = outcome;
    const json = view.isEnveloped ? { body, status, headers: toWordPressNames(headers) } : body;
    const text = await toJsonText(json, view.isPretty ? 4 : 0);
    return Buffer.from(view.callback === undefined ? text : asScript(view.callback, text));
  };

  const renderResponse = async (request: HttpRequest, rendering: Rendering): Promise<RenderedResponse> => {
    const { method, baseUrl } = request;
    const { outcome, view, caller } = rendering;
    const isRead = method === "GET" || method === "HEAD";
    const isPublic = caller !== undefined && isAnonymous(caller);
    const routeHeaders = view.isEnveloped ? {} : outcome.headers;
    const status = view.isEnveloped ? 200 : outcome.status;
    const body = await renderBytes(rendering);
    const headers = buildHeaders({
      type: getContentType(outcome, view),
      baseUrl,
      isPrivate: !isPublic || outcome.isError || !(isRead || method === "OPTIONS"),
      cors: cors.headers(cors.classOf(request.headers["origin"]), isRead && isPublic),
      headers: routeHeaders,
    });
    if (isRead && status === 200) headers["etag"] = entityTag(body, routeHeaders);
    return Object.freeze({ status, headers: Object.freeze(headers), body });
  };

  return { renderJson, renderResponse };
}

/** In seconds. A storage is usually available again after a fail-over. */
const STORAGE_RETRY_AFTER = 5;

/** Returns the outcome for something that was thrown; logs it unless the caller caused it. */
export function toErrorOutcome(error: unknown, logger: Logger): RouteOutcome {
  if (error instanceof RestError) return toOutcome(error);
  if (isPostbellError(error, "storage_unavailable") || isPostbellError(error, "storage_full")) {
    logger.warn({ error }, "the storage could not answer a content request");
    const message = "The service cannot answer at the moment; try again later.";
    return toOutcome(new RestError(503, `rest_${error.code}`, message, { retryAfter: STORAGE_RETRY_AFTER }));
  }
  logger.error({ error }, "a content request failed");
  return toOutcome(new RestError(500, "rest_internal_error", "The request could not be answered."));
}

function toOutcome({ status, code, message, data, additional, retryAfter }: RestError): RouteOutcome {
  const more =
    additional.length === 0 ? {} : { additional_errors: additional.map((error) => ({ ...error })) };
  const json = { code, message, data: { status, ...data }, ...more };
  return {
    status,
    headers: retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
    body:
      code === INVALID_CALLBACK ? { text: JSON.stringify({ code, message }), type: JSONP_TYPE } : { json },
    isError: true,
  };
}

// Builds the HTTP headers of responses: caching, validators, JSONP. Pure; knows no route.

const COMMON_HEADERS: Headers = Object.freeze({
  "x-content-type-options": "nosniff",
  "x-robots-tag": "noindex",
  ...SHARED_HEADERS,
});

const PRIVATE_HEADERS: Headers = Object.freeze({
  "cache-control": "no-cache, must-revalidate, max-age=0, no-store, private",
  expires: "Wed, 11 Jan 1984 05:00:00 GMT",
});

/**
 * For an origin whose pages may sign in, whose cache must not show the anonymous response later.
 */
const REVALIDATED: Headers = Object.freeze({ "cache-control": "no-cache" });

const JSON_TYPE = "application/json; charset=UTF-8";
const JSONP_TYPE = "application/javascript; charset=UTF-8";

interface ResponseTraits {
  type: string;
  baseUrl: string;
  /** True if nobody may cache it: an error, the response to a write, or one for a known caller. */
  isPrivate: boolean;
  cors: Headers;
  /** The headers that the route set. */
  headers: RestHeaders;
}

/**
 * Builds all headers except the validator. `link` leads to the index first.
 *
 * As in WordPress, `vary` is `Origin` for a public response to an origin that may send credentials.
 * Otherwise it also names `Authorization`, since a known caller gets another response.
 */
function buildHeaders({ type, baseUrl, isPrivate, cors, headers }: ResponseTraits): Record<string, string> {
  const { link, ...others } = headers;
  const root = `<${baseUrl}/>; rel="https://api.w.org/"`;
  const isTrusted = cors["access-control-allow-credentials"] !== undefined;
  return {
    "content-type": type,
    ...COMMON_HEADERS,
    link: link === undefined ? root : `${root}, ${link}`,
    vary: isTrusted && !isPrivate ? "Origin" : "Origin, Authorization",
    ...cors,
    ...(isPrivate ? PRIVATE_HEADERS : isTrusted ? REVALIDATED : {}),
    ...others,
  };
}

/** Returns a weak validator of the bytes and of the headers that belong to them. */
function entityTag(bytes: Uint8Array, headers: RestHeaders): string {
  const hash = createHash("sha256").update(JSON.stringify(headers)).update(bytes);
  return `W/"${hash.digest("base64url").slice(0, 27)}"`;
}

const CALLBACK = /^[\w.]{1,128}$/;

const isCallback = (name: unknown): name is string => typeof name === "string" && CALLBACK.test(name);

/**
 * Returns a script that calls `callback` with the value. The comment in front keeps browsers from
 * reading the response as anything but a script.
 */
const asScript = (callback: string, json: string): string =>
  `/**/${callback}(${json.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")})`;

// The form in which the client wants the response: `_fields`, `_embed`, `_envelope`, `_pretty`,
// `_jsonp`.

export interface ResponseView {
  fields: Json | undefined;
  embed: Json | undefined;
  isEnveloped: boolean;
  isPretty: boolean;
  callback: string | undefined;
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
function parseCallback(name: Json | undefined): string | undefined {
  if (name === undefined || name === "") return undefined;
  return typeof name === "string" ? name : JSON.stringify(name);
}

/** The code of the error that WordPress sends as a script, without `data`. */
const INVALID_CALLBACK = "rest_callback_invalid";

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
const isDocument = ({ body }: RouteOutcome, { isEnveloped, callback }: ResponseView): boolean =>
  "text" in body && !isEnveloped && callback === undefined;

function getContentType(outcome: RouteOutcome, view: ResponseView): string {
  if ("text" in outcome.body && isDocument(outcome, view)) return outcome.body.type;
  return view.callback === undefined ? JSON_TYPE : JSONP_TYPE;
}
