/** Stage "render": turns the outcome of a call into JSON, and into a whole HTTP response. */

import type { HttpRequest } from "../../http/types.js";
import type { Json } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { isAnonymous } from "./authenticate.js";
import type { Cors } from "./cors.js";
import { parseEmbed } from "./embed-links.js";
import type { FetchEmbeddedAs } from "./fetch-embedded.js";
import { parseFields } from "./field-selection.js";
import type { RenderedResponse } from "./response-cache.js";
import { asScript, buildHeaders, entityTag } from "./response-headers.js";
import { getContentType, isDocument, PLAIN_VIEW, type ResponseView } from "./response-view.js";
import { toWordPressNames } from "./rest-headers.js";
import type { RouteOutcome } from "./route-call.js";
import { select, toBytes, toJson, toJsonText } from "./serialise.js";

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
