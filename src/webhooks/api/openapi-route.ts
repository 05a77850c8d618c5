/** Serves the OpenAPI document: public, cacheable, with a validator. */

import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { isMatch } from "../../http/entity-tag.js";
import { JSON_CONTENT_TYPE } from "../../http/json-response.js";
import type { Route } from "../../http/router.js";
import type { HttpRequest, HttpResponse } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import { operations } from "./operations.js";

const PUBLIC_HEADERS = {
  // Clients validate the document before each use: it depends on the mounted version.
  "cache-control": "public, no-cache",
  "access-control-allow-origin": "*",
  "x-content-type-options": "nosniff",
} as const;

/** The number of cached texts, by base URL. Clients choose the base URL with the `Host` header. */
const MAX_CACHED_TEXTS = 16;

interface DocumentText {
  readonly body: string;
  readonly etag: string;
}

function serialiseDocument(document: JsonObject): DocumentText {
  const body = JSON.stringify(document);
  return { body, etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"` };
}

function toDocumentResponse(request: HttpRequest, { body, etag }: DocumentText): HttpResponse {
  const headers = { ...PUBLIC_HEADERS, etag };
  if (isMatch(request.headers["if-none-match"], etag)) return { status: 304, headers, body: null };
  return { status: 200, headers: { "content-type": JSON_CONTENT_TYPE, ...headers }, body };
}

export function createDocumentRoute(openApi: (baseUrl: string) => JsonObject): Route<HttpRequest> {
  const texts = new LRUCache<string, DocumentText>({ max: MAX_CACHED_TEXTS });
  const getText = (baseUrl: string): DocumentText => {
    const text = texts.get(baseUrl) ?? serialiseDocument(openApi(baseUrl));
    texts.set(baseUrl, text);
    return text;
  };
  return {
    ...operations.readOpenApi,
    handle: async (request) => toDocumentResponse(request, getText(request.baseUrl)),
  };
}
