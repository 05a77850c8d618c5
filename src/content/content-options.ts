/**
 * The options of `createContent`, as a host writes them. Their defaults and ranges are in
 * `options.ts`.
 */

import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import type { Telemetry } from "../core/telemetry.js";
import type { HttpRequest } from "../http/types.js";
import type { Resolve } from "../outbound/connection.js";
import type { RoleOptions } from "./auth/roles.js";
import type { EditorOptions } from "./editor/editor-options.js";
import type { EmbedProvider } from "./embeds/providers.js";
import type { FileStore } from "./files.js";
import type { ImageTool } from "./media/image-tool.js";
import type { MenuLocationsOptions } from "./menu-locations/menu-locations.js";
import type { ContentChanged } from "./records/record-changes.js";
import type { SettingsOptions } from "./settings/setting-options.js";
import type { Render, SiteOptions } from "./site.js";
import type { ContentStorage } from "./store.js";
import type { UsersOption } from "./users/users.js";

type Awaitable<T> = T | PromiseLike<T>;

/**
 * Refuses a request whose credentials the host does not accept, such as one with a stale nonce. The
 * response is WordPress's error `{ code, message, data: { status } }`.
 *
 * @example
 * ```ts
 * // WordPress's clients then get a new nonce and repeat the request.
 * const staleNonce: AuthenticationRefusal = {
 *   status: 403,
 *   code: "rest_cookie_invalid_nonce",
 *   message: "Cookie check failed",
 * };
 * ```
 */
export interface AuthenticationRefusal {
  /** 400 to 499. */
  readonly status: number;
  /** Tells a program the reason. At most 100 characters. */
  readonly code: string;
  /** Tells a person the reason. At most 1000 characters. The client sees it: no secrets. */
  readonly message: string;
}

/**
 * Identifies the user who makes a request. Returns the user's `id`, `null` for an anonymous
 * request, or a refusal, which becomes the response.
 *
 * If it throws, the response is 401 without the reason. If it returns anything else, the response
 * is 500 and the mistake is logged.
 *
 * @example
 * ```ts
 * async function authenticate({ headers }: HttpRequest) {
 *   const session = await findSession(headers["cookie"]);
 *   const nonce = headers["x-wp-nonce"];
 *   // Without a nonce, another site's page may have sent the cookie.
 *   if (session === null || nonce === undefined) return null;
 *   return session.hasNonce(nonce) ? { id: session.userId } : staleNonce;
 * }
 * ```
 */
export type AuthenticateContent = (
  request: HttpRequest,
) => Awaitable<{ readonly id: number } | AuthenticationRefusal | null | undefined>;

/** The options of `createContent`. `docs/options.md` lists them in one table. */
export interface ContentOptions {
  /** The storage of the content, such as `memoryStorage()` or `redisStorage({ url })`. Required. */
  readonly storage: ContentStorage;
  /**
   * The store of uploaded files: `memoryFiles()` or `diskFiles({ directory })` of `postbell/files`.
   * Default: none, and uploads are refused.
   */
  readonly files?: FileStore | undefined;
  /**
   * How current responses are. Default: `strong`.
   *
   * With `strong` a response shows everything that any process stored before the request. This
   * costs a round trip to a storage outside this process. With `eventual`, changes of other
   * processes show up within a second; changes of this process show at once. Choose `eventual` for
   * a site that is read much more than written. Without `start()`, a request may have to wait for
   * the changes.
   */
  readonly consistency?: "strong" | "eventual" | undefined;
  /**
   * Creates smaller versions of uploaded images and edits them: `sharpImages()` of
   * `postbell/images`. Default: none, and images are stored as they come.
   */
  readonly images?: ImageTool | undefined;
  /** The website whose content this is. Required. */
  readonly site: SiteOptions;
  /**
   * The first segment of the content routes: `core` makes `/core/v2/posts`. Default: `core`. Set it
   * to `wp` for WordPress's own clients.
   */
  readonly namespace?: string | undefined;
  /** Identifies the user of a request. Required; `() => null` makes every request anonymous. */
  readonly authenticate: AuthenticateContent;
  /** The users: a list, or functions that look them up. Required; `[]` has no users. */
  readonly users: UsersOption;
  /**
   * The places of the website that show a menu, for `/menu-locations` and for the field `locations`
   * of menus. Default: none.
   */
  readonly menuLocations?: MenuLocationsOptions | undefined;
  /** The settings that the route `/settings` shows administrators, and those they may write. */
  readonly settings?: SettingsOptions | undefined;
  /** Roles in addition to WordPress's five. Default: none. */
  readonly roles?: RoleOptions | undefined;
  /**
   * Turns raw text into the HTML that is shown. Default: adds paragraphs and typographic signs,
   * removes block delimiters and sanitises. Set it if your site renders blocks or Markdown itself.
   */
  readonly render?: Render | undefined;
  /** Called after every change that this process made. Its errors are logged. Default: none. */
  readonly changed?: ((change: ContentChanged) => unknown) | undefined;
  /** Embeds of other sites' pages, which editors get from the route `/oembed/1.0/proxy`. */
  readonly embeds?: EmbedOptions | undefined;
  /** The theme, patterns and block types that the block editor asks for. */
  readonly editor?: EditorOptions | undefined;
  /** Lets pages of other origins sign in and write. Default: they only read public content. */
  readonly cors?: ContentCorsOptions | undefined;
  /**
   * Decides about paths that the content service does not have. Default: `pass`, and the host goes
   * on. `answer` responds with 404; choose it if nothing else is mounted at the same path. Paths
   * below `/core`, `/oembed` and the other first segments of the service are never passed on, and,
   * if `namespace` is `wp`, neither are WordPress's other namespaces, such as `/wp-site-health/v1`.
   */
  readonly unknownPaths?: "pass" | "answer" | undefined;
  readonly limits?: ContentLimits | undefined;
  /**
   * `true`: `start()` rejects if the storage cannot be reached within four seconds, so that a wrong
   * address shows up at once. Default `true`. Set it to `false` for a process that may start before
   * its storage does: `start()` then resolves, and work begins once the storage is there.
   */
  readonly awaitStorage?: boolean | undefined;
  /** The source of time and chance. Default: the system's. Tests pass `manualClock()`. */
  readonly clock?: Clock | undefined;
  /** Receives warnings and errors. Default: they go to `console`; `false` logs nothing. */
  readonly logger?: Logger | false | undefined;
  /** Receives spans and metrics. Default: none, at no cost. */
  readonly telemetry?: Telemetry | undefined;
}

/** The pages of other origins that may sign in, such as an editor on a host of its own. */
export interface ContentCorsOptions {
  /**
   * Origins whose pages may send credentials, read personal responses and write. Default: none;
   * pages of any origin read public content.
   */
  readonly origins?: readonly string[] | undefined;
  /**
   * Names of request headers that these pages may send in addition to those of WordPress's clients.
   * Default: none. Add one if `authenticate` or a proxy in front of the service reads it.
   */
  readonly allowedHeaders?: readonly string[] | undefined;
}

/** Embeds of other sites' pages: which sites are asked, and what that may cost. */
export interface EmbedOptions {
  /**
   * `false` fetches no pages of other sites: neither embeds nor the details of linked pages, which
   * editors get from `/wp-block-editor/v1/url-details`. The site's own posts can be embedded either
   * way. Default: `true`.
   */
  readonly enabled?: boolean | undefined;
  /** Providers in addition to the built-in ones, and tried before them. Default: none. */
  readonly providers?: readonly EmbedProvider[] | undefined;
  /**
   * `true` fetches the page of an unknown site to find the endpoint it names. Default: `true`. Set
   * it to `false` to contact known providers only.
   */
  readonly discover?: boolean | undefined;
  /** The time for one embed, in milliseconds. Default: 5000. */
  readonly timeoutMs?: number | undefined;
  /** The size of the embeds cached in memory, in bytes; 0 caches none. Default: 4 MiB. */
  readonly cacheBytes?: number | undefined;
  /**
   * Destinations in addition to public hosts over HTTPS at the default port. Default: none.
   *
   * @example
   * // In production: a wiki in your own network.
   * destinations: { allow: ["wiki.internal"] }
   */
  readonly destinations?:
    | {
        /** Allows plain HTTP. Default: `false`. For development and tests. */
        readonly allowHttp?: boolean | undefined;
        /**
         * Allows all private addresses, and ports other than the default one, except those of other
         * protocols. Default: `false`. For development and tests: editors can then reach your whole
         * network. In production, list what may be reached in `allow`.
         */
        readonly allowPrivateNetworks?: boolean | undefined;
        /**
         * Hosts that may be reached although they are not public: at most 256 CIDR blocks
         * (`10.20.0.0/16`) and host names (`wiki.internal`, `*.svc.cluster.local`), by the rules of
         * `destinations.allow` of `createWebhooks`. Default: none. The default port is still
         * required.
         */
        readonly allow?: readonly string[] | undefined;
        /** PEM certificates trusted in addition to Node's built-in roots. Default: none. */
        readonly ca?: string | Uint8Array | undefined;
        /** Resolves a name to addresses. Default: the system's DNS servers. */
        readonly resolve?: Resolve | undefined;
      }
    | undefined;
}

/** The largest bodies, responses and caches. */
export interface ContentLimits {
  /** The largest JSON or form body, in bytes. Default: 2 MiB. Raise it for very long posts. */
  readonly bodyBytes?: number | undefined;
  /**
   * How long to wait for a body, in milliseconds; for an upload, for its first bytes and for each
   * further part. A slower one is refused with 408. Default: 10 s.
   */
  readonly bodyMs?: number | undefined;
  /**
   * The longest text, in characters, from a user without `unfiltered_html`, such as a contributor.
   * A longer one is refused with 413. All texts of one request, a batch included, have at most four
   * times as many characters. Default: 65 536. Sanitising takes CPU, so raise it with care.
   */
  readonly filteredCharacters?: number | undefined;
  /**
   * The size of the records in one list, in bytes. A longer list is refused with 413, and the
   * message says how to request less. Default: 8 MiB.
   */
  readonly responseBytes?: number | undefined;
  /** The largest uploaded file, in bytes. Default: 32 MiB. */
  readonly uploadBytes?: number | undefined;
  /**
   * The average speed, in bytes per second, of an upload that takes longer than `bodyMs`. A slower
   * one is refused with 408. Default: 4 KiB. Lower it for clients on very slow networks.
   */
  readonly uploadBytesPerSecond?: number | undefined;
  /** The size of all records and responses cached in memory, in bytes. Default: 64 MiB. */
  readonly cacheBytes?: number | undefined;
  /** The number of revisions kept for each post. Default: 100. */
  readonly revisions?: number | undefined;
  /**
   * The wrong passwords accepted per minute for one protected post, in single requests and lists
   * together. Each process counts its own. Default: 30; 0 sets no limit.
   */
  readonly passwordsPerMinute?: number | undefined;
}
