/**
 * The console's way to the content service: a list of routes that are passed on in the name of the visitor's user. The service judges what he may; nothing here
 * gives him more, and nothing that his request says of its sender is passed on.
 */

import type { Content } from "../src/content/service.js";
import { HttpError } from "../src/http/errors.js";
import type { HttpRequest, HttpResponse } from "../src/http/types.js";
import { type ApiCall, type ApiRoute, jsonResponse } from "./api.js";
import type { ContentAnswerJson } from "./content-shapes.js";

/** Parameters of a query that are passed on: none by which a request may stand for another one, such as `_method`. */
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

/** Headers of a request that describe its body or its condition. */
const HEADERS = ["content-type", "content-length", "content-encoding", "if-unmodified-since"] as const;

const picked = (headers: HttpRequest["headers"], names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));

const notFound = (): HttpError => new HttpError(404, "not_found", "There is nothing here for you.");

function userOf({ visitor }: ApiCall): number {
  if (visitor.userId === undefined) throw notFound();
  return visitor.userId;
}

/** The content service's error: what is wrong with the first field that is, rather than the names of all. */
interface ContentError {
  readonly code: string;
  readonly message: string;
  readonly data?: { readonly params?: { readonly [name: string]: string } };
}

function refused(status: number, { code, message, data }: ContentError, retryAfter?: string): HttpError {
  const [first] = Object.entries(data?.params ?? {});
  return new HttpError(status, code, first?.[1] ?? message, {
    field: first?.[0],
    headers: retryAfter === undefined ? {} : { "retry-after": retryAfter },
  });
}

const textOf = ({ body }: HttpResponse): Promise<string> =>
  new Response(body as Uint8Array<ArrayBuffer> | null).text();

const headerOf = ({ headers }: HttpResponse, name: string): string | undefined => headers[name]?.toString();

async function answered(response: HttpResponse | undefined): Promise<HttpResponse> {
  if (response === undefined) throw notFound();
  const body = JSON.parse((await textOf(response)) || "null");
  const { status } = response;
  if (status >= 400) throw refused(status, body, headerOf(response, "retry-after"));
  const total = headerOf(response, "x-wp-total");
  const answer: ContentAnswerJson<unknown> = {
    body,
    total: total === undefined ? null : Number(total),
    allow: headerOf(response, "allow")?.split(", ") ?? [],
  };
  return jsonResponse(status, answer);
}

/** By its name, since the class may be there twice. */
const isContentError = (error: unknown): error is ContentError & { readonly status: number } =>
  error instanceof Error && error.name === "RestError";

/** A browser must take a file of the site for nothing but a picture: it comes from the address of this page. */
const FILE_HEADERS = {
  "content-security-policy": "default-src 'none'; sandbox",
  "cache-control": "private, max-age=3600",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;

const nameOfFile = (name: string): string => `/${name.split("/").map(encodeURIComponent).join("/")}`;

export function contentRoutes(content: Content): readonly ApiRoute[] {
  const pass = async (call: ApiCall, path: string): Promise<HttpResponse> => {
    const { request, query } = call;
    const parameters = [...query].filter(([name]) => PARAMETERS.has(name));
    const { method, body, signal } = request;
    const passed: HttpRequest = {
      method,
      path: `/${content.namespace}${path}`,
      query: new URLSearchParams(parameters).toString(),
      headers: picked(request.headers, HEADERS),
      body,
      baseUrl: `${request.baseUrl}/api/content`,
      signal,
    };
    return answered(await content.handleAs(passed, userOf(call)));
  };

  const route = (method: string, path: string): ApiRoute => ({
    method,
    path: `/api/content${path}`,
    handle: (call) =>
      pass(
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
    ]),
    route("GET", "/users/me"),
    ...["/posts", "/pages"].map(
      (base): ApiRoute => ({
        method: "POST",
        path: `/api/content${base}/:id/revisions/:revision/restore`,
        async handle(call) {
          const as = userOf(call);
          const [post = 0, revision = 0] = ["id", "revision"].map((name) => Number(call.parameter(name)));
          const seen = new Date(call.request.headers["if-unmodified-since"] ?? "");
          const ifUnmodifiedSince = Number.isNaN(seen.getTime()) ? undefined : seen;
          try {
            await content.restoreRevision(post, revision, { as, ifUnmodifiedSince });
          } catch (error) {
            throw isContentError(error) ? refused(error.status, error) : error;
          }
          return jsonResponse(200, {});
        },
      }),
    ),
    {
      method: "GET",
      path: "/api/content/file",
      async handle(call) {
        userOf(call);
        const { request, query } = call;
        const response = await content.uploads.handle({
          ...request,
          path: nameOfFile(query.get("name") ?? ""),
          query: "",
          headers: picked(request.headers, ["range", "if-none-match"]),
        });
        if (response === undefined) throw notFound();
        const { status, headers, body } = response;
        return { status, headers: { ...headers, ...FILE_HEADERS }, body };
      },
    },
  ];
}
