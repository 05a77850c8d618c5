/** The theme of the site, from the host's options, and its route `/themes`. */

import { PostbellError } from "../../core/errors.js";
import type { JsonObject, Schema } from "../../schema/types.js";
import { LENGTHS, NAMES } from "../argument-bounds.js";
import { escapeHtml } from "../embeds/embed.js";
import { RestError, refusal } from "../rest/error.js";
import { createItem } from "../rest/serialise.js";
import type { Item, RestEndpoint, RestRequest, RestRoute } from "../rest/types.js";
import type { Site } from "../site.js";
import { type EditorTheme, forEditors, readPlainOption } from "./editor-options.js";
import { DEFAULT_SUPPORTS, FEATURES, type ThemeSupports } from "./theme-supports.js";

/** In characters of JSON. */
const MAX_CHARACTERS = 262_144;

const text: Schema = { type: "string", maxLength: LENGTHS.title };
const url: Schema = { type: "string", format: "uri", maxLength: LENGTHS.url };

const OPTION: Schema = {
  type: "object",
  additionalProperties: false,
  properties: {
    stylesheet: { type: "string", minLength: 1, maxLength: LENGTHS.name },
    name: text,
    description: text,
    version: text,
    author: text,
    textDomain: text,
    tags: NAMES,
    authorUri: url,
    themeUri: url,
    screenshot: url,
    uri: url,
    supports: { type: "object", additionalProperties: false, properties: FEATURES },
  },
};

const readonly = (description: string, schema: Schema): Schema => ({
  description,
  ...schema,
  readonly: true,
});

/** A header of the theme, as it was written and as HTML. */
const header = (description: string, raw: Schema, rendered: Schema): Schema =>
  readonly(description, {
    type: "object",
    properties: {
      raw: { description: "As found in the theme header.", ...raw },
      rendered: { description: "Transformed for display.", ...rendered },
    },
  });

const string: Schema = { type: "string" };
const uri: Schema = { type: "string", format: "uri" };

/** In the order in which OPTIONS of WordPress lists the fields. */
const THEME_SCHEMA: Schema = {
  title: "theme",
  type: "object",
  properties: {
    stylesheet: readonly("The theme's stylesheet. This uniquely identifies the theme.", string),
    stylesheet_uri: readonly("The uri for the theme's stylesheet directory.", uri),
    template: readonly(
      "The theme's template. If this is a child theme, this refers to the parent theme, otherwise this is the same as the theme's stylesheet.",
      string,
    ),
    template_uri: readonly(
      "The uri for the theme's template directory. If this is a child theme, this refers to the parent theme, otherwise this is the same as the theme's stylesheet directory.",
      uri,
    ),
    author: header("The theme author.", string, string),
    author_uri: header("The website of the theme author.", uri, uri),
    description: header("A description of the theme.", string, string),
    is_block_theme: readonly("Whether the theme is a block-based theme.", { type: "boolean" }),
    name: header("The name of the theme.", string, string),
    requires_php: readonly("The minimum PHP version required for the theme to work.", string),
    requires_wp: readonly("The minimum WordPress version required for the theme to work.", string),
    screenshot: readonly("The theme's screenshot URL.", uri),
    tags: header(
      "Tags indicating styles and features of the theme.",
      { type: "array", items: string },
      string,
    ),
    textdomain: readonly("The theme's text domain.", string),
    theme_supports: readonly("Features supported by this theme.", { type: "object", properties: FEATURES }),
    theme_uri: header("The URI of the theme's webpage.", uri, uri),
    version: readonly("The theme's current version.", string),
    status: {
      description: "A named status for the theme.",
      type: "string",
      enum: ["inactive", "active"],
    },
    default_template_types: readonly("A list of default template types.", {
      type: "array",
      items: { type: "object", properties: { slug: string, title: string, description: string } },
    }),
    default_template_part_areas: readonly("A list of allowed area values for template parts.", {
      type: "array",
      items: {
        type: "object",
        properties: { area: string, label: string, description: string, icon: string, area_tag: string },
      },
    }),
  },
};

const toHeader = (raw: string, rendered = escapeHtml(raw)): JsonObject => ({ raw, rendered });

const supportsOf = ({ formats = [], ...supports }: ThemeSupports): JsonObject => {
  const all: ThemeSupports = { ...supports, formats: ["standard", ...formats] };
  return Object.fromEntries(
    Object.entries(FEATURES).map(([feature, { default: absent = false }]) => {
      const value = (all as JsonObject)[feature] ?? absent;
      return [feature, feature === "formats" ? [...new Set(value as string[])] : value];
    }),
  );
};

const STYLESHEET = /^[\w-]+$/;

/**
 * Returns the fields of the theme, in the order of WordPress.
 *
 * @throws PostbellError `invalid_option`
 */
export function readTheme(theme: EditorTheme | undefined, site: Site): JsonObject {
  const option = readPlainOption("editor.theme", theme ?? {}, OPTION, MAX_CHARACTERS) as EditorTheme;
  const { stylesheet = "default", name = "Default", author = "", authorUri = "", tags = [] } = option;
  if (!STYLESHEET.test(stylesheet)) {
    throw new PostbellError(
      "invalid_option",
      "createContent: editor.theme.stylesheet must consist of letters, digits, '-' and '_'.",
      { field: "editor.theme.stylesheet" },
    );
  }
  const { uri: folder = `${site.url}/themes/${stylesheet}`, supports = {} } = option;
  const link = `<a href="${escapeHtml(authorUri)}">${escapeHtml(author)}</a>`;
  return {
    stylesheet,
    template: stylesheet,
    requires_php: "",
    requires_wp: "",
    textdomain: option.textDomain ?? stylesheet,
    version: option.version ?? "1.0",
    screenshot: option.screenshot ?? "",
    author: toHeader(author, author !== "" && authorUri !== "" ? link : escapeHtml(author)),
    author_uri: toHeader(authorUri),
    description: toHeader(option.description ?? ""),
    name: toHeader(name),
    tags: { raw: [...tags], rendered: escapeHtml(tags.join(", ")) },
    theme_uri: toHeader(option.themeUri ?? ""),
    status: "active",
    theme_supports: supportsOf({ ...DEFAULT_SUPPORTS, ...supports }),
    is_block_theme: false,
    stylesheet_uri: folder,
    template_uri: folder,
    default_template_types: DEFAULT_TEMPLATE_TYPES,
    default_template_part_areas: TEMPLATE_PART_AREAS,
  };
}

// The templates and areas that WordPress knows by name. Editors label templates with them.

const template = (slug: string, title: string, description: string): JsonObject => ({
  title,
  description,
  slug,
});

const DEFAULT_TEMPLATE_TYPES: JsonObject[] = [
  template("index", "Index", "Any page without a template of its own."),
  template("home", "Blog Home", "The list of the latest posts."),
  template("front-page", "Front Page", "The first page of the website."),
  template("singular", "Single Entries", "Any single post or page."),
  template("single", "Single Posts", "A single post."),
  template("page", "Pages", "A single page."),
  template("archive", "All Archives", "Any list of posts: by author, term or date."),
  template("author", "Author Archives", "The posts of one author."),
  template("category", "Category Archives", "The posts of one category."),
  template("taxonomy", "Taxonomy", "The posts of one term of a custom taxonomy."),
  template("date", "Date Archives", "The posts of a year, month or day."),
  template("tag", "Tag Archives", "The posts of one tag."),
  template("attachment", "Attachment Pages", "The page of a media item."),
  template("search", "Search Results", "The results of a search."),
  template("privacy-policy", "Privacy Policy", "The page with the privacy policy."),
  template("404", "Page: 404", "The page for an address that does not exist."),
];

const TEMPLATE_PART_AREAS: JsonObject[] = [
  {
    area: "uncategorized",
    label: "General",
    description: "A part of no particular area.",
    icon: "layout",
    area_tag: "div",
  },
  {
    area: "header",
    label: "Header",
    description: "The top of a page.",
    icon: "header",
    area_tag: "header",
  },
  {
    area: "footer",
    label: "Footer",
    description: "The bottom of a page.",
    icon: "footer",
    area_tag: "footer",
  },
  {
    area: "navigation-overlay",
    label: "Navigation Overlay",
    description: "A menu that opens and closes.",
    icon: "navigation-overlay",
    area_tag: "div",
  },
];

// `/themes`: the one theme of the site.

const forbidden = ({ caller }: RestRequest): RestError =>
  refusal(caller, "rest_cannot_view_themes", "Sorry, you are not allowed to view themes.");

const permitActive = forEditors(
  "rest_cannot_view_active_theme",
  "Sorry, you are not allowed to view the active theme.",
);

/** Only who may switch themes sees any other than the active one. */
function permitThemes(request: RestRequest, isActive: boolean): void {
  if (request.caller.has("switch_themes")) return;
  if (!isActive) throw forbidden(request);
  permitActive(request);
}

const STATUSES = ["active", "inactive"] as const;

const LINKED_THEME: Schema = {
  ...THEME_SCHEMA,
  properties: { ...THEME_SCHEMA.properties, _links: { type: "object" } },
};

/** `theme`: its fields. */
export function themeRoutes(theme: JsonObject, namespace: string): RestRoute[] {
  const stylesheet = theme["stylesheet"] as string;

  const toItem = ({ url }: RestRequest): Item =>
    createItem(theme, {
      self: [{ href: url(`/${namespace}/themes/${stylesheet}`) }],
      collection: [{ href: url(`/${namespace}/themes`) }],
    });

  const list: RestEndpoint = {
    methods: ["GET"],
    args: {
      status: {
        description: "Limit result set to themes assigned one or more statuses.",
        type: "array",
        itemLimit: STATUSES.length,
        items: { type: "string", enum: STATUSES },
      },
    },
    described: {
      summary: "List the themes of the site",
      form: "json",
      schema: { type: "array", items: LINKED_THEME },
      hasTotals: true,
      errors: [403],
    },
    permit(request) {
      const { status } = request.values;
      permitThemes(request, Array.isArray(status) && status.length === 1 && status[0] === "active");
    },
    handle(request) {
      const { status } = request.values;
      const isListed = !Array.isArray(status) || status.includes("active");
      const items = isListed ? [toItem(request)] : [];
      return {
        status: 200,
        headers: { "x-wp-total": String(items.length), "x-wp-totalpages": "1" },
        body: { items },
      };
    },
  };

  const read: RestEndpoint = {
    methods: ["GET"],
    args: {
      stylesheet: {
        description: "The theme's stylesheet. This uniquely identifies the theme.",
        type: "string",
        maxLength: LENGTHS.name,
      },
    },
    described: { summary: "Read a theme", form: "json", schema: LINKED_THEME, errors: [403] },
    permit: (request) => permitThemes(request, request.values["stylesheet"] === stylesheet),
    handle(request) {
      if (request.values["stylesheet"] !== stylesheet) {
        throw new RestError(404, "rest_theme_not_found", "Theme not found.");
      }
      return { status: 200, headers: {}, body: { item: toItem(request) } };
    },
  };
  return [
    { namespace, path: "/themes", schema: THEME_SCHEMA, endpoints: [list] },
    { namespace, path: "/themes/:stylesheet(word)", schema: THEME_SCHEMA, endpoints: [read] },
  ];
}
