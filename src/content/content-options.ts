/**
 * The options of `createContent`, as a host writes them. Their defaults and ranges are in
 * `options.ts`.
 */

import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import type { Telemetry } from "../core/telemetry.js";
import type { HttpRequest } from "../http/types.js";
import type { Resolve } from "../outbound/resolver.js";
import type { RoleOptions } from "./auth/roles.js";
import type { ApplicationPasswords, AuthenticateContent } from "./callers.js";
import type { EditorOptions } from "./editor/editor-options.js";
import type { EmbedProvider } from "./embeds/providers.js";
import type { FileStore } from "./files.js";
import type { ImageTool } from "./media/image-tool.js";
import type { MenuLocationsOptions } from "./menu-locations/menu-locations.js";
import type { MetaOptions } from "./posts/declared-meta.js";
import type { TypeFeature } from "./records/content-model.js";
import type { ContentChanged } from "./records/record-changes.js";
import type { ShortCodes } from "./rendering/run-short-codes.js";
import type { SettingsOptions } from "./settings/setting-fields.js";
import type { Render, SiteOptions } from "./site.js";
import type { ContentStorage } from "./store.js";
import type { UsersOption } from "./users/users.js";

/** The options of `createContent`. `docs/options.md` lists them in one table. */
export interface ContentOptions {
  /** Required. Stores the content. */
  storage: ContentStorage;
  /**
   * Stores uploaded files; without it, uploads are refused. Pass `memoryFiles()` or `diskFiles({
   * directory })` of `postbell/files`.
   */
  files?: FileStore | undefined;
  /**
   * With `strong`, a response shows everything that any process stored before the request; with
   * `eventual`, changes of other processes show within a second. Default: `strong`.
   *
   * `strong` costs a round trip to a storage outside this process. Choose `eventual` for a site
   * that is read much more than written. Without `start()`, a request may have to wait for the
   * changes.
   */
  consistency?: "strong" | "eventual" | undefined;
  /**
   * Creates smaller versions of uploaded images and edits images; without it, they are stored
   * unchanged. Pass `sharpImages()` of `postbell/images`.
   */
  images?: ImageTool | undefined;
  /** The website whose content this is. Required. */
  site: SiteOptions;
  /**
   * The first segment of the content routes: `core` makes `/core/v2/posts`. Default: `core`. Set it
   * to `wp` for WordPress's clients.
   */
  namespace?: string | undefined;
  /** Returns the user's `{ id }`, `null` for an anonymous request, or a refusal. Required. */
  authenticate: AuthenticateContent;
  /**
   * Serves the routes of application passwords: what `createApplicationPasswords()` returns.
   * Default: none. Call its `authenticate` in yours too.
   */
  applicationPasswords?: ApplicationPasswords | undefined;
  /** The users: a list, or functions that look them up. Required; `[]` has no users. */
  users: UsersOption;
  /**
   * The places of the website that show a menu: `{ primary: { description: "Main navigation" } }`.
   * Default: none.
   */
  menuLocations?: MenuLocationsOptions | undefined;
  /**
   * Your meta fields by post type: `{ post: { subtitle: { single: true } } }`. Default:
   * none.
   */
  meta?: MetaOptions | undefined;
  /** The settings that the route `/settings` shows administrators, and those they may write. */
  settings?: SettingsOptions | undefined;
  /**
   * Roles in addition to WordPress's five: `{ reviewer: { inherits: "author", capabilities:
   * ["edit_others_posts"] } }`. Default: none.
   */
  roles?: RoleOptions | undefined;
  /**
   * Types of posts in addition to WordPress's: `{ recipe: { base: "recipes", labels: { name:
   * "Recipes", singular: "Recipe" } } }`. Default: none.
   */
  types?: TypeOptions | undefined;
  /**
   * Taxonomies in addition to WordPress's: `{ cuisine: { labels: { name: "Cuisines", singular:
   * "Cuisine" }, types: ["recipe"] } }`. Default: none.
   */
  taxonomies?: TaxonomyOptions | undefined;
  /**
   * Turns raw text into the HTML that is shown. Default: adds paragraphs and typographic signs,
   * removes block delimiters and sanitises. Set it if your site renders blocks or Markdown itself.
   */
  render?: Render | undefined;
  /**
   * Your short codes, at most 100, in addition to WordPress's: `{ price: ({ id }) => "<b>9
   * €</b>" }`. Default: none. The HTML is shown as it is, at most 1 MiB in one content, and cached
   * until something on the site changes. A function that throws, or takes more than 5 s, is logged,
   * and the short code shown as it is written.
   */
  shortcodes?: ShortCodes | undefined;
  /**
   * Adds `width`, `height`, `srcset`, `sizes`, `decoding` and `loading` to the images in contents,
   * as WordPress does. Default: `true`. Set it to `false` if your site makes its own.
   */
  responsiveImages?: boolean | undefined;
  /** Called after every change that this process made. Its errors are logged. Default: none. */
  changed?: ((change: ContentChanged) => unknown) | undefined;
  /** Embeds of other sites' pages, which editors get from the route `/oembed/1.0/proxy`. */
  embeds?: EmbedOptions | undefined;
  /** The theme, patterns and block types that the block editor asks for. */
  editor?: EditorOptions | undefined;
  /** Lets pages of other origins sign in and write. Default: they only read public content. */
  cors?: ContentCorsOptions | undefined;
  /**
   * `pass` leaves paths that are not of this service to the host; `answer` responds with 404.
   * Default: `pass`. Paths below `/core`, `/oembed` and the other first segments of the service are
   * never passed on, and, if `namespace` is `wp`, neither are WordPress's other namespaces, such as
   * `/wp-site-health/v1`.
   */
  unknownPaths?: "pass" | "answer" | undefined;
  limits?: ContentLimits | undefined;
  /** As in `createWebhooks`. Default `true`. */
  awaitStorage?: boolean | undefined;
  /** As in `createWebhooks`. */
  clock?: Clock | undefined;
  /** Default: `console`, for warnings and errors; `false` logs nothing. */
  logger?: Logger | false | undefined;
  /** As in `createWebhooks`. */
  telemetry?: Telemetry | undefined;
}

/**
 * Types of posts in addition to the built-in ones, by name. A name has at most 20 lower-case
 * letters, digits, dashes and underscores. At most 50.
 *
 * @example
 * ```ts
 * types: {
 *   recipe: {
 *     base: "recipes",
 *     labels: { name: "Recipes", singular: "Recipe" },
 *     supports: ["title", "editor", "excerpt", "thumbnail", "revisions"],
 *     taxonomies: ["cuisine", "post_tag"],
 *   },
 * },
 * ```
 */
export interface TypeOptions {
  [name: string]: {
    /** The segment in paths: `recipes` in `/core/v2/recipes`. Default: the name. */
    base?: string | undefined;
    /** The texts that editors and menus show: `{ name: "Recipes", singular: "Recipe" }`. */
    labels: { name: string; singular: string };
    description?: string | undefined;
    /** The fields and features of the type, as in WordPress. Default: `["title", "editor"]`. */
    supports?: readonly TypeFeature[] | undefined;
    /** `category`, `post_tag` and declared taxonomies. Default: none. */
    taxonomies?: readonly string[] | undefined;
    /** True if an item may be below another one, as a page may. Default: `false`. */
    hierarchical?: boolean | undefined;
    /**
     * False for items without an address on the website, which only those who may edit such items
     * read. Default: `true`.
     */
    public?: boolean | undefined;
    /**
     * `recipe`, or `["story", "stories"]`, makes the capabilities `edit_recipes`, `publish_recipes`
     * and so on, which the option `roles` gives. Default: `post`, with the capabilities of posts.
     */
    capabilityType?: string | readonly [singular: string, plural: string] | undefined;
    /** Begins the paths on the website: `recipe` in `/recipe/soup/`. Default: the name. */
    path?: string | undefined;
    /** The icon that editors show: `dashicons-carrot`. Default: none. */
    icon?: string | undefined;
  };
}

/**
 * Taxonomies in addition to the built-in ones, by name. The rules for names are those of types. At
 * most 50.
 *
 * @example
 * ```ts
 * taxonomies: { cuisine: { base: "cuisines", labels: { name: "Cuisines", singular: "Cuisine" } } },
 * ```
 */
export interface TaxonomyOptions {
  [name: string]: {
    /** The segment in paths, and the field of posts with the ids. Default: the name. */
    base?: string | undefined;
    labels: { name: string; singular: string };
    description?: string | undefined;
    /** True if a term may be below another one, as a category may. Default: `false`. */
    hierarchical?: boolean | undefined;
    /** False if only those who may edit posts read the terms. Default: `true`. */
    public?: boolean | undefined;
    /** `post`, `page` and declared types that have it. Types can also name it. Default: none. */
    types?: readonly string[] | undefined;
    /** Who may do what. Default: `manage_categories`, and `edit_posts` to assign terms. */
    capabilities?:
      | {
          manage_terms?: string | undefined;
          edit_terms?: string | undefined;
          delete_terms?: string | undefined;
          assign_terms?: string | undefined;
        }
      | undefined;
    /** Begins the paths of terms on the website. Default: the name. */
    path?: string | undefined;
  };
}

/** The pages of other origins that may sign in, such as an editor on a separate host. */
export interface ContentCorsOptions {
  /**
   * Origins whose pages may send credentials, read personal responses and write. Default: none;
   * pages of any origin read public content.
   */
  origins?: readonly string[] | undefined;
  /**
   * Request headers that these pages may send in addition to those of WordPress's clients and
   * `If-Unmodified-Since`. Default: none. Add one if `authenticate` or a proxy in front of the
   * service reads it.
   */
  allowedHeaders?: readonly string[] | undefined;
}

/** Embeds of other sites' pages: which sites are asked, and what that may cost. */
export interface EmbedOptions {
  /**
   * Fetches pages of other sites: their embeds, and the details of pages that editors link to.
   * Default: `true`. The site's posts can be embedded either way.
   */
  enabled?: boolean | undefined;
  /**
   * Providers tried before the built-in ones: `[{ pages: ["https://*.example.org/videos/*"],
   * endpoint: "https://example.org/oembed" }]`. Default: none.
   */
  providers?: readonly EmbedProvider[] | undefined;
  /**
   * Fetches the page of an unknown site to find the oEmbed endpoint it names. Default: `true`. Set
   * it to `false` to contact known providers only.
   */
  discover?: boolean | undefined;
  /** Time limit of one embed or linked page, with all its requests. Default: 5000. */
  timeoutMs?: number | undefined;
  /**
   * Cache for embeds, and another one of that size for linked pages; 0 turns them off. Default: 4
   * MiB.
   */
  cacheBytes?: number | undefined;
  /**
   * Destinations in addition to public hosts over HTTPS at the default port. Default: none.
   *
   * @example
   * // In production: a wiki in your own network.
   * destinations: { allow: ["wiki.internal"] }
   */
  destinations?:
    | {
        /** As `destinations.allowHttp` of `createWebhooks`. Default: `false`. */
        allowHttp?: boolean | undefined;
        /**
         * As `destinations.allowPrivateNetworks` of `createWebhooks`; allows ports other than the
         * default one, too. Default: `false`. Editors can then reach your whole network.
         */
        allowPrivateNetworks?: boolean | undefined;
        /**
         * As `destinations.allow` of `createWebhooks`; the default port is still required. Default:
         * none.
         */
        allow?: readonly string[] | undefined;
        /** As `destinations.ca` of `createWebhooks`. */
        ca?: string | Uint8Array | undefined;
        /** As `destinations.resolve` of `createWebhooks`. */
        resolve?: Resolve | undefined;
        /** As `destinations.proxy` of `createWebhooks`. */
        proxy?: string | undefined;
      }
    | undefined;
}

/** The largest bodies, responses and caches. */
export interface ContentLimits {
  /**
   * Largest JSON or form body; for GET, DELETE and anonymous requests at most 64 KiB. Default: 2
   * MiB. Raise it for very long posts.
   */
  requestBytes?: number | undefined;
  /**
   * Time for a JSON or form body, and for the first and each further part of an upload; a slower
   * one is refused with 408. Default: 10 s. Raise it for slow clients: 2 MiB in 10 seconds need 1.7
   * Mbit/s.
   */
  bodyMs?: number | undefined;
  /**
   * Longest text of a user without `unfiltered_html`; a longer one is refused with 413. All texts
   * of one request, a batch included, may have four times as many characters. Default: 65 536.
   * Sanitising takes CPU, so raise it with care.
   */
  filteredCharacters?: number | undefined;
  /** Most bytes of records in one list; a longer one is refused with 413. Default: 8 MiB. */
  responseBytes?: number | undefined;
  /** Largest uploaded file. Default: 32 MiB. */
  uploadBytes?: number | undefined;
  /**
   * Lowest average rate of an upload that takes longer than `bodyMs`; a slower one is refused with
   * 408. Default: 4 KiB. Lower it for clients on very slow networks.
   */
  uploadBytesPerSecond?: number | undefined;
  /** Memory for cached records and responses, in total. Default: 64 MiB. */
  cacheBytes?: number | undefined;
  /** Revisions kept for each post. Default: 100. */
  revisions?: number | undefined;
  /**
   * Wrong passwords for one protected post, in single requests and lists together, in this process;
   * 0 means no limit. Default: 30.
   */
  passwordsPerMinute?: number | undefined;
}

/** The options of `createApplicationPasswords`. */
export interface ApplicationPasswordOptions {
  /** Required. The storage of the content. */
  storage: ContentStorage;
  /**
   * Required. Finds a user by the name that a program signs in with, such as a slug or an e-mail
   * address; returns `null` or `undefined` for nobody. The name has at most 255 characters.
   */
  findUser: (
    name: string,
  ) => { id: number } | null | undefined | PromiseLike<{ id: number } | null | undefined>;
  /**
   * Returns the IP address of the client, for `last_ip`, and to limit failures for each address.
   * Default: none; failures are then limited for each user name.
   */
  getAddress?: ((request: HttpRequest) => string | undefined) | undefined;
  /** Accepts passwords over plain HTTP too, where others can read them. Default: `false`. */
  allowHttp?: boolean | undefined;
  /**
   * The page on which users give a program access, which the index of the interface names. Default:
   * none.
   */
  authorizationUrl?: string | undefined;
  /**
   * Failed sign-ins per minute: of each address, and of each user name from that address. 0 sets no
   * limit. Default: 30.
   */
  failuresPerMinute?: number | undefined;
  /** As in `createWebhooks`. */
  clock?: Clock | undefined;
  /** As in `createWebhooks`. */
  logger?: Logger | false | undefined;
}
