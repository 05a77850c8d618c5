/** The option `editor` of `createContent`, as a host writes it. */

import { PostbellError } from "../../core/errors.js";
import type { Json, JsonObject, Schema } from "../../schema/types.js";
import { readValue } from "../../schema/validate.js";
import type { Post, User } from "../records/records.js";
import { refusal } from "../rest/error.js";
import type { RestRequest } from "../rest/types.js";
import type { ThemeSupports } from "./theme-supports.js";

/**
 * The theme, patterns and block types that the block editor asks for. Without any of these options
 * the editor finds every endpoint, with a plain theme and without patterns.
 *
 * @example
 * ```ts
 * createContent({
 *   // …
 *   editor: {
 *     theme: { stylesheet: "clinic", supports: { "align-wide": false } },
 *     patterns: [
 *       {
 *         name: "clinic/hours",
 *         title: "Opening hours",
 *         content: "<!-- wp:paragraph --><p>9–17</p><!-- /wp:paragraph -->",
 *       },
 *     ],
 *     renderBlock: ({ name }) =>
 *       name === "clinic/today" ? `<p>${new Date().toDateString()}</p>` : undefined,
 *   },
 * });
 * ```
 */
export interface EditorOptions {
  /**
   * The theme that `/themes` describes; by default it is called `default` and supports
   * `align-wide`, `automatic-feed-links`, `html5`, `post-thumbnails`, `responsive-embeds`,
   * `title-tag`, `wp-block-styles` and all `formats`.
   */
  theme?: EditorTheme | undefined;
  /** The patterns that the inserter offers, at most 1000 and 8 MiB as JSON. Default: none. */
  patterns?: readonly BlockPattern[] | undefined;
  /** The categories of those patterns, at most 1000. Default: none. */
  patternCategories?: readonly BlockPatternCategory[] | undefined;
  /**
   * The types of blocks that `/block-types` lists, at most 1000 and 4 MiB as JSON. Default: none.
   */
  blockTypes?: readonly BlockType[] | undefined;
  /**
   * Renders previews of dynamic blocks within 5 seconds; its HTML is sent to editors as it is.
   * Default: none, and `/block-renderer` responds with 404.
   */
  renderBlock?: RenderBlock | undefined;
}

/** The theme of the website, as editors see it. */
export interface EditorTheme {
  /** The identifier of the theme: letters, digits, `-` and `_`. Default: `default`. */
  stylesheet?: string | undefined;
  /** Default: `Default`. */
  name?: string | undefined;
  description?: string | undefined;
  /** Default: `1.0`. */
  version?: string | undefined;
  author?: string | undefined;
  authorUri?: string | undefined;
  themeUri?: string | undefined;
  /** Default: the stylesheet. */
  textDomain?: string | undefined;
  tags?: readonly string[] | undefined;
  /** The URL of a picture of the theme. Default: none. */
  screenshot?: string | undefined;
  /** The URL of the folder of its files. Default: `<site.url>/themes/<stylesheet>`. */
  uri?: string | undefined;
  /** Replaces the default of each feature that it names. `docs/options.md` has the defaults. */
  supports?: ThemeSupports | undefined;
}

/** A pattern of blocks that the inserter offers. */
export interface BlockPattern {
  /** `clinic/opening-hours` */
  name: string;
  title: string;
  /** The blocks as text, with their delimiters. It is served as it is. */
  content: string;
  description?: string | undefined;
  /** The width of the preview in pixels. */
  viewportWidth?: number | undefined;
  /** `false` hides the pattern from the inserter. */
  inserter?: boolean | undefined;
  /** Names of `patternCategories`. */
  categories?: readonly string[] | undefined;
  keywords?: readonly string[] | undefined;
  blockTypes?: readonly string[] | undefined;
  postTypes?: readonly string[] | undefined;
  templateTypes?: readonly string[] | undefined;
  source?:
    | "core"
    | "plugin"
    | "theme"
    | "pattern-directory/core"
    | "pattern-directory/theme"
    | "pattern-directory/featured"
    | undefined;
}

/** A category of patterns. */
export interface BlockPatternCategory {
  readonly name: string;
  readonly label: string;
  readonly description?: string | undefined;
}

/**
 * A type of block, with the members of its `block.json`. Any of the members that `/block-types`
 * shows may be given.
 */
export interface BlockType {
  /** `clinic/today` */
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  category?: string | null | undefined;
  icon?: string | null | undefined;
  /** JSON Schemas by name. Attributes of previews are checked against them. */
  attributes?: { readonly [name: string]: JsonObject } | undefined;
  /** True if `renderBlock` renders the block. Default: `false`. */
  isDynamic?: boolean | undefined;
  supports?: JsonObject | undefined;
  keywords?: readonly string[] | undefined;
  parent?: readonly string[] | null | undefined;
  usesContext?: readonly string[] | undefined;
  providesContext?: { readonly [name: string]: string } | undefined;
  readonly [member: string]: unknown;
}

/** The block to preview. */
export interface BlockPreview {
  /** `clinic/today` */
  readonly name: string;
  /**
   * Checked and completed with defaults if `blockTypes` lists the block. Otherwise as the client
   * sent them; in a query all values are texts.
   */
  readonly attributes: JsonObject;
  /** The post that is being edited; `null` if the editor named none. */
  readonly post: Post | null;
  /** The HTML saved inside the block. Empty: previews have attributes only. */
  readonly content: string;
  /** The user who edits. */
  readonly user: User;
}

/**
 * Returns the HTML of a dynamic block, or `null` or `undefined` if it does not know the block. The
 * HTML is sent to editors as it is, at most 1 048 576 characters.
 *
 * It may return a promise. If it throws, takes more than 5 s or returns something else, the error
 * is logged and the response is 503 `rest_block_unavailable`.
 */
export type RenderBlock = (
  block: BlockPreview,
) => string | null | undefined | PromiseLike<string | null | undefined>;

// Reads options that are plain data of any shape: copies them, and checks them by a schema.

const invalid = (field: string, problem: string): PostbellError =>
  new PostbellError("invalid_option", `createContent: ${problem}`, { field });

function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/**
 * Returns a copy of the option `field` that fits `schema`. `maxCharacters`: of its JSON.
 *
 * @throws PostbellError `invalid_option`; the message names the member that does not fit
 */
export function readPlainOption(field: string, value: unknown, schema: Schema, maxCharacters: number): Json {
  const text = toJson(value);
  if (text === undefined) throw invalid(field, `${field} must be plain data that JSON can hold.`);
  if (text.length > maxCharacters) {
    throw invalid(
      field,
      `${field} must have at most ${maxCharacters} characters as JSON (got ${text.length}).`,
    );
  }
  const read = readValue(JSON.parse(text) as Json, schema, field);
  if (read.problem === undefined) return read.value;
  // `editor.patterns[0][title]` is `editor.patterns[0].title` for a host.
  throw invalid(field, read.problem.message.replace(/\[([a-z][\w-]*)\]/gi, ".$1"));
}

/** Returns the member of an option that fills a field: `apiVersion` for `api_version`. */
export const toMemberName = (field: string): string =>
  field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** Returns a check that refuses callers who can edit no type of post. */
export const forEditors =
  (code: string, message: string) =>
  ({ caller }: RestRequest): void => {
    if (!caller.canEditSomething()) throw refusal(caller, code, message);
  };
