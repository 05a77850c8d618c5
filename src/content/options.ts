/** Every option of `createContent`: its type for hosts, and the one table of defaults and ranges that it is read by. */

import type { Clock } from "../core/clock.js";
import { PostbellError } from "../core/errors.js";
import { hasMethods, hostOptions } from "../core/host-options.js";
import type { Logger } from "../core/logger.js";
import { flag, hook, type OptionValues, oneOf, readOptions, value, wholeNumber } from "../core/options.js";
import type { Telemetry } from "../core/telemetry.js";
import { BODY_MS } from "../http/body-chunks.js";
import type { HttpRequest } from "../http/types.js";
import { checkUrl } from "../outbound/address-policy.js";
import { destinationOptions } from "../outbound/destination-options.js";
import type { Resolve } from "../outbound/resolver.js";
import type { RoleOptions } from "./auth/roles.js";
import { type EmbedProvider, isPattern } from "./embeds/providers.js";
import type { FileStore } from "./files.js";
import type { ImageTool } from "./media/image-tool.js";
import type { ContentChanged } from "./records/record-changes.js";
import { DEFAULT_FILTERED_CHARACTERS, type Render, type SiteOptions } from "./site.js";
import type { ContentStorage } from "./store.js";
import type { UsersOption } from "./users/users.js";

type Awaitable<T> = T | PromiseLike<T>;

/** Who makes the request: the id of one of `users`, or `null` for somebody unknown. A throw is answered with 401. */
export type AuthenticateContent = (
  request: HttpRequest,
) => Awaitable<{ readonly id: number } | null | undefined>;

const isAddress = (given: unknown): boolean =>
  typeof given === "string" && URL.canParse(given) && /^https?:\/\//.test(given) && !given.endsWith("/");

const isText = (given: unknown): boolean => typeof given === "string";

const isOriginList = (given: unknown): boolean =>
  Array.isArray(given) && given.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin);

const isProviderList = (given: unknown): boolean =>
  Array.isArray(given) &&
  given.every(
    (provider: Partial<EmbedProvider> | null) =>
      Array.isArray(provider?.pages) &&
      provider.pages.every(isPattern) &&
      typeof provider.endpoint === "string" &&
      checkUrl(provider.endpoint, { allowHttp: true, allowPrivateNetworks: true }).ok,
  );

const address = (what: string) =>
  value<string | undefined>(
    `${what}, such as 'https://www.example.org', without a slash at its end`,
    isAddress,
    undefined,
    "URL",
  );

/** Names, defaults and ranges; the table in docs/options.md is checked against it. */
export const contentOptions = {
  storage: value<ContentStorage | undefined>(
    "a storage, such as memoryStorage() makes",
    hasMethods("content"),
    undefined,
  ),
  files: value<FileStore | undefined>(
    "a file store, such as memoryFiles() or diskFiles() make",
    hasMethods("stage", "stat", "read", "remove", "list"),
    undefined,
  ),
  images: value<ImageTool | undefined>(
    "a tool for images, such as sharpImages() makes",
    hasMethods("resize", "edit"),
    undefined,
  ),
  site: {
    name: value<string>("a text", isText, ""),
    description: value<string>("a text", isText, ""),
    url: address("the address of the website"),
    home: address("the address of its first page"),
    timezone: value<string>("an IANA time zone or an offset such as '+05:30'", isText, "UTC"),
    uploads: address("the address of the uploaded files"),
    templates: value<readonly string[]>(
      "a list of names",
      (given) => Array.isArray(given) && given.every(isText),
      Object.freeze([]),
    ),
  },
  consistency: oneOf(["strong", "eventual"], "strong"),
  namespace: value<string>(
    "a name of lower-case letters, digits and dashes",
    (given) =>
      typeof given === "string" &&
      /^[a-z][a-z0-9-]{0,31}$/.test(given) &&
      !["oembed", "batch"].includes(given),
    "core",
  ),
  authenticate: hook<AuthenticateContent>(),
  users: value<UsersOption | undefined>(
    "a list of users, or an object with the functions get and list",
    (given) => Array.isArray(given) || hasMethods("get", "list")(given),
    undefined,
  ),
  roles: value<RoleOptions | undefined>(
    "an object of roles",
    (given) => typeof given === "object" && given !== null,
    undefined,
  ),
  render: hook<Render>(),
  changed: hook<(change: ContentChanged) => unknown>(),
  embeds: {
    enabled: flag(true),
    providers: value<readonly EmbedProvider[]>(
      "a list of { pages, endpoint }, where pages are such as 'https://*.example.org/videos/*'",
      isProviderList,
      Object.freeze([]),
      "list",
    ),
    discover: flag(true),
    timeoutMs: wholeNumber("ms", 5_000, { min: 1, max: 60_000 }),
    cacheBytes: wholeNumber("bytes", 4_194_304, { min: 0 }),
    destinations: destinationOptions,
  },
  cors: {
    origins: value<readonly string[]>(
      "a list of origins such as 'https://www.example.org'",
      isOriginList,
      Object.freeze([]),
    ),
  },
  unknownPaths: oneOf(["pass", "answer"], "pass"),
  limits: {
    bodyBytes: wholeNumber("bytes", 2_097_152, { min: 1024, max: 67_108_864 }),
    bodyMs: wholeNumber("ms", BODY_MS, { min: 100, max: 3_600_000 }),
    filteredCharacters: wholeNumber("count", DEFAULT_FILTERED_CHARACTERS, { min: 1024 }),
    responseBytes: wholeNumber("bytes", 8_388_608, { min: 65_536 }),
    uploadBytes: wholeNumber("bytes", 33_554_432, { min: 1024 }),
    uploadBytesPerSecond: wholeNumber("bytes", 4_096, { min: 1 }),
    cacheBytes: wholeNumber("bytes", 67_108_864, { min: 0 }),
    revisions: wholeNumber("count", 100, { min: 1, max: 5_000 }),
    passwordsPerMinute: wholeNumber("count", 30, { min: 0 }),
  },
  ...hostOptions,
  telemetry: value<Telemetry | undefined>(
    "what openTelemetry() or prometheus().telemetry gives",
    hasMethods("record", "observe"),
    undefined,
  ),
};

/** What `createContent` takes. Defaults and units stand in `docs/options.md`. */
export interface ContentOptions {
  /** Where the content is kept. */
  readonly storage: ContentStorage;
  /** Where uploaded files are kept: `memoryFiles()` or `diskFiles({ directory })` of `postbell/files`. Without it uploads are refused. */
  readonly files?: FileStore | undefined;
  /**
   * `strong`: every answer shows all that was stored, by any process, before it was asked for, which costs a round trip to a storage outside of this process. `eventual`: what other processes
   * changed is seen a second later at most; without `start()` a request may have to wait for that. What this process changed is seen at once. Default: `strong`.
   */
  readonly consistency?: "strong" | "eventual" | undefined;
  /** Makes smaller versions of uploaded images, and edits them: `sharpImages()` of `postbell/images`. Without it images are stored as they come. */
  readonly images?: ImageTool | undefined;
  readonly site: SiteOptions;
  /** First part of the content routes: `core` makes `/core/v2/posts`. WordPress's own clients expect `wp`. Default: `core`. */
  readonly namespace?: string | undefined;
  readonly authenticate: AuthenticateContent;
  readonly users: UsersOption;
  /** Roles beside the reference's five. */
  readonly roles?: RoleOptions | undefined;
  /** Turns raw texts into what is shown. Default: paragraphs, typographic signs, no block delimiters, filtered. */
  readonly render?: Render | undefined;
  /** Told after every change that this process made. What it throws is logged. */
  readonly changed?: ((change: ContentChanged) => unknown) | undefined;
  /** Embeds of other sites' pages, which editors get through the route `/oembed/1.0/proxy`. */
  readonly embeds?:
    | {
        /** Whether other sites are asked at all; the site's own posts can be embedded either way. Default: true. */
        readonly enabled?: boolean | undefined;
        /** Sites that are asked beside the built-in ones, and before those. */
        readonly providers?: readonly EmbedProvider[] | undefined;
        /** Whether the page of an unknown site is fetched, to see whether it names an endpoint of its own. Default: true. */
        readonly discover?: boolean | undefined;
        /** For all that one embed takes. Default: 5000. */
        readonly timeoutMs?: number | undefined;
        /** For answers kept in memory; 0 keeps none. Default: 4 MiB. */
        readonly cacheBytes?: number | undefined;
        /** For tests and local networks: what may be asked beside public hosts over HTTPS at their default port. Default: nothing. */
        readonly destinations?:
          | {
              readonly allowHttp?: boolean | undefined;
              /** Lets other ports pass, too. */
              readonly allowPrivateNetworks?: boolean | undefined;
              /** PEM certificates trusted beside Node's built-in roots. */
              readonly ca?: string | Uint8Array | undefined;
              /** Gives the addresses of a name. Default: those that the system's DNS servers give. */
              readonly resolve?: Resolve | undefined;
            }
          | undefined;
      }
    | undefined;
  /** Origins whose pages may send credentials. Everybody else's may read what is public. */
  readonly cors?: { readonly origins?: readonly string[] | undefined } | undefined;
  /** What is done with a path that is not the content service's: `pass` lets the host go on, `answer` says 404. Default: `pass`. */
  readonly unknownPaths?: "pass" | "answer" | undefined;
  readonly limits?:
    | {
        /** Of a JSON or form body. Default: 2 MiB. */
        readonly bodyBytes?: number | undefined;
        /**
         * How long to wait for a body, in milliseconds; of an upload, for its first bytes and for each next ones. A slower one is
         * answered 408. Default: 10 s.
         */
        readonly bodyMs?: number | undefined;
        /**
         * Characters of one text by somebody without `unfiltered_html`, such as a contributor; a longer one is answered with 413. Filtering it
         * occupies the process, so raise it with care. Default: 65 536.
         */
        readonly filteredCharacters?: number | undefined;
        /** Of the records in one list; a longer list is answered with 413, which says to ask for fewer. Default: 8 MiB. */
        readonly responseBytes?: number | undefined;
        /** Of one uploaded file. Default: 32 MiB. */
        readonly uploadBytes?: number | undefined;
        /** What an upload that takes longer than `bodyMs` must bring on average. A slower one is answered 408. Default: 4 KiB. */
        readonly uploadBytesPerSecond?: number | undefined;
        /** For records and answers kept in memory, in all. Default: 64 MiB. */
        readonly cacheBytes?: number | undefined;
        /** Kept of each post. Default: 100. */
        readonly revisions?: number | undefined;
        /** Wrong passwords tried on one protected post, alone and in lists together; each process counts its own. Default: 30; 0 sets no limit. */
        readonly passwordsPerMinute?: number | undefined;
      }
    | undefined;
  readonly clock?: Clock | undefined;
  readonly logger?: Logger | undefined;
  /** Takes spans and metrics. Default: nothing is reported, and that costs nothing. */
  readonly telemetry?: Telemetry | undefined;
}

const refuse = (field: string, message: string): never => {
  throw new PostbellError("invalid_option", `createContent: ${message}`, { field });
};

type Settings = OptionValues<typeof contentOptions>;

export type ContentSettings = Omit<Settings, "storage" | "authenticate" | "users" | "site"> & {
  readonly storage: ContentStorage;
  readonly authenticate: AuthenticateContent;
  readonly users: UsersOption;
  readonly site: SiteOptions;
};

/** Reads and checks the options. Pure; errors: `invalid_option`. */
export function readContentSettings(options: unknown): ContentSettings {
  const settings = readOptions("createContent", contentOptions, options);
  const { storage, site, authenticate, users } = settings;
  if (!storage) refuse("storage", "storage is missing: give memoryStorage(), for example.");
  if (!site.url) refuse("site.url", "site.url is missing: it is the address of the website.");
  if (!authenticate)
    refuse("authenticate", "authenticate is missing: it says who makes a request; () => null knows nobody.");
  if (!users) refuse("users", "users is missing: a list of those who may sign in; [] has nobody.");
  return settings as ContentSettings;
}
