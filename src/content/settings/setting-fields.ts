/**
 * The table of settings, in the order of WordPress: the schema of each, the value it has on a new
 * site, and how a written value is cleaned. Below it is the option of the host.
 */

import { PostbellError } from "../../core/errors.js";
import type { Json, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import { LENGTHS } from "../argument-bounds.js";
import type { User } from "../records/records.js";
import { escapeSetting, stripAll } from "../text/markup.js";

/** The settings of a site, by the names that `/settings` gives them. */
export interface SettingValues {
  readonly title: string;
  readonly description: string;
  readonly url: string;
  /** The address of the site's administrators; `null` if it is not known. */
  readonly email: string | null;
  /** A name such as `Europe/Berlin`; empty if the site has an offset or UTC. */
  readonly timezone: string;
  /** In the letters of PHP: `F j, Y`. */
  readonly date_format: string;
  readonly time_format: string;
  /** 0: Sunday. */
  readonly start_of_week: number;
  /** `en_US`, `de_DE` … */
  readonly language: string;
  readonly use_smilies: boolean;
  /** The id of the category of posts without any other. */
  readonly default_category: number;
  /** `0`: posts have no format. */
  readonly default_post_format: string;
  readonly posts_per_page: number;
  /** `posts`, or `page` for a separate page. */
  readonly show_on_front: string;
  /** The id of a page; 0 for none. */
  readonly page_on_front: number;
  readonly page_for_posts: number;
  readonly default_ping_status: "open" | "closed";
  readonly default_comment_status: "open" | "closed";
  /** The id of an image; `null` for none. */
  readonly site_logo: number | null;
  /** The id of an image; 0 for none. */
  readonly site_icon: number;
}

/** The name of a setting. */
export type SettingName = keyof SettingValues;

/** A setting that follows from the options of the site or from its records, not from a client. */
export type FixedSetting = "url" | "timezone" | "default_category";

/** The settings that administrators may write if the host allows it. */
export type WritableSetting = Exclude<SettingName, FixedSetting>;

/** The settings that the host gives a value, besides its name and description in `site`. */
export type HostSetting = Exclude<WritableSetting, "title" | "description">;

export interface SettingField<T> {
  schema: Schema;
  /** Absent: the value follows from the site. */
  initial?: T;
  /** Returns the value to store for a written one, which fits the schema. */
  clean?: (value: T) => T;
}

const text = (description: string, title?: string, extra: Schema = {}): Schema => ({
  ...(title === undefined ? {} : { title }),
  description,
  type: "string",
  maxLength: LENGTHS.name,
  ...extra,
});

const integer = (description: string, title?: string): Schema => ({
  ...(title === undefined ? {} : { title }),
  description,
  type: "integer",
});

const OPEN = ["open", "closed"] as const;

/** WordPress stores the absolute value of ids and counts. */
const toCount = (value: number): number => Math.abs(value);

export const settingFields: { [name in SettingName]: SettingField<SettingValues[name]> } = {
  title: { schema: text("Site title.", "Title", { maxLength: LENGTHS.termName }), clean: escapeSetting },
  description: {
    schema: text("Site tagline.", "Tagline", { maxLength: LENGTHS.termName }),
    clean: escapeSetting,
  },
  url: { schema: text("Site URL.", undefined, { format: "uri", maxLength: LENGTHS.url }) },
  email: {
    schema: text("This address is used for admin purposes, like new user notification.", undefined, {
      format: "email",
    }),
    initial: null,
  },
  timezone: { schema: text("A city in the same timezone as you.") },
  date_format: { schema: text("A date format for all date strings."), initial: "F j, Y", clean: stripAll },
  time_format: { schema: text("A time format for all time strings."), initial: "g:i a", clean: stripAll },
  start_of_week: {
    schema: integer("A day number of the week that the week should start on."),
    initial: 1,
    clean: toCount,
  },
  language: {
    schema: text("WordPress locale code.", undefined, { default: "en_US" }),
    initial: "en_US",
    clean: stripAll,
  },
  use_smilies: {
    schema: {
      description: "Convert emoticons like :-) and :-P to graphics on display.",
      type: "boolean",
      default: true,
    },
    initial: true,
  },
  default_category: { schema: integer("Default post category.") },
  default_post_format: { schema: text("Default post format."), initial: "0", clean: stripAll },
  posts_per_page: {
    schema: { ...integer("Blog pages show at most.", "Maximum posts per page"), default: 10 },
    initial: 10,
    // As in WordPress, -1 means all posts.
    clean: (value) => (value === 0 ? 1 : value < -1 ? -value : value),
  },
  show_on_front: {
    schema: text("What to show on the front page", "Show on front"),
    initial: "posts",
    clean: stripAll,
  },
  page_on_front: {
    schema: integer("The ID of the page that should be displayed on the front page", "Page on front"),
    initial: 0,
    clean: toCount,
  },
  page_for_posts: {
    schema: integer("The ID of the page that should display the latest posts"),
    initial: 0,
    clean: toCount,
  },
  default_ping_status: {
    schema: {
      description: "Allow link notifications from other blogs (pingbacks and trackbacks) on new articles.",
      type: "string",
      enum: OPEN,
    },
    initial: "open",
  },
  default_comment_status: {
    schema: {
      title: "Allow comments on new posts",
      description: "Allow people to submit comments on new posts.",
      type: "string",
      enum: OPEN,
    },
    initial: "open",
  },
  site_logo: { schema: integer("Site logo.", "Logo"), initial: null, clean: (id) => id && toCount(id) },
  site_icon: { schema: integer("Site icon.", "Icon"), initial: 0, clean: toCount },
};

export const SETTING_NAMES = Object.keys(settingFields) as SettingName[];

const FIXED: Set<string> = new Set<FixedSetting>(["url", "timezone", "default_category"]);

const isWritableSetting = (name: unknown): name is WritableSetting =>
  typeof name === "string" && Object.hasOwn(settingFields, name) && !FIXED.has(name);

// The option `settings` of `createContent`, as a host writes it, and its check.

/** Values of settings that a client writes. They are valid and cleaned. */
export type SettingChanges = Partial<Pick<SettingValues, WritableSetting>>;

/**
 * Called with the settings that an administrator changes, before they are stored. If it returns an
 * object, or a promise of one, the settings in it that may be written are stored as well, in place
 * of the changes with the same name. Any other result is ignored.
 *
 * If it throws, takes longer than 5 seconds or returns an invalid value, nothing is stored: the
 * error is logged, and the response is 503. It may be called again for a change that it has seen.
 */
export type WriteSettings = (changes: SettingChanges, details: { user: User }) => unknown;

/**
 * The route `/settings`, for administrators.
 *
 * @example
 * ```ts
 * settings: {
 *   values: { email: "site@example.org", language: "de_DE", posts_per_page: 20 },
 *   writable: ["title", "description"],
 *   write: (changes, { user }) => audit.record(user.id, changes),
 * }
 * ```
 */
export interface SettingsOptions {
  /**
   * Values of settings that do not follow from `site`. Default: those of a new WordPress site. A
   * value that an administrator wrote takes precedence.
   */
  values?: Partial<Pick<SettingValues, HostSetting>> | undefined;
  /**
   * Names of the settings that administrators may write. Default: none, and each change is refused
   * with 403. Written settings are kept in the storage, and every process shows them.
   */
  writable?: readonly WritableSetting[] | undefined;
  /** Called before written settings are stored. */
  write?: WriteSettings | undefined;
}

const refuse = (field: string, message: string): never => {
  throw new PostbellError("invalid_option", `createContent: ${field} ${message}`, { field });
};

/** @throws PostbellError `invalid_option` for an unknown name or a value that does not fit */
export function checkSettingOptions({ values, writable }: { values: object; writable: unknown[] }): void {
  for (const [name, value] of Object.entries(values) as [string, Json][]) {
    const field = `settings.values.${name}`;
    if (!isWritableSetting(name)) refuse(field, "is not a setting that the host gives a value.");
    else if (name === "title" || name === "description")
      refuse(field, `is not an option; set site.${name === "title" ? "name" : name} instead.`);
    else if (value !== settingFields[name].initial) {
      const problem = validateValue(value, settingFields[name].schema, field);
      if (problem !== undefined) refuse(field, `is not valid: ${problem.message}`);
    }
  }
  const unknown = writable.find((name) => !isWritableSetting(name));
  if (unknown !== undefined) refuse("settings.writable", `must list settings that clients may write.`);
}
