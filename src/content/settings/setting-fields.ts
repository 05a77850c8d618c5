/**
 * The table of settings, in the order of WordPress: the schema of each, the value it has on a new
 * site, and how a written value is cleaned.
 */

import type { Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { termName } from "../terms/write-term.js";
import { stripAll } from "../text/plain.js";

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
  /** `posts`, or `page` for a page of its own. */
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
  readonly schema: Schema;
  /** Absent: the value follows from the site. */
  readonly initial?: T;
  /** Returns the value to store for a written one, which fits the schema. */
  readonly clean?: (value: T) => T;
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

export const settingFields: { readonly [name in SettingName]: SettingField<SettingValues[name]> } = {
  title: { schema: text("Site title.", "Title", { maxLength: LENGTHS.termName }), clean: termName },
  description: {
    schema: text("Site tagline.", "Tagline", { maxLength: LENGTHS.termName }),
    clean: termName,
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

export const SETTING_NAMES = Object.keys(settingFields) as readonly SettingName[];

const FIXED: ReadonlySet<string> = new Set<FixedSetting>(["url", "timezone", "default_category"]);

export const isWritableSetting = (name: unknown): name is WritableSetting =>
  typeof name === "string" && Object.hasOwn(settingFields, name) && !FIXED.has(name);
