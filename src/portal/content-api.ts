/**
 * The API routes for content: requests that are forwarded to the content service on behalf of the
 * visitor's user. The service checks permissions, and nothing that a request says about its sender
 * is forwarded.
 */

import type { Content } from "../content/service.js";
import { HttpError } from "../http/errors.js";
import type { HttpRequest, HttpResponse } from "../http/types.js";
import { type ApiCall, type ApiRoute, jsonResponse, notFoundHere, pickHeaders } from "./api.js";
import type { ContentAnswerJson } from "./content-shapes.js";

/** Query parameters that are forwarded. `_method` is not: it would turn a request into another. */
const PARAMETERS: ReadonlySet<string> = new Set([
  "context",
  "page",
  "per_page",
  "search",
  "status",
  "orderby",
  "force",
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
  readonly code: string;
  readonly message: string;
  readonly data?: { readonly params?: { readonly [name: string]: string } };
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
  const answer: ContentAnswerJson<unknown> = {
    body,
    total: total === undefined ? null : Number(total),
    allow: getHeader(response, "allow")?.split(", ") ?? [],
  };
  return jsonResponse(status, answer);
}

/** Compares the name, since the class may be loaded twice. */
const isContentError = (error: unknown): error is ContentError & { readonly status: number } =>
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
  return toAnswer(await content.handleAs(forwarded, getUserId(call)));
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
      await content.restoreRevision(post, revision, { as, ifUnmodifiedSince });
    } catch (error) {
      throw isContentError(error) ? toVisitorError(error.status, error) : error;
    }
    return jsonResponse(200, {});
  },
});

/** The route of the files of media, which a browser loads without the service's own address. */
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

/** Returns the API routes for content. */
export function contentRoutes(content: Content): readonly ApiRoute[] {
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

  return [
    ...["/posts", "/pages", "/media"].flatMap((base) => [
      route("GET", base),
      route("POST", base),
      route("GET", `${base}/:id`),
      route("POST", `${base}/:id`),
      route("DELETE", `${base}/:id`),
    ]),
    ...["/posts", "/pages"].flatMap((base) => [
      route("GET", `${base}/:id/revisions`),
      route("GET", `${base}/:id/revisions/:revision`),
      restoreRoute(content, base),
    ]),
    route("GET", "/users/me"),
    fileRoute(content),
  ];
}
