/** The features that a theme may support: their schemas, and those of the default theme. */

import type { Schema } from "../../schema/types.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import { POST_FORMATS } from "../records/records.js";

/**
 * The features of the site's theme, by WordPress's names. The block editor offers its controls
 * accordingly: wide alignment, the palette of colours, formats of posts.
 */
export interface ThemeSupports {
  "align-wide"?: boolean | undefined;
  "automatic-feed-links"?: boolean | undefined;
  "block-templates"?: boolean | undefined;
  "block-template-parts"?: boolean | undefined;
  "custom-background"?: boolean | { readonly [name: string]: string } | undefined;
  "custom-header"?: boolean | { readonly [name: string]: string | number | boolean } | undefined;
  "custom-logo"?: boolean | { readonly [name: string]: number | boolean | readonly string[] } | undefined;
  "customize-selective-refresh-widgets"?: boolean | undefined;
  "dark-editor-style"?: boolean | undefined;
  "disable-custom-colors"?: boolean | undefined;
  "disable-custom-font-sizes"?: boolean | undefined;
  "disable-custom-gradients"?: boolean | undefined;
  "disable-layout-styles"?: boolean | undefined;
  "editor-color-palette"?: boolean | readonly { name: string; slug: string; color: string }[] | undefined;
  /** `size`: in pixels. */
  "editor-font-sizes"?: boolean | readonly { name: string; slug: string; size: number }[] | undefined;
  "editor-gradient-presets"?:
    | boolean
    | readonly { name: string; slug: string; gradient: string }[]
    | undefined;
  "editor-spacing-sizes"?: boolean | readonly { name: string; slug: string; size: string }[] | undefined;
  "editor-styles"?: boolean | undefined;
  /** The parts of a page that the theme writes as HTML5: `gallery`, `caption` … */
  html5?: boolean | readonly string[] | undefined;
  /** The formats that posts may have; `standard` is always one of them. */
  formats?: readonly string[] | undefined;
  /** True, or the types of posts that have a featured image. */
  "post-thumbnails"?: boolean | readonly string[] | undefined;
  "responsive-embeds"?: boolean | undefined;
  "title-tag"?: boolean | undefined;
  "wp-block-styles"?: boolean | undefined;
}

const HTML5_PARTS: string[] = [
  "search-form",
  "comment-form",
  "comment-list",
  "gallery",
  "caption",
  "script",
  "style",
];

const text: Schema = { type: "string", maxLength: LENGTHS.title };
const url: Schema = { type: "string", format: "uri", maxLength: LENGTHS.url };
const number: Schema = { type: "number" };
const integer: Schema = { type: "integer" };
const boolean: Schema = { type: "boolean" };
const choice = (...values: string[]): Schema => ({ type: "string", enum: values });
const listOf = (items: Schema): Schema => ({ items, itemLimit: COUNTS.members });

const flag = (description: string): Schema => ({ description, type: "boolean", default: false });

const orFalse = (type: "object" | "array", description: string, more: Schema): Schema => ({
  description,
  type: ["boolean", type],
  default: false,
  ...more,
});

const object = (properties: { [name: string]: Schema }): Schema => ({
  properties,
  additionalProperties: false,
});

const presets = (description: string, value: { [name: string]: Schema }): Schema =>
  orFalse("array", description, listOf({ type: "object", ...object({ name: text, ...value, slug: text }) }));

/** In the order of WordPress. */
export const FEATURES: { [feature in keyof Required<ThemeSupports>]: Schema } = {
  "align-wide": flag("Whether theme opts in to wide alignment CSS class."),
  "automatic-feed-links": flag("Whether posts and comments RSS feed links are added to head."),
  "block-templates": flag("Whether a theme uses block-based templates."),
  "block-template-parts": flag("Whether a theme uses block-based template parts."),
  "custom-background": orFalse(
    "object",
    "Custom background if defined by the theme.",
    object({
      "default-image": url,
      "default-preset": choice("default", "fill", "fit", "repeat", "custom"),
      "default-position-x": choice("left", "center", "right"),
      "default-position-y": choice("left", "center", "right"),
      "default-size": choice("auto", "contain", "cover"),
      "default-repeat": choice("repeat-x", "repeat-y", "repeat", "no-repeat"),
      "default-attachment": choice("scroll", "fixed"),
      "default-color": text,
    }),
  ),
  "custom-header": orFalse(
    "object",
    "Custom header if defined by the theme.",
    object({
      "default-image": url,
      "random-default": boolean,
      width: integer,
      height: integer,
      "flex-height": boolean,
      "flex-width": boolean,
      "default-text-color": text,
      "header-text": boolean,
      uploads: boolean,
      video: boolean,
    }),
  ),
  "custom-logo": orFalse(
    "object",
    "Custom logo if defined by the theme.",
    object({
      width: integer,
      height: integer,
      "flex-width": boolean,
      "flex-height": boolean,
      "header-text": { type: "array", ...listOf(text) },
      "unlink-homepage-logo": boolean,
    }),
  ),
  "customize-selective-refresh-widgets": flag(
    "Whether the theme enables Selective Refresh for Widgets being managed with the Customizer.",
  ),
  "dark-editor-style": flag("Whether theme opts in to the dark editor style UI."),
  "disable-custom-colors": flag("Whether the theme disables custom colors."),
  "disable-custom-font-sizes": flag("Whether the theme disables custom font sizes."),
  "disable-custom-gradients": flag("Whether the theme disables custom gradients."),
  "disable-layout-styles": flag("Whether the theme disables generated layout styles."),
  "editor-color-palette": presets("Custom color palette if defined by the theme.", { color: text }),
  "editor-font-sizes": presets("Custom font sizes if defined by the theme.", { size: number }),
  "editor-gradient-presets": presets("Custom gradient presets if defined by the theme.", { gradient: text }),
  "editor-spacing-sizes": presets("Custom spacing sizes if defined by the theme.", { size: text }),
  "editor-styles": flag("Whether theme opts in to the editor styles CSS wrapper."),
  html5: orFalse(
    "array",
    "Allows use of HTML5 markup for search forms, comment forms, comment lists, gallery, and caption.",
    listOf({ type: "string", enum: HTML5_PARTS }),
  ),
  formats: {
    description: "Post formats supported.",
    type: "array",
    default: ["standard"],
    ...listOf({ type: "string", enum: POST_FORMATS }),
  },
  "post-thumbnails": orFalse(
    "array",
    "The post types that support thumbnails or true if all post types are supported.",
    listOf(text),
  ),
  "responsive-embeds": flag("Whether the theme supports responsive embedded content."),
  "title-tag": flag("Whether the theme can manage the document title tag."),
  "wp-block-styles": flag("Whether theme opts in to default WordPress block styles for viewing."),
};

/** The features that the theme supports unless the host says otherwise. */
export const DEFAULT_SUPPORTS: ThemeSupports = {
  "align-wide": true,
  "automatic-feed-links": true,
  html5: HTML5_PARTS,
  formats: POST_FORMATS,
  "post-thumbnails": true,
  "responsive-embeds": true,
  "title-tag": true,
  "wp-block-styles": true,
};
