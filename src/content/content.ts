/** The content service as a host sees it: its methods, and the values that they take and return. */

import type { HealthStatus } from "../health/health-status.js";
import type { HttpRequest, HttpResponse, ReadableBody, Service } from "../http/types.js";
import type { Json, JsonObject } from "../schema/types.js";
import type { ExportOptions } from "./wxr/export.js";
import type { ImportOptions, ImportSummary } from "./wxr/options.js";

/** A request to {@link Content.request}, made in this process. */
export interface ContentRequest {
  readonly method: string;
  /** The path below the mount point: `/core/v2/posts`. */
  readonly path: string;
  readonly query?: { readonly [name: string]: Json } | undefined;
  readonly headers?: { readonly [name: string]: string } | undefined;
  readonly body?: JsonObject | undefined;
  /** The id of the user who makes the request; `null` for an anonymous one. */
  readonly as: number | null;
  /** Links in the response begin with it. Default: the address of the website. */
  readonly baseUrl?: string | undefined;
}

/** The response to a {@link ContentRequest}: the same as over HTTP, with its body parsed. */
export interface ContentResponse {
  readonly status: number;
  /** Names as WordPress writes them: `X-WP-Total`. */
  readonly headers: { readonly [name: string]: string };
  readonly body: Json;
}

/** The result of {@link Content.preview}. */
export interface ContentPreview {
  readonly html: string;
  /** The address below which the site's uploads are, such as images in the content. */
  readonly uploads: string;
}

/** The content service that `createContent` creates. */
export interface Content {
  /**
   * Handles a request to the REST interface, for an adapter to mount. Never throws or rejects.
   *
   * A cached response comes without a promise, so use `await` instead of `then`. Its headers and
   * body are shared with other requests and must not be changed.
   */
  handle(request: HttpRequest): HttpResponse | undefined | Promise<HttpResponse | undefined>;
  /**
   * Handles a request for a user that the host has authenticated itself, such as behind its own
   * sign-in. `authenticate` is not called, and credentials in the request do not count. Bodies are
   * streamed, so uploads work. The response is 401 if there is no user with the id `as`.
   *
   * @throws PostbellError `invalid_argument` for another argument
   *
   * @example
   * ```ts
   * const response = await content.handleAs({ request, as: session.userId });
   * ```
   */
  handleAs(call: { request: HttpRequest; as: number }): Promise<HttpResponse | undefined>;
  /** The first two segments of the content routes: `core/v2`. */
  readonly namespace: string;
  /**
   * Serves the uploaded files below `site.uploads`, for an adapter to mount. Empty without `files`.
   */
  readonly uploads: Service;
  /**
   * Makes a request in this process, without HTTP but with the same checks and responses.
   *
   * @example
   * ```ts
   * const { body } = await content.request({ method: "GET", path: "/core/v2/posts", as: null });
   * ```
   *
   * @throws RestError 401 if there is no user with the id `as`
   */
  request(request: ContentRequest): Promise<ContentResponse>;
  /**
   * Restores a post to one of its revisions. The state it replaces becomes a revision too.
   *
   * `as` is the id of the user on whose behalf this happens. `ifUnmodifiedSince` is the
   * `modified_gmt` that the user has seen, so that a newer change is not overwritten.
   *
   * @throws RestError 404 if there is no such post or revision; 401 or 403 if the user may not edit
   *   the post; 412 if the post has changed since
   * @throws PostbellError `invalid_argument`
   */
  restoreRevision(request: {
    postId: number;
    revisionId: number;
    as: number;
    ifUnmodifiedSince?: Date | undefined;
  }): Promise<void>;
  /**
   * Renders a text as the content of a post would be shown, and stores nothing. The text is
   * sanitised, also if the user may write unfiltered HTML, and has at most
   * `limits.filteredCharacters`. With the option `render`, your function makes the result: show it
   * where no script runs.
   *
   * `as` is the id of the user, who must be allowed to edit the post.
   *
   * @throws RestError 404 if there is no such post; 401 or 403 if the user may not edit it; 413 if
   *   the text is too long
   * @throws PostbellError `invalid_argument` if the content is no text
   *
   * @example
   * ```ts
   * const { html } = await content.preview({ postId: 12, content: "<p>Closed</p>", as: 3 });
   * ```
   */
  preview(request: { postId: number; content: string; as: number }): Promise<ContentPreview>;
  /**
   * Imports a WXR file, WordPress's export format. The file is streamed and committed in batches.
   *
   * Importing the same file again changes nothing, and completes an import that failed. Posts get
   * new ids, and references to them follow. What was committed before an error stays.
   *
   * @throws PostbellError `invalid_import` with the line; `invalid_argument`; those of the storage
   * @throws RestError 401 if there is no user with the id `as`
   * @throws the reason of `signal` once it is aborted
   */
  import(source: ReadableBody, options: ImportOptions): Promise<ImportSummary>;
  /**
   * Exports the site as a WXR 1.2 file, in pieces: posts of every type and status, terms and
   * authors, but no revisions. Media are listed by the URL of their file. Changes made during the
   * export may be missing.
   *
   * The file holds drafts and the passwords of posts: keep it as safe as the site.
   */
  export(options?: ExportOptions): AsyncIterable<string>;
  /**
   * Returns the OpenAPI 3.1 document of every route, as `GET /openapi.json` does. `baseUrl` is the
   * URL of the mount point; default: the address of the website.
   */
  openApi(options?: { baseUrl?: string | undefined }): JsonObject;
  /** Loads the content, and publishes scheduled posts on time from now on. Safe to call again. */
  start(): Promise<void>;
  /** Stops background work. Safe to call again. */
  stop(): Promise<void>;
  /** Calls `stop()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
  /**
   * Reports whether the storage is available and changes are followed, for `createHealth`. Never
   * rejects.
   */
  status(): Promise<HealthStatus>;
}
