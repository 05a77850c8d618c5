/** The stage "render": turns the outcome of a call, or an error, into JSON and an HTTP response. */

import { isPostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { HttpRequest } from "../../http/types.js";
import type { Json } from "../../schema/types.js";
import { type Caller, isAnonymous } from "../auth/caller.js";
import type { Cors } from "./cors.js";
import { RestError } from "./error.js";
import { parseFields } from "./field-selection.js";
import type { RenderedResponse } from "./response-cache.js";
import { asScript, buildHeaders, entityTag, JSONP_TYPE } from "./response-headers.js";
import {
  getContentType,
  INVALID_CALLBACK,
  isDocument,
  PLAIN_VIEW,
  type ResponseView,
} from "./response-view.js";
import { toWordPressNames } from "./rest-headers.js";
import { type FetchEmbeddedAs, parseEmbed, select, toBytes, toJson, toJsonText } from "./serialise.js";
import type { RouteOutcome } from "./types.js";

/** An outcome with everything its rendering depends on. */
export interface Rendering {
  readonly outcome: RouteOutcome;
  readonly view: ResponseView;
  /** `undefined`: authentication failed. */
  readonly caller: Caller | undefined;
  /** Links in the response begin with it. */
  readonly baseUrl: string;
}

export interface Renderer {
  /** Returns the JSON with `_fields` and `_embed` applied. */
  readonly renderJson: (rendering: Rendering) => Json | Promise<Json>;
  /** Returns the response to GET, or to any other method as if it had no conditions. */
  readonly renderResponse: (request: HttpRequest, rendering: Rendering) => Promise<RenderedResponse>;
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
    const own = view.isEnveloped ? {} : outcome.headers;
    const status = view.isEnveloped ? 200 : outcome.status;
    const body = await renderBytes(rendering);
    const headers = buildHeaders({
      type: getContentType(outcome, view),
      baseUrl,
      isPrivate: !isPublic || outcome.isError || !(isRead || method === "OPTIONS"),
      cors: cors.headers(cors.classOf(request.headers["origin"]), isRead && isPublic),
      headers: own,
    });
    if (isRead && status === 200) headers["etag"] = entityTag(body, own);
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
