/** Checks the options of `createContent` against one table of defaults and ranges. */

import { PostbellError } from "../core/errors.js";
import { hasMethods, hostOptions, telemetryOption } from "../core/host-options.js";
import { flag, hook, type OptionValues, oneOf, readOptions, value, wholeNumber } from "../core/options.js";
import { BODY_MS } from "../http/body-chunks.js";
import { checkUrl } from "../outbound/address-policy.js";
import { destinationOptions } from "../outbound/destination-options.js";
import type { RoleOptions } from "./auth/roles.js";
import type { ApplicationPasswords, AuthenticateContent } from "./callers.js";
import type { ApplicationPasswordOptions, TaxonomyOptions, TypeOptions } from "./content-options.js";
import type {
  BlockPattern,
  BlockPatternCategory,
  BlockType,
  EditorTheme,
  RenderBlock,
} from "./editor/editor-options.js";
import { type EmbedProvider, isPattern } from "./embeds/providers.js";
import type { FileStore } from "./files.js";
import type { ImageTool } from "./media/image-tool.js";
import { checkMenuLocations, type MenuLocationsOptions } from "./menu-locations/menu-locations.js";
import type { MetaOptions } from "./posts/declared-meta.js";
import type { ContentChanged } from "./records/record-changes.js";
import type { ShortCodes } from "./rendering/run-short-codes.js";
import {
  checkSettingOptions,
  type SettingsOptions,
  type WritableSetting,
  type WriteSettings,
} from "./settings/setting-fields.js";
import { DEFAULT_FILTERED_CHARACTERS, type Render, type SiteOptions } from "./site.js";
import type { ContentStorage } from "./store.js";
import type { UsersOption } from "./users/users.js";

export type { ContentOptions } from "./content-options.js";

const isAddress = (value: unknown): boolean =>
  typeof value === "string" && URL.canParse(value) && /^https?:\/\//.test(value) && !value.endsWith("/");

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isText = (value: unknown): boolean => typeof value === "string";

const isOriginList = (value: unknown): boolean =>
  Array.isArray(value) && value.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin);

/** A `*` is left out: with credentials, browsers take it for a name. */
const HEADER_NAME = /^[\w!#$%&'+.^`|~-]{1,100}$/;
const MAX_ALLOWED_HEADERS = 100;

const isHeaderList = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length <= MAX_ALLOWED_HEADERS &&
  value.every((name) => typeof name === "string" && HEADER_NAME.test(name));

const isProviderList = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every(
    (provider: Partial<EmbedProvider> | null) =>
      Array.isArray(provider?.pages) &&
      provider.pages.every(isPattern) &&
      typeof provider.endpoint === "string" &&
      checkUrl(provider.endpoint, { allowHttp: true, allowPrivateNetworks: true }).ok,
  );

const MAX_OWN_SHORT_CODES = 100;

const isShortCodes = (value: unknown): boolean =>
  isObject(value) &&
  Object.keys(value as object).length <= MAX_OWN_SHORT_CODES &&
  Object.entries(value as object).every(
    ([name, render]) => /^[\p{L}\p{N}_-]{1,64}$/u.test(name) && typeof render === "function",
  );

const address = (what: string) =>
  value<string | undefined>(
    `${what}, such as 'https://www.example.org', without a slash at its end`,
    isAddress,
    undefined,
    "URL",
  );

const list = <T>(what: string) => value<T[]>(what, Array.isArray, [], "list");

const storageOption = value<ContentStorage | undefined>(
  "a storage, such as memoryStorage() makes",
  hasMethods("content"),
  undefined,
  "a storage",
);

/** Names, defaults and ranges; the table in docs/options.md is checked against it. */
export const contentOptions = {
  storage: storageOption,
  files: value<FileStore | undefined>(
    "a file store, such as memoryFiles() or diskFiles() make",
    hasMethods("stage", "stat", "read", "remove", "list"),
    undefined,
    "a file store",
  ),
  images: value<ImageTool | undefined>(
    "a tool for images, such as sharpImages() makes",
    hasMethods("resize", "edit"),
    undefined,
    "an image tool",
  ),
  site: {
    name: value<string>("a text", isText, ""),
    description: value<string>("a text", isText, ""),
    url: address("the address of the website"),
    home: address("the address of its first page"),
    timezone: value<string>("an IANA time zone or an offset such as '+05:30'", isText, "UTC", "a time zone"),
    uploads: address("the address of the uploaded files"),
    templates: value<string[]>("a list of names", (value) => Array.isArray(value) && value.every(isText), []),
  },
  consistency: oneOf(["strong", "eventual"], "strong"),
  namespace: value<string>(
    "a name of lower-case letters, digits and dashes",
    (value) =>
      typeof value === "string" &&
      /^[a-z][a-z0-9-]{0,31}$/.test(value) &&
      !["oembed", "batch", "wp-block-editor"].includes(value),
    "core",
  ),
  authenticate: hook<AuthenticateContent>(),
  applicationPasswords: value<ApplicationPasswords | undefined>(
    "what createApplicationPasswords() returns",
    hasMethods("authenticate", "identify", "list", "create", "update", "revoke"),
    undefined,
    "application passwords",
  ),
  users: value<UsersOption | undefined>(
    "a list of users, or an object with the functions get and list",
    (value) => Array.isArray(value) || hasMethods("get", "list")(value),
    undefined,
    "users",
  ),
  menuLocations: value<MenuLocationsOptions>("an object of locations", isObject, Object.freeze({}), "object"),
  meta: value<MetaOptions>("an object of post types", isObject, Object.freeze({}), "object"),
  settings: {
    values: value<NonNullable<SettingsOptions["values"]>>(
      "an object of settings",
      isObject,
      Object.freeze({}),
    ),
    writable: value<WritableSetting[]>("a list of names", Array.isArray, []),
    write: hook<WriteSettings>(),
  },
  roles: value<RoleOptions | undefined>(
    "an object of roles",
    (value) => typeof value === "object" && value !== null,
    undefined,
  ),
  types: value<TypeOptions>("an object of types", isObject, Object.freeze({}), "object"),
  taxonomies: value<TaxonomyOptions>("an object of taxonomies", isObject, Object.freeze({}), "object"),
  render: hook<Render>(),
  shortcodes: value<ShortCodes>(
    "an object of at most 100 functions, by names of letters, digits, '-' and '_'",
    isShortCodes,
    Object.freeze({}),
    "object",
  ),
  responsiveImages: flag(true),
  changed: hook<(change: ContentChanged) => unknown>(),
  embeds: {
    enabled: flag(true),
    providers: value<EmbedProvider[]>(
      "a list of { pages, endpoint }, where pages are such as 'https://*.example.org/videos/*'",
      isProviderList,
      [],
      "list",
    ),
    discover: flag(true),
    timeoutMs: wholeNumber("ms", 5_000, { min: 1, max: 60_000 }),
    cacheBytes: wholeNumber("bytes", 4_194_304, { min: 0 }),
    destinations: destinationOptions,
  },
  editor: {
    theme: value<EditorTheme>(
      "an object such as { stylesheet, name, supports }",
      (value) => typeof value === "object" && value !== null && !Array.isArray(value),
      Object.freeze({}),
      "object",
    ),
    patterns: list<BlockPattern>("a list of { name, title, content }"),
    patternCategories: list<BlockPatternCategory>("a list of { name, label }"),
    blockTypes: list<BlockType>("a list of block types such as { name, title, attributes }"),
    renderBlock: hook<RenderBlock>(),
  },
  cors: {
    origins: value<string[]>("a list of origins such as 'https://www.example.org'", isOriginList, [], "list"),
    allowedHeaders: value<string[]>("a list of at most 100 names of headers", isHeaderList, [], "list"),
  },
  unknownPaths: oneOf(["pass", "answer"], "pass"),
  limits: {
    requestBytes: wholeNumber("bytes", 2_097_152, { min: 1024, max: 67_108_864 }),
    bodyMs: wholeNumber("ms", BODY_MS, { min: 100, max: 3_600_000 }),
    filteredCharacters: wholeNumber("count", DEFAULT_FILTERED_CHARACTERS, { min: 1024 }),
    responseBytes: wholeNumber("bytes", 8_388_608, { min: 65_536 }),
    uploadBytes: wholeNumber("bytes", 33_554_432, { min: 1024 }),
    uploadBytesPerSecond: wholeNumber("bytes", 4_096, { min: 1 }),
    cacheBytes: wholeNumber("bytes", 67_108_864, { min: 0 }),
    revisions: wholeNumber("count", 100, { min: 1, max: 5_000 }),
    passwordsPerMinute: wholeNumber("count", 30, { min: 0 }),
  },
  awaitStorage: flag(true),
  ...hostOptions,
  telemetry: telemetryOption,
};

/** Names, defaults and ranges; the table in docs/options.md is checked against it. */
export const applicationPasswordOptions = {
  storage: storageOption,
  findUser: hook<ApplicationPasswordOptions["findUser"]>(),
  getAddress: hook<NonNullable<ApplicationPasswordOptions["getAddress"]>>(),
  allowHttp: flag(false),
  authorizationUrl: value<string | undefined>(
    "an address such as 'https://www.example.org/authorize'",
    (value) => typeof value === "string" && URL.canParse(value) && /^https?:\/\//.test(value),
    undefined,
    "URL",
  ),
  failuresPerMinute: wholeNumber("count", 30, { min: 0 }),
  ...hostOptions,
};

const refuse = (field: string, message: string): never => {
  throw new PostbellError("invalid_option", `createContent: ${message}`, { field });
};

/** The options after they were checked and completed with their defaults. */
export type ContentConfig = Omit<
  OptionValues<typeof contentOptions>,
  "storage" | "authenticate" | "users" | "site"
> & {
  storage: ContentStorage;
  authenticate: AuthenticateContent;
  users: UsersOption;
  site: SiteOptions;
};

/** @throws PostbellError `invalid_option`, with the path of the option as `field` */
export function readContentConfig(options: unknown): ContentConfig {
  const config = readOptions("createContent", contentOptions, options);
  const { storage, site, authenticate, users } = config;
  if (!storage) refuse("storage", "storage is missing; pass one, such as memoryStorage().");
  if (!site.url)
    refuse(
      "site.url",
      "site.url is missing; pass the address of the website, such as 'https://www.example.org'.",
    );
  if (!authenticate)
    refuse(
      "authenticate",
      "authenticate is missing; pass a function that identifies the user of a request, such as () => null for anonymous requests only.",
    );
  if (!users) refuse("users", "users is missing; pass the list of users, such as [] for none.");
  checkSettingOptions(config.settings);
  checkMenuLocations(config.menuLocations);
  return config as ContentConfig;
}
