/** Every option of `createPortal`: its type for hosts, and the table of defaults and ranges. */

import type { Content } from "../content/service.js";
import type { Clock } from "../core/clock.js";
import { PostbellError } from "../core/errors.js";
import { hasMethods, hostOptions } from "../core/host-options.js";
import type { Logger, LoggerOption } from "../core/logger.js";
import { hook, type OptionValues, readOptions, value, wholeNumber } from "../core/options.js";
import { parseUrl } from "../core/parse-url.js";
import type { HttpRequest } from "../http/types.js";
import type { Subscriber } from "../webhooks/access.js";
import type { Webhooks } from "../webhooks/service.js";
import { findTextFaults, isLanguageTag, type PortalTexts, portalTexts } from "./texts/languages.js";
import { DEFAULT_THEME, findContrastFault, isColor, isFontList, type PortalTheme } from "./theme.js";

type Awaitable<T> = T | PromiseLike<T>;

/** Who looks at the portal, as the host knows him. */
export interface Visitor {
  /** Shown on the page. */
  readonly name: string;
  /**
   * The subscriber on whose behalf webhooks are read and changed. Without it the webhooks part is
   * hidden. A webhook that is registered here belongs to the API key `id`.
   */
  readonly subscriber?: Subscriber | undefined;
  /**
   * The user on whose behalf content is read and changed, with that user's permissions. Without it
   * the content part is hidden.
   */
  readonly userId?: number | undefined;
  /**
   * True if the visitor operates the whole service, and may list the accounts of all subscribers.
   * The `audit` hook of the webhook service hears of it with the visitor's `name`, which then must
   * have 1 to 256 characters. Default: false.
   */
  readonly operator?: boolean | undefined;
  /**
   * True if the visitor may see the bodies of notifications, which contain records. In any case,
   * only a subscriber that may manage the webhook, or an operator, sees them. Default: false.
   */
  readonly canReadRecords?: boolean | undefined;
}

/**
 * Returns the visitor that a request comes from, as the host's session says, or `null` (401). It is
 * called for the page and for each of its requests. If it throws or takes longer than 5 s: 503.
 */
export type Authorize = (request: HttpRequest) => Awaitable<Visitor | null | undefined>;

/** A post or page whose editor the portal asks for. Its texts are as they are stored. */
export interface EditableRecord {
  readonly id: number;
  readonly type: "post" | "page";
  readonly slug: string;
  /** `draft`, `publish` … */
  readonly status: string;
  readonly title: string;
}

/**
 * Returns the `http:` or `https:` address of an editor for a post or page, or `null` without one.
 * It is called when a visitor opens a record that this visitor may edit. If it throws, takes longer
 * than 5 s or returns anything else, that is logged, and the page has no link.
 */
export type EditUrl = (record: EditableRecord) => Awaitable<string | null | undefined>;

/** The part of a webhook service that the portal uses. */
export type PortalWebhooks = Pick<Webhooks, "as" | "schedule"> &
  Partial<Pick<Webhooks, "audit" | "accounts">>;

/** The options of `createPortal`. */
export interface PortalOptions {
  /** The service from `createWebhooks`; without it the portal shows no webhooks. */
  webhooks?: PortalWebhooks | undefined;
  /** The service from `createContent`; without it the portal shows no content. */
  content?: Content | undefined;
  /**
   * Returns the visitor `{ name, subscriber?, userId?, operator?, canReadRecords? }` from your own
   * session, or `null`.
   */
  authorize: Authorize;
  /**
   * Returns the address at which your block editor opens a post or page, or `null`: the page then
   * links to it. Default: none.
   */
  editUrl?: EditUrl | undefined;
  /**
   * The language of the page: `en`, `de` or one of `texts`. With `auto`, the one of them that the
   * browser prefers by `Accept-Language`, or English. Default: `auto`.
   */
  language?: string | undefined;
  /**
   * The texts of the page in further languages, by language tag such as `fr` or `pt-BR`, or other
   * texts for `en` and `de`. A table must be complete. Start from a copy of `portalTexts.en`. At
   * most 50 languages. Default: none.
   */
  texts?: Readonly<Record<string, PortalTexts>> | undefined;
  /** The title of the page. Default: `Postbell`. */
  title?: string | undefined;
  /** The look of the page. It is checked when the portal is created. */
  theme?:
    | {
        /**
         * Colour of buttons, marks and the favicon: `#rrggbb`. Links have it too, or a darker
         * shade. It needs a contrast (WCAG) of 4.5 with the text on it, which is dark or white, and
         * of 3 with the page. Default: `#0b57b5`.
         */
        accent?: string | undefined;
        /**
         * The same for visitors who prefer dark pages. Default: `accent` if you set it, which then
         * must be readable on both pages, otherwise `#8bbcff`.
         */
        accentDark?: string | undefined;
        /** Radius of the corners of controls in px, 0 to 16. Cards have double. Default: 4. */
        radius?: number | undefined;
        /**
         * Font families in order, such as `Inter, Segoe UI, sans-serif`: up to 200 characters of
         * letters, digits, spaces and hyphens, with commas. The page loads no font files, so a
         * family must be installed. Default: `system-ui, sans-serif`.
         */
        font?: string | undefined;
        /**
         * The address of a logo in front of the title: a path of this host, an `https:` URL, or an
         * image as a `data:` URL of up to 100 000 characters. Default: none.
         */
        logo?: string | undefined;
      }
    | undefined;
  /**
   * The origins of the pages that may show the portal in a frame, such as
   * `https://app.example.com`; `self` is the portal's origin. Default: none. The cookie of your
   * session then needs `SameSite=None; Secure` unless both pages are of one site.
   */
  frameAncestors?: readonly string[] | undefined;
  /**
   * Requests about webhooks that the page may make per account, in this process; beyond it the
   * response is 429, and 0 means no limit. A list with statistics counts one more for each webhook
   * that it can have. Default: 3 000.
   */
  requestsPerMinute?: number | undefined;
  clock?: Clock | undefined;
  /** Default: `console`, for warnings and errors; `false` logs nothing. */
  logger?: Logger | false | undefined;
}

const MAX_LOGO = 100_000;
const MAX_LANGUAGES = 50;
/** The missing texts that an error names. */
const MAX_NAMED = 10;

/** An origin of this form cannot add anything to the policy of the page. */
const isOrigin = (text: string): boolean => /^https?:\/\/[a-z0-9.-]{1,253}(?::[0-9]{1,5})?$/.test(text);

function isLogo(value: unknown): boolean {
  if (typeof value !== "string" || value.length > MAX_LOGO) return false;
  if (value.startsWith("data:image/")) return true;
  // A browser drops tabs and line breaks, and reads `/\\` as `//`, which begins another origin.
  if (/\p{Cc}/u.test(value)) return false;
  if (value.startsWith("/")) return !/^\/[/\\]/.test(value) && parseUrl(value, "https://host/") !== undefined;
  const url = parseUrl(value);
  return url?.protocol === "https:" && isOrigin(url.origin);
}

const isFrameAncestor = (value: unknown): boolean =>
  value === "self" || (typeof value === "string" && isOrigin(value) && parseUrl(value)?.origin === value);

/** Names, defaults and ranges; the table in docs/options.md is checked against it. */
export const portalOptions = {
  webhooks: value<PortalWebhooks | undefined>(
    "a service of createWebhooks",
    hasMethods("as", "schedule"),
    undefined,
    "a service",
  ),
  content: value<Content | undefined>(
    "a service of createContent",
    (value) =>
      hasMethods("handleAs", "restoreRevision", "preview")(value) &&
      hasMethods("handle")((value as Content).uploads),
    undefined,
    "a service",
  ),
  authorize: hook<Authorize>(),
  editUrl: hook<EditUrl>(),
  language: value<string>(
    "auto, or a language tag such as de",
    (value) => typeof value === "string" && (value === "auto" || isLanguageTag(value)),
    "auto",
    "auto, or a language tag",
  ),
  texts: value<Readonly<Record<string, PortalTexts>>>(
    `an object with a table for each of up to ${MAX_LANGUAGES} language tags`,
    (value) =>
      typeof value === "object" &&
      value !== null &&
      !Array.isArray(value) &&
      Object.keys(value).length <= MAX_LANGUAGES,
    {},
    "tables by language tag",
  ),
  title: value<string>(
    "text of 1 to 100 characters",
    (value) => typeof value === "string" && value.length >= 1 && value.length <= 100,
    "Postbell",
    "text",
  ),
  theme: {
    accent: value<string>("a colour such as #0b57b5", isColor, DEFAULT_THEME.accent, "#rrggbb"),
    accentDark: value<string | null>("a colour such as #8bbcff", isColor, null, "#rrggbb"),
    radius: wholeNumber("px", DEFAULT_THEME.radius, { min: 0, max: 16 }),
    font: value<string>(
      "a list of font families such as Inter, sans-serif",
      isFontList,
      DEFAULT_THEME.font,
      "font families",
    ),
    logo: value<string | null>("a path, an https: URL, or an image as a data: URL", isLogo, null, "address"),
  },
  frameAncestors: value<string[]>(
    "a list of up to 20 origins such as https://app.example.com, or self",
    (value) => Array.isArray(value) && value.length <= 20 && value.every(isFrameAncestor),
    [],
    "origins",
  ),
  requestsPerMinute: wholeNumber("count", 3_000, { min: 0 }),
  ...hostOptions,
};

/** The options of `createPortal` with their defaults. */
export interface PortalSettings {
  webhooks: PortalWebhooks | undefined;
  content: Content | undefined;
  authorize: Authorize;
  editUrl: EditUrl | undefined;
  /** The tables of the languages that the page may have; the first one is the default. */
  languages: Map<string, PortalTexts>;
  title: string;
  theme: PortalTheme;
  frameAncestors: string[];
  requestsPerMinute: number;
  clock: Clock;
  logger: LoggerOption;
}

const refuse = (field: string, message: string): never => {
  throw new PostbellError("invalid_option", `createPortal: ${message}`, { field });
};

/** Refuses a table that is incomplete or cannot be used. */
function checkTexts(language: string, table: PortalTexts): void {
  const field = `texts.${language.slice(0, 40)}`;
  if (!isLanguageTag(language))
    refuse(field, `${field} is named by no language tag; use one such as fr or pt-BR.`);
  const { missing, wrong } = findTextFaults(language, table);
  if (missing.length > 0) {
    const more = missing.length > MAX_NAMED ? ` and ${missing.length - MAX_NAMED} more` : "";
    refuse(
      field,
      `${field} lacks ${missing.slice(0, MAX_NAMED).join(", ")}${more}. Copy them from portalTexts.en and translate them.`,
    );
  }
  if (wrong.length > 0) refuse(field, `${field} has a text that cannot be used: ${wrong[0]}.`);
}

/** Completes the look, and refuses colours that cannot be read. */
function readTheme({ accentDark, ...theme }: OptionValues<typeof portalOptions>["theme"]): PortalTheme {
  const isDefault = theme.accent === DEFAULT_THEME.accent;
  const dark = accentDark ?? (isDefault ? DEFAULT_THEME.accentDark : theme.accent);
  const fault = findContrastFault("accent", theme.accent);
  if (fault !== undefined) refuse("theme.accent", `theme.accent must have ${fault}.`);
  const darkFault = findContrastFault("accentDark", dark);
  if (darkFault !== undefined) {
    const field = accentDark === null ? "theme.accent" : "theme.accentDark";
    const advice = accentDark === null ? " and give it as theme.accentDark" : "";
    refuse(field, `${field} must have ${darkFault}${advice}.`);
  }
  return { ...theme, accentDark: dark };
}

/** Returns the tables of the languages that the page may have. */
function readLanguages(
  language: string,
  texts: Readonly<Record<string, PortalTexts>>,
): Map<string, PortalTexts> {
  for (const [tag, table] of Object.entries(texts)) checkTexts(tag, table);
  const tables = new Map(Object.entries({ ...portalTexts, ...texts }));
  if (language === "auto") return tables;
  const table = tables.get(language);
  if (table === undefined)
    return refuse(
      "language",
      `language must be auto or one of ${[...tables.keys()].join(", ")} (got ${language}); add its texts under texts.`,
    );
  return new Map([[language, table]]);
}

/** Errors: `invalid_option`. */
export function readPortalOptions(options: unknown): PortalSettings {
  const { authorize, language, texts, theme, ...settings } = readOptions(
    "createPortal",
    portalOptions,
    options,
  );
  if (!authorize)
    return refuse("authorize", "authorize is missing: it says who may look, by your own session.");
  if (!settings.webhooks && !settings.content)
    refuse("webhooks", "give webhooks, content, or both: there is nothing to show otherwise.");
  return { ...settings, authorize, languages: readLanguages(language, texts), theme: readTheme(theme) };
}
