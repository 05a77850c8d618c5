/**
 * The API routes for content: requests that are forwarded to the content service on behalf of the
 * visitor's user. The service checks permissions, and nothing that a request says about its sender
 * is forwarded.
 */

import type { Content } from "../content/service.js";
import { withTimeout } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import { parseUrl } from "../core/parse-url.js";
import { readBytes } from "../http/body.js";
import { HttpError, toHttpError } from "../http/errors.js";
import type { HttpRequest, HttpResponse } from "../http/types.js";
import { type ApiCall, type ApiRoute, jsonResponse, notFoundHere, pickHeaders } from "./api.js";
import type { ContentResponseJson, EditorJson, RecordJson, SiteJson } from "./content-shapes.js";
import type { EditableRecord, PortalSettings } from "./options.js";
import { escapeMarkup, toFrameSource } from "./page.js";

/** Query parameters that are forwarded. `_method` is not: it would turn a request into another. */
const PARAMETERS: Set<string> = new Set([
  "context",
  "page",
  "per_page",
  "search",
  "status",
  "orderby",
  "force",
  "media_type",
  "_fields",
  "_embed",
]);

/** Request headers that are forwarded: they describe the body or a precondition. */
const HEADERS = ["content-type", "content-length", "content-encoding", "if-unmodified-since"] as const;

function getUserId({ visitor }: ApiCall): number {
  if (visitor.userId === undefined) throw notFoundHere();
  return visitor.userId;
}

/** An error of the content service. */
interface ContentError {
  code: string;
  message: string;
  data?: { params?: { [name: string]: string } };
}

/** Returns the error for the visitor, about the first invalid field if there is any. */
function toVisitorError(
  status: number,
  { code, message, data }: ContentError,
  retryAfter?: string,
): HttpError {
  const [first] = Object.entries(data?.params ?? {});
  return new HttpError(status, code, first?.[1] ?? message, {
    field: first?.[0],
    headers: retryAfter === undefined ? {} : { "retry-after": retryAfter },
  });
}

const readText = ({ body }: HttpResponse): Promise<string> =>
  new Response(body as Uint8Array<ArrayBuffer> | null).text();

const getHeader = ({ headers }: HttpResponse, name: string): string | undefined => headers[name]?.toString();

/** Wraps a response of the content service for the page, and throws its errors. */
async function toAnswer(response: HttpResponse | undefined): Promise<HttpResponse> {
  if (response === undefined) throw notFoundHere();
  const body = JSON.parse((await readText(response)) || "null");
  const { status } = response;
  if (status >= 400) throw toVisitorError(status, body, getHeader(response, "retry-after"));
  const total = getHeader(response, "x-wp-total");
  const answer: ContentResponseJson<unknown> = {
    body,
    total: total === undefined ? null : Number(total),
    allow: getHeader(response, "allow")?.split(", ") ?? [],
  };
  return jsonResponse(status, answer);
}

/** Compares the name, since the class may be loaded twice. */
const isContentError = (error: unknown): error is ContentError & { status: number } =>
  error instanceof Error && error.name === "RestError";

/** A file shares the origin of the page, so a browser must not treat it as a page or a script. */
const FILE_HEADERS = {
  "content-security-policy": "default-src 'none'; sandbox",
  "cache-control": "private, max-age=3600",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;

const toFilePath = (name: string): string => `/${name.split("/").map(encodeURIComponent).join("/")}`;

/** Forwards a request to the content service. */
async function forward(content: Content, call: ApiCall, path: string): Promise<HttpResponse> {
  const { request, query } = call;
  const parameters = [...query].filter(([name]) => PARAMETERS.has(name));
  const { method, body, signal } = request;
  const forwarded: HttpRequest = {
    method,
    path: `/${content.namespace}${path}`,
    query: new URLSearchParams(parameters).toString(),
    headers: pickHeaders(request.headers, HEADERS),
    body,
    baseUrl: `${request.baseUrl}/api/content`,
    signal,
  };
  return toAnswer(await content.handleAs({ request: forwarded, as: getUserId(call) }));
}

/** The route that restores a revision, which the content service has no route for. */
const restoreRoute = (content: Content, base: string): ApiRoute => ({
  method: "POST",
  path: `/api/content${base}/:id/revisions/:revision/restore`,
  async handle(call) {
    const as = getUserId(call);
    const [post = 0, revision = 0] = ["id", "revision"].map((name) => Number(call.parameter(name)));
    const seen = new Date(call.request.headers["if-unmodified-since"] ?? "");
    const ifUnmodifiedSince = Number.isNaN(seen.getTime()) ? undefined : seen;
    try {
      await content.restoreRevision({ postId: post, revisionId: revision, as, ifUnmodifiedSince });
    } catch (error) {
      throw isContentError(error) ? toVisitorError(error.status, error) : error;
    }
    return jsonResponse(200, {});
  },
});

/** The route of the files of media, which a browser loads without the service's address. */
const fileRoute = (content: Content): ApiRoute => ({
  method: "GET",
  path: "/api/content/file",
  async handle(call) {
    getUserId(call);
    const { request, query } = call;
    const { method, body: sent, baseUrl, signal } = request;
    const response = await content.uploads.handle({
      method,
      body: sent,
      baseUrl,
      signal,
      path: toFilePath(query.get("name") ?? ""),
      query: "",
      headers: pickHeaders(request.headers, ["range", "if-none-match"]),
    });
    if (response === undefined) throw notFoundHere();
    const { status, headers, body } = response;
    return { status, headers: { ...headers, ...FILE_HEADERS }, body };
  },
});

/** The parts of the portal that the routes for content use. */
export interface ContentApi extends Pick<PortalSettings, "editUrl" | "clock" | "frameAncestors"> {
  content: Content;
  logger: Logger;
}

/** Asks the content service for a value, on behalf of the visitor. Throws its errors. */
async function read<T>(content: Content, call: ApiCall, path: string, query: string): Promise<T> {
  const { baseUrl, signal } = call.request;
  const request = { method: "GET", path, query, headers: {}, body: null, baseUrl, signal };
  const answer = await toAnswer(await content.handleAs({ request, as: getUserId(call) }));
  return (JSON.parse(await readText(answer)) as ContentResponseJson<T>).body;
}

/** The route that says which zone the dates of records are in. */
const siteRoute = (content: Content): ApiRoute => ({
  method: "GET",
  path: "/api/content/site",
  async handle(call) {
    const query = "_fields=timezone_string,gmt_offset";
    const { timezone_string: zone, gmt_offset: offset } = await read<{
      timezone_string: string;
      gmt_offset: string;
    }>(content, call, "/", query);
    const hours = Number(offset);
    const site: SiteJson = { zone: zone || (hours === 0 ? "UTC" : `UTC${hours < 0 ? "" : "+"}${hours}`) };
    return jsonResponse(200, site);
  },
});

const EDITOR_MS = 5_000;

/** Asks the host where a record is edited. Never rejects. */
async function findEditor(
  record: EditableRecord,
  { editUrl, clock, logger }: ContentApi,
): Promise<EditorJson> {
  try {
    const answer = (async () => editUrl?.(record))();
    const link = await withTimeout(clock, EDITOR_MS, answer, () => new Error("no answer in time"));
    if (link === null || link === undefined) return { url: null };
    const url = typeof link === "string" ? parseUrl(link) : undefined;
    if (url?.protocol === "https:" || url?.protocol === "http:") return { url: url.href };
    throw new TypeError("editUrl must return an http: or https: URL of at most 2 048 characters, or null.");
  } catch (error) {
    logger.error({ error, id: record.id }, "editUrl of the portal gave no usable answer");
    return { url: null };
  }
}

/** The route that says where a record is edited, to a visitor who may edit it. */
const editorRoute = (base: "/posts" | "/pages", api: ContentApi): ApiRoute => ({
  method: "GET",
  path: `/api/content${base}/:id/editor`,
  async handle(call) {
    const path = `/${api.content.namespace}${base}/${encodeURIComponent(call.parameter("id"))}`;
    const query = "context=edit&_fields=id,slug,status,title";
    const { id, slug, status, title } = await read<RecordJson>(api.content, call, path, query);
    const type = base === "/posts" ? "post" : "page";
    return jsonResponse(200, await findEditor({ id, type, slug, status, title: title.raw ?? "" }, api));
  },
});

// The preview: a separate page in a frame of the portal, where nothing runs.

/** True for the path of a preview, which a form requests. */
export const isPreviewPath = (path: string): boolean =>
  path.length < 100 && /^\/api\/content\/(?:posts|pages)\/[^/]+\/preview$/.test(path);

/** Bytes of a form: more than its text can have, with each character encoded. */
const FORM_BYTES = 1_048_576;

/** Reads a field of a form, also if a body parser of the host has read it. */
async function readFormField(request: HttpRequest, name: string): Promise<string> {
  const { body, headers } = request;
  if (!/^application\/x-www-form-urlencoded(?:;|$)/i.test(headers["content-type"] ?? ""))
    throw new HttpError(415, "unsupported_media_type", "The preview must be requested by a form.");
  const parsed =
    body !== null && "parsed" in body ? (body.parsed as Record<string, unknown> | undefined) : {};
  const value =
    parsed?.[name] ??
    new URLSearchParams(Buffer.from(await readBytes(request, { limit: FORM_BYTES })).toString()).get(name);
  if (typeof value !== "string") throw new HttpError(400, "invalid_request", `The field ${name} is missing.`);
  return value.replaceAll("\r\n", "\n");
}

const PREVIEW_STYLE =
  "body{margin:16px auto;max-width:42rem;padding:0 16px;background:#fff;color:#14181f;font:16px/1.6 system-ui,sans-serif;overflow-wrap:anywhere}img,video{max-width:100%;height:auto}table{border-collapse:collapse}td,th{border:1px solid #d9dee5;padding:4px 8px}figure{margin:16px 0}";

/**
 * Builds the response with a preview. No script, form, frame or plug-in works in it, and links lead
 * nowhere. It loads images and sounds of the portal's origin and of the site's uploads only.
 */
function respondWithPreview(
  { status, html, uploads }: { status: number; html: string; uploads: string },
  frameAncestors: string[],
): HttpResponse {
  const origin = parseUrl(uploads)?.origin ?? "";
  const sources = /^https?:\/\/[\w.:[\]-]+$/.test(origin) ? `'self' ${origin}` : "'self'";
  return {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": [
        "sandbox",
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        `img-src ${sources}`,
        `media-src ${sources}`,
        "base-uri 'none'",
        "form-action 'none'",
        `frame-ancestors ${[...new Set(["self", ...frameAncestors])].map(toFrameSource).join(" ")}`,
      ].join("; "),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-resource-policy": "same-origin",
    },
    body: `<!doctype html>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n<base target="_blank">\n<title>Preview</title>\n<style>${PREVIEW_STYLE}</style>\n${html}`,
  };
}

/** The route that previews a content. Errors are shown in the frame, too. */
const previewRoute = (base: "/posts" | "/pages", { content, frameAncestors }: ContentApi): ApiRoute => ({
  method: "POST",
  path: `/api/content${base}/:id/preview`,
  async handle(call) {
    const as = getUserId(call);
    try {
      const text = await readFormField(call.request, "content");
      const preview = await content.preview({ postId: Number(call.parameter("id")), content: text, as });
      return respondWithPreview({ status: 200, ...preview }, frameAncestors);
    } catch (error) {
      const shown = isContentError(error) ? toVisitorError(error.status, error) : toHttpError(error);
      if (shown === undefined) throw error;
      const { status, message } = shown;
      return respondWithPreview(
        { status, html: `<p>${escapeMarkup(message)}</p>`, uploads: "" },
        frameAncestors,
      );
    }
  },
});

const WITH_REVISIONS = ["/posts", "/pages"] as const;

/** Returns the API routes for content. */
export function contentRoutes(api: ContentApi): ApiRoute[] {
  const { content } = api;
  const route = (method: string, path: string): ApiRoute => ({
    method,
    path: `/api/content${path}`,
    handle: (call) =>
      forward(
        content,
        call,
        path.replace(/:(\w+)/g, (_, name) => encodeURIComponent(call.parameter(name))),
      ),
  });

  const collection = (base: string): ApiRoute[] => [
    route("GET", base),
    route("POST", base),
    route("GET", `${base}/:id`),
    route("POST", `${base}/:id`),
    route("DELETE", `${base}/:id`),
  ];

  return [
    ...collection("/posts"),
    ...collection("/pages"),
    ...collection("/media"),
    ...WITH_REVISIONS.flatMap((base) => [
      route("GET", `${base}/:id/revisions`),
      route("GET", `${base}/:id/revisions/:revision`),
      restoreRoute(content, base),
      editorRoute(base, api),
      previewRoute(base, api),
    ]),
    siteRoute(content),
    route("GET", "/users/me"),
    fileRoute(content),
  ];
}
