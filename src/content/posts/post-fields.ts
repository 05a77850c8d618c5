/** Every field of a post of any type: its schema, how it is read from a record, and how a written value gets into one. */

import { toText } from "../../schema/text-of.js";
import type { Argument, Context, Json, JsonObject, Schema } from "../../schema/types.js";
import { IDS, LENGTHS } from "../argument-bounds.js";
import type { Caller } from "../auth/caller.js";
import { type Collection, POST_FORMATS, WRITABLE_STATUSES } from "../collections.js";
import { STATUSES } from "../query/row.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post, Taxonomy } from "../records/records.js";
import { ALL, EDIT, FULL } from "../rest/record-fields.js";
import type { Site } from "../site.js";
import { getTaxonomy } from "../terms/taxonomies.js";
import { hasBlocks } from "../text/blocks.js";
import { formatDate } from "../text/dates.js";
import { readMeta } from "./post-meta.js";
import { sanitiseText } from "./sanitised-text.js";

/** What a field is read from. */
export interface FieldView {
  readonly post: Post;
  readonly collection: Collection;
  readonly site: Site;
  readonly index: SiteIndex;
  /** Whether texts behind a password are shown. */
  readonly isRevealed: boolean;
  /** Words of an excerpt that is made from the content. */
  readonly excerptLength: number;
}

/** What a written value goes into; the record that comes of it is checked and completed afterwards. */
export interface FieldTarget {
  readonly post: { -readonly [K in keyof Post]: Post[K] };
  readonly collection: Collection;
  readonly caller: Caller;
  readonly site: Site;
  readonly index: SiteIndex;
}

export interface PostField {
  readonly schema: Schema;
  /** `undefined`: this item has no such field. */
  readonly read: (view: FieldView) => Json | undefined;
  /** Of a value that was found valid and coerced; absent for what cannot be written, or is written by rules of its own. */
  readonly write?: (value: Json, target: FieldTarget) => void;
  /** How the argument that writes it is read, where not by the schema. */
  readonly argument?: Pick<Argument, "validate" | "sanitize">;
}

/** Taken as it comes: the reference accepts a text as a string or as an object with `raw`, and ignores anything else. */
export const passthrough: NonNullable<PostField["argument"]> = {
  validate: () => undefined,
  sanitize: (value) => value,
};

const text = (context: readonly Context[], more: Schema = {}): Schema => ({
  type: "string",
  context,
  ...more,
});

/** The raw text in what a client writes: a string, or an object with `raw`. `undefined`: it wrote none. */
export function readRaw(value: Json): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { raw } = value as JsonObject;
  return typeof raw === "string" || typeof raw === "number" ? String(raw) : undefined;
}

const canPublishHtml = ({ caller }: FieldTarget): boolean => caller.has("unfiltered_html");

function writeText(name: "title" | "content" | "excerpt") {
  return (value: Json, target: FieldTarget): void => {
    const raw = readRaw(value);
    // The reference takes an empty `raw` of a title for none.
    if (raw === undefined || (name === "title" && raw === "" && value !== "")) return;
    const isTrusted = canPublishHtml(target);
    const kept = isTrusted ? raw : sanitiseText(raw, name, target.site);
    target.post[name] = name === "title" ? kept.trim() : kept;
    target.post.isTrusted = isTrusted;
  };
}

/** Whether the texts are kept back. */
const isHidden = ({ post, isRevealed }: FieldView): boolean => post.password !== "" && !isRevealed;

/** Footnotes are part of the text that a password protects; the reference shows them. */
const readShownMeta = (view: FieldView): JsonObject => {
  const { meta } = view.post;
  return readMeta(isHidden(view) ? { ...meta, footnotes: "" } : meta, view.collection.meta);
};

const excerptOf = ({ post, site, excerptLength }: FieldView): string =>
  site.render.excerpt(post, excerptLength);

const title = (view: FieldView): string => view.site.render.title(view.post);

/** Terms of the taxonomy that still exist. */
export const listTermIds = (
  { post, index }: Pick<FieldView, "post" | "index">,
  taxonomy: Taxonomy,
): readonly number[] => index.termsOf(post, taxonomy);

const termField = (taxonomy: Taxonomy): PostField => ({
  schema: {
    description: `The terms assigned to the post in the ${taxonomy} taxonomy.`,
    ...IDS,
    context: FULL,
  },
  read: (view) => listTermIds(view, taxonomy),
  write: (value, { post, index }) => {
    const ids = (value as readonly number[]).filter((id) => index.term(id)?.taxonomy === taxonomy);
    post.terms = { ...post.terms, [taxonomy]: [...new Set(ids)].sort((a, b) => a - b) };
  },
});

/** Written as a text, or as an object with `raw`. `maxLength`: of the text in either form. */
const rendered = (
  context: readonly Context[],
  maxLength: number,
  extra: { readonly [name: string]: Schema } = {},
): Schema => ({
  type: "object",
  context,
  maxLength,
  properties: {
    raw: text(EDIT, { description: "As it is stored.", maxLength }),
    // A client sends back what it was answered; it is ignored.
    rendered: text(context, { description: "As it is shown.", readonly: true, maxLength: LENGTHS.content }),
    ...extra,
  },
});

const PROTECTED: Schema = {
  description: "Whether the text is protected with a password.",
  type: "boolean",
  context: ALL,
  readonly: true,
};

/** Shown to everybody who may see the pattern: an editor needs the text as it is stored. */
const rawInView = (maxLength: number): Schema => text(FULL, { description: "As it is stored.", maxLength });

const classList = ({ post, collection, index }: FieldView): readonly string[] => [
  `post-${post.id}`,
  post.type,
  `type-${post.type}`,
  `status-${post.status}`,
  ...(collection.supports.includes("post-formats") ? [`format-${post.format}`] : []),
  ...(post.password === "" ? [] : ["post-password-required"]),
  ...(post.featuredMedia > 0 ? ["has-post-thumbnail"] : []),
  "hentry",
  ...collection.taxonomies.flatMap((taxonomy) =>
    listTermIds({ post, index }, taxonomy).map(
      (id) => `${getTaxonomy(taxonomy).classPrefix}-${index.term(id)?.slug ?? id}`,
    ),
  ),
];

const dateField = (
  description: string,
  context: readonly Context[],
  read: (post: Post, site: Site) => number,
  more: Schema = {},
): PostField => ({
  schema: { description, type: "string", format: "date-time", maxLength: LENGTHS.date, context, ...more },
  read: ({ post, site }) => formatDate(read(post, site)),
});

const WRITABLE_DATE: Schema = { type: ["string", "null"] };
const READONLY: Schema = { readonly: true };

/** By name; a collection names the ones it has. Those of menu items and media stand in files of their own. */
export const postFields: { readonly [name: string]: PostField } = {
  id: {
    schema: { description: "Unique identifier for the post.", type: "integer", context: ALL, readonly: true },
    read: ({ post }) => post.id,
  },
  date: dateField(
    "The date the post was published, in the site's timezone.",
    ALL,
    ({ date }) => date,
    WRITABLE_DATE,
  ),
  date_gmt: dateField(
    "The date the post was published, as GMT.",
    FULL,
    ({ date, dateGmt }, { zone }) => dateGmt ?? zone.toUtc(date),
    WRITABLE_DATE,
  ),
  modified: dateField(
    "The date the post was last modified, in the site's timezone.",
    FULL,
    ({ modified }) => modified,
    READONLY,
  ),
  modified_gmt: dateField(
    "The date the post was last modified, as GMT.",
    FULL,
    ({ modifiedGmt }) => modifiedGmt,
    READONLY,
  ),
  guid: {
    schema: {
      description: "The globally unique identifier for the post.",
      type: "object",
      context: FULL,
      readonly: true,
      properties: {
        raw: text(EDIT, { readonly: true }),
        rendered: text(FULL, { readonly: true }),
      },
    },
    read: ({ post, site }) => {
      const guid = site.guid(post);
      return { rendered: guid, raw: guid };
    },
  },
  password: {
    schema: text(EDIT, {
      description: "A password to protect access to the content and excerpt.",
      maxLength: LENGTHS.password,
    }),
    read: ({ post }) => post.password,
    write: (value, { post }) => {
      post.password = toText(value);
    },
  },
  slug: {
    schema: text(ALL, {
      description: "An alphanumeric identifier for the post unique to its type.",
      maxLength: LENGTHS.slug,
    }),
    read: ({ post }) => post.slug,
    write: (value, { post }) => {
      post.slug = toText(value);
    },
  },
  status: {
    schema: text(FULL, {
      description: "A named status for the post.",
      enum: WRITABLE_STATUSES,
      answered: { type: "string", enum: STATUSES },
    }),
    read: ({ post }) => post.status,
  },
  type: {
    schema: text(ALL, { description: "Type of post.", readonly: true }),
    read: ({ post }) => post.type,
  },
  link: {
    schema: text(ALL, { description: "URL to the post.", format: "uri", readonly: true }),
    read: ({ post, site, index }) => site.link(post, index),
  },
  title: {
    schema: rendered(ALL, LENGTHS.title),
    read: (view) => ({ raw: view.post.title, rendered: title(view) }),
    write: writeText("title"),
    argument: passthrough,
  },
  content: {
    schema: rendered(FULL, LENGTHS.content, {
      block_version: {
        description: "Version of the content block format used by the post.",
        type: "integer",
        context: EDIT,
        readonly: true,
      },
      protected: PROTECTED,
    }),
    read: (view) => ({
      raw: view.post.content,
      rendered: isHidden(view) ? "" : view.site.render.content(view.post),
      protected: view.post.password !== "",
      block_version: hasBlocks(view.post.content) ? 1 : 0,
    }),
    write: writeText("content"),
    argument: passthrough,
  },
  excerpt: {
    schema: rendered(ALL, LENGTHS.content, { protected: PROTECTED }),
    read: (view) => ({
      raw: view.post.excerpt,
      rendered: isHidden(view) ? "" : excerptOf(view),
      protected: view.post.password !== "",
    }),
    write: writeText("excerpt"),
    argument: passthrough,
  },
  author: {
    schema: { description: "The ID for the author of the post.", type: "integer", context: ALL },
    read: ({ post }) => post.author,
    // 0 is whoever writes it.
    write: (value, { post }) => {
      if (value !== 0) post.author = Number(value);
    },
  },
  featured_media: {
    schema: { description: "The ID of the featured media for the post.", type: "integer", context: ALL },
    read: ({ post, index }) =>
      index.post(post.featuredMedia)?.type === "attachment" ? post.featuredMedia : 0,
    write: (value, { post, index }) => {
      const id = Number(value);
      if (id === 0) post.featuredMedia = 0;
      else if (index.post(id)?.mimeType.startsWith("image/")) post.featuredMedia = id;
    },
  },
  parent: {
    schema: { description: "The ID for the parent of the post.", type: "integer", context: FULL },
    read: ({ post }) => post.parent,
    write: (value, { post }) => {
      post.parent = Number(value);
    },
  },
  menu_order: {
    schema: {
      description: "The order of the post in relation to other posts.",
      type: "integer",
      context: FULL,
    },
    read: ({ post }) => post.menuOrder,
    write: (value, { post }) => {
      post.menuOrder = Number(value);
    },
  },
  comment_status: {
    schema: text(FULL, {
      description: "Whether or not comments are open on the post.",
      enum: ["open", "closed"],
    }),
    read: ({ post }) => post.commentStatus,
    write: (value, { post }) => {
      post.commentStatus = value as Post["commentStatus"];
    },
  },
  ping_status: {
    schema: text(FULL, { description: "Whether or not the post can be pinged.", enum: ["open", "closed"] }),
    read: ({ post }) => post.pingStatus,
    write: (value, { post }) => {
      post.pingStatus = value as Post["pingStatus"];
    },
  },
  sticky: {
    schema: {
      description: "Whether or not the post should be treated as sticky.",
      type: "boolean",
      context: FULL,
    },
    read: ({ post }) => post.sticky,
    write: (value, { post }) => {
      post.sticky = value === true;
    },
  },
  template: {
    schema: text(FULL, {
      description: "The theme file to use to display the post.",
      maxLength: LENGTHS.name,
    }),
    read: ({ post }) => post.template,
    write: (value, { post }) => {
      post.template = toText(value);
    },
  },
  format: {
    schema: text(FULL, { description: "The format for the post.", enum: POST_FORMATS }),
    read: ({ post }) => post.format,
    write: (value, { post }) => {
      post.format = toText(value) || "standard";
    },
  },
  meta: {
    // The properties are those of the collection: see `schemaOfField`.
    schema: { description: "Meta fields.", type: "object", context: FULL },
    // Of `meta` only the outer form is checked as an argument: its members are checked when they are written, as the reference does.
    argument: {
      validate: (value) =>
        typeof value === "object"
          ? undefined
          : { code: "rest_invalid_param", message: "meta must be an object." },
      sanitize: (value) => value,
    },
    read: (view) => readShownMeta(view),
  },
  permalink_template: {
    schema: text(EDIT, { description: "Permalink template for the post.", readonly: true }),
    read: ({ post, site, index }) => site.linkTemplate(post, index),
  },
  generated_slug: {
    schema: text(EDIT, { description: "Slug automatically generated from the post title.", readonly: true }),
    read: ({ post, site }) => post.slug || site.slug(post.title) || String(post.id),
  },
  categories: termField("category"),
  tags: termField("post_tag"),
  wp_pattern_category: termField("wp_pattern_category"),
  class_list: {
    schema: {
      description: "An array of the class names for the post container element.",
      type: "array",
      items: { type: "string" },
      context: FULL,
      readonly: true,
    },
    read: classList,
  },
  wp_pattern_sync_status: {
    schema: text(FULL, { readonly: true, undescribed: true }),
    read: ({ post, collection }) => readMeta(post.meta, collection.meta)["wp_pattern_sync_status"] ?? "",
  },
};

/** A pattern's title and text are read as they are stored; one of its meta fields is answered as a field of its own. */
export const blockFields: { readonly [name: string]: PostField } = {
  meta: {
    ...(postFields["meta"] as PostField),
    read: (view) => {
      const { wp_pattern_sync_status: _, ...meta } = readShownMeta(view);
      return meta;
    },
  },
  title: {
    ...(postFields["title"] as PostField),
    schema: {
      type: "object",
      context: FULL,
      maxLength: LENGTHS.title,
      properties: { raw: rawInView(LENGTHS.title) },
    },
  },
  content: {
    ...(postFields["content"] as PostField),
    schema: {
      type: "object",
      context: FULL,
      maxLength: LENGTHS.content,
      properties: {
        raw: rawInView(LENGTHS.content),
        block_version: { type: "integer", context: EDIT, readonly: true },
        protected: PROTECTED,
      },
    },
  },
};
