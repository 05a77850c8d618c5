/**
 * The table of fields that several post types share. Fields of one type alone are in
 * `post-types.ts`, `../media/media-rules.ts` and `menu-items/menu-item-fields.ts`. CONTRIBUTING.md
 * explains how to add one.
 */

import { toText } from "../../schema/coerce.js";
import type { Context, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { WRITABLE_STATUSES } from "../collections.js";
import { STATUSES } from "../query/row.js";
import { POST_FORMATS, type Post, type PostType } from "../records/records.js";
import { ALL, EDIT, FULL } from "../rest/record-fields.js";
import type { Site } from "../site.js";
import { formatDate } from "../text/dates.js";
import {
  ADDRESSED_TYPES,
  type FieldView,
  listTermsByName,
  type PostFields,
  type SharedPostField,
  STANDARD_TYPES,
  TYPES_WITH_META,
  TYPES_WITH_TEXTS,
} from "./post-field.js";
import { createTermField, metaField, textFields } from "./text-fields.js";

// The class names of a post's container element on the website.

const listClasses = ({ post, collection, index }: FieldView): string[] => [
  `post-${post.id}`,
  post.type,
  `type-${post.type}`,
  `status-${post.status}`,
  ...(collection.supports.includes("post-formats") ? [`format-${post.format}`] : []),
  ...(post.password === "" ? [] : ["post-password-required"]),
  ...(post.featuredMedia > 0 ? ["has-post-thumbnail"] : []),
  "hentry",
  ...collection.taxonomies.flatMap(({ taxonomy, classPrefix }) =>
    listTermsByName(post, taxonomy, index).map((id) => `${classPrefix}-${index.term(id)?.slug ?? id}`),
  ),
  ...(collection.supports.includes("post-formats") && post.format !== "standard"
    ? [`post_format-post-format-${post.format}`]
    : []),
];

// The fields for when a post was published and last modified.

const dateField = (
  description: string,
  context: Context[],
  read: (post: Post, site: Site) => number,
): SharedPostField => ({
  types: STANDARD_TYPES,
  schema: { description, type: "string", format: "date-time", maxLength: LENGTHS.date, context },
  read: ({ post, site }) => formatDate(read(post, site)),
});

/** `applyPostValues` writes dates, since they depend on the status. `null` resets the date. */
const writableDate = (field: SharedPostField): SharedPostField => ({
  ...field,
  schema: { ...field.schema, type: ["string", "null"] },
  isAutosaved: true,
});

const readonlyDate = (field: SharedPostField): SharedPostField => ({
  ...field,
  schema: { ...field.schema, readonly: true },
});

const dateFields = {
  date: writableDate(
    dateField("The date the post was published, in the site's timezone.", ALL, ({ date }) => date),
  ),
  date_gmt: writableDate(
    dateField(
      "The date the post was published, as GMT.",
      FULL,
      ({ date, dateGmt }, { zone }) => dateGmt ?? zone.toUtc(date),
    ),
  ),
  modified: readonlyDate(
    dateField(
      "The date the post was last modified, in the site's timezone.",
      FULL,
      ({ modified }) => modified,
    ),
  ),
  modified_gmt: readonlyDate(
    dateField("The date the post was last modified, as GMT.", FULL, ({ modifiedGmt }) => modifiedGmt),
  ),
} as const satisfies PostFields;

const POSTS: PostType[] = ["post"];
const PAGES: PostType[] = ["page"];

const text = (context: Context[], more: Schema = {}): Schema => ({
  type: "string",
  context,
  ...more,
});

/** Like in WordPress, `null` stores an empty text. */
const openOrClosed: Schema = {
  enum: ["open", "closed"],
  answered: { type: "string", enum: ["open", "closed", ""] },
};

export const postFields = {
  id: {
    types: STANDARD_TYPES,
    schema: { description: "Unique identifier for the post.", type: "integer", context: ALL, readonly: true },
    read: ({ post }) => post.id,
  },
  date: dateFields.date,
  date_gmt: dateFields.date_gmt,
  guid: {
    types: STANDARD_TYPES,
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
  modified: dateFields.modified,
  modified_gmt: dateFields.modified_gmt,
  password: {
    types: TYPES_WITH_TEXTS,
    schema: text(EDIT, {
      description: "A password to protect access to the content and excerpt.",
      maxLength: LENGTHS.password,
    }),
    read: ({ post }) => post.password,
    write: (value, { post }) => {
      post.password = toText(value);
    },
    isAutosaved: true,
  },
  slug: {
    types: STANDARD_TYPES,
    schema: text(ALL, {
      description: "An alphanumeric identifier for the post unique to its type.",
      maxLength: LENGTHS.slug,
    }),
    read: ({ post }) => post.slug,
    write: (value, { post }) => {
      post.slug = toText(value);
    },
    isAutosaved: true,
  },
  status: {
    types: STANDARD_TYPES,
    schema: text(FULL, {
      description: "A named status for the post.",
      enum: WRITABLE_STATUSES,
      answered: { type: "string", enum: STATUSES },
    }),
    read: ({ post }) => post.status,
    isAutosaved: true,
  },
  type: {
    types: STANDARD_TYPES,
    schema: text(ALL, { description: "Type of post.", readonly: true }),
    read: ({ post }) => post.type,
  },
  link: {
    types: STANDARD_TYPES,
    schema: text(ALL, { description: "URL to the post.", format: "uri", readonly: true }),
    read: ({ post, site, index }) => site.link(post, index),
  },
  ...textFields,
  author: {
    types: ADDRESSED_TYPES,
    needs: "author",
    schema: { description: "The ID for the author of the post.", type: "integer", context: ALL },
    read: ({ post }) => post.author,
    // 0 stands for the caller.
    write: (value, { post }) => {
      if (value !== 0) post.author = Number(value);
    },
    isAutosaved: true,
  },
  featured_media: {
    types: ADDRESSED_TYPES,
    needs: "thumbnail",
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
    types: PAGES,
    needs: "tree",
    schema: { description: "The ID for the parent of the post.", type: "integer", context: FULL },
    read: ({ post }) => post.parent,
    write: (value, { post }) => {
      post.parent = Number(value);
    },
    isAutosaved: true,
  },
  menu_order: {
    types: PAGES,
    needs: "page-attributes",
    schema: {
      description: "The order of the post in relation to other posts.",
      type: "integer",
      context: FULL,
    },
    read: ({ post }) => post.menuOrder,
    write: (value, { post }) => {
      post.menuOrder = Number(value);
    },
    isAutosaved: true,
  },
  comment_status: {
    types: ADDRESSED_TYPES,
    needs: "comments",
    schema: text(FULL, {
      description: "Whether or not comments are open on the post.",
      ...openOrClosed,
    }),
    read: ({ post }) => post.commentStatus,
    write: (value, { post }) => {
      if (value !== "") post.commentStatus = value as Post["commentStatus"];
    },
    isAutosaved: true,
  },
  ping_status: {
    types: ADDRESSED_TYPES,
    needs: "comments",
    schema: text(FULL, { description: "Whether or not the post can be pinged.", ...openOrClosed }),
    read: ({ post }) => post.pingStatus,
    write: (value, { post }) => {
      if (value !== "") post.pingStatus = value as Post["pingStatus"];
    },
    isAutosaved: true,
  },
  sticky: {
    types: POSTS,
    needs: "none",
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
    types: STANDARD_TYPES,
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
    types: POSTS,
    needs: "post-formats",
    schema: text(FULL, { description: "The format for the post.", enum: POST_FORMATS }),
    read: ({ post }) => post.format,
    write: (value, { post }) => {
      post.format = toText(value) || "standard";
    },
  },
  meta: { ...metaField, types: TYPES_WITH_META, needs: "custom-fields" },
  permalink_template: {
    types: ADDRESSED_TYPES,
    needs: "address",
    schema: text(EDIT, { description: "Permalink template for the post.", readonly: true }),
    read: ({ post, site, index }) => site.linkTemplate(post, index),
  },
  generated_slug: {
    types: ADDRESSED_TYPES,
    needs: "address",
    schema: text(EDIT, { description: "Slug automatically generated from the post title.", readonly: true }),
    read: ({ post, site }) => post.slug || site.slug(post.title) || String(post.id),
  },
  categories: { ...createTermField("category"), types: POSTS, needs: "none" },
  tags: { ...createTermField("post_tag"), types: POSTS, needs: "none" },
  class_list: {
    types: ADDRESSED_TYPES,
    needs: "address",
    schema: {
      description: "An array of the class names for the post container element.",
      type: "array",
      items: { type: "string" },
      context: FULL,
      readonly: true,
    },
    read: listClasses,
  },
} as const satisfies { [name: string]: SharedPostField };
