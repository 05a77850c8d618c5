/** The interface of a field of a post: its schema, how it is read, and how a value is written. */

import type { Argument, Context, Json, JsonObject, Schema } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Collection, TypeFeature } from "../records/content-model.js";
import { isBuiltInName, type Post, type PostType, type Taxonomy } from "../records/records.js";
import type { RenderBudget } from "../render-budget.js";
import type { HtmlField, Site } from "../site.js";
import { fold } from "../text/normalise.js";

/** Groups of post types that have the same fields. */
export const STANDARD_TYPES: PostType[] = ["post", "page", "attachment", "wp_block", "wp_navigation"];
/** Types whose items have an address on the website. */
export const ADDRESSED_TYPES: PostType[] = ["post", "page", "attachment"];
export const TYPES_WITH_TEXTS: PostType[] = ["post", "page", "wp_block", "wp_navigation"];
export const TYPES_WITH_EXCERPT: PostType[] = ["post", "page", "wp_block"];
export const TYPES_WITH_META: PostType[] = ["post", "page", "attachment", "wp_block"];

/** The input of `PostField.read`. */
export interface FieldView {
  post: Post;
  collection: Collection;
  context: Context;
  site: Site;
  index: SiteIndex;
  /** True if texts that a password protects are shown. */
  isRevealed: boolean;
  /** Number of words in an excerpt that is generated from the content. */
  excerptLength: number;
  /** Shared by the contents of one response. Default: that of one content. */
  budget?: RenderBudget | undefined;
}

/** The input of `PostField.write`. The caller checks and completes `post` afterwards. */
export interface FieldTarget {
  post: { -readonly [K in keyof Post]: Post[K] };
  collection: Collection;
  caller: Caller;
  site: Site;
  index: SiteIndex;
}

export interface PostField {
  /** Responses, OPTIONS, OpenAPI and the argument of writes follow from it. */
  schema: Schema;
  /** The part of the schema that differs between post types. */
  schemaOfType?: (collection: Collection) => Schema;
  /** `undefined`: this item does not have the field. A promise for a text that is rendered. */
  read: (view: FieldView) => Json | undefined | Promise<Json>;
  /** Set if the value is HTML: how it is sanitised before `write` gets it. */
  html?: HtmlField;
  /**
   * Writes a value that is valid and coerced. Absent for a field that cannot be written, or that
   * `applyPostValues` writes by other rules.
   */
  write?: (value: Json, target: FieldTarget) => void;
  /** Overrides how the schema validates, sanitises and describes the argument. */
  argument?: Argument;
  /** True if an author's autosave of his own draft writes the field to the draft. */
  isAutosaved?: true;
  /** True if rendering it takes longer than all other fields together. */
  isCostly?: true;
}

/** Which types have a shared field, or a filter of lists. */
export interface TypeSelection {
  /** The built-in types that have it. */
  types: PostType[];
  /**
   * The condition for declared types: a feature that it supports, `address` on the website,
   * `tree` of items, `terms`; `none`: no such type has it. Default: every one has it.
   */
  needs?: TypeFeature | "address" | "tree" | "terms" | "none";
}

export function isSelected({ types, needs }: TypeSelection, collection: Collection): boolean {
  if (needs === "terms") return collection.taxonomies.length > 0;
  if (isBuiltInName(collection.type)) return types.includes(collection.type);
  if (needs === undefined) return true;
  if (needs === "address") return collection.isViewable;
  return needs === "tree" ? collection.isHierarchical : collection.supports.includes(needs);
}

/** A field of the table that post types share. */
export interface SharedPostField extends PostField, TypeSelection {}

/** Fields by name, in the order in which responses list them. */
export type PostFields = { [name: string]: PostField };

/** Schema of a text as clients write it: a string, or an object with `raw`. */
export const rawTextSchema = (maxLength: number): Schema => ({
  anyOf: [
    { type: "string", maxLength },
    {
      type: "object",
      properties: { raw: { type: "string", maxLength, description: "As it is stored." } },
    },
  ],
});

/**
 * Returns the argument of a text. WordPress takes a string or an object with `raw`, and ignores any
 * other value.
 */
export const rawTextArgument = (maxLength: number): NonNullable<PostField["argument"]> => ({
  validate: () => undefined,
  sanitize: (value) => value,
  accepted: rawTextSchema(maxLength),
});

/** True for a text that PHP, and so WordPress, takes for none. */
export const isEmptyText = (text: string): boolean => text === "" || text === "0";

/**
 * Returns the raw text of a written title. WordPress ignores an empty `raw`, so that only a string
 * empties a title. Returns `undefined` to keep the title.
 */
export function readRawTitle(value: Json): string | undefined {
  const raw = readRaw(value);
  return raw !== undefined && typeof value !== "string" && isEmptyText(raw) ? undefined : raw;
}

/**
 * Returns the raw text of a written value, which is a string or an object with `raw`. Returns
 * `undefined` for anything else.
 */
export function readRaw(value: Json): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { raw } = value as JsonObject;
  return typeof raw === "string" || typeof raw === "number" ? String(raw) : undefined;
}

/** Returns the ids of a post's terms in the order of their names, as WordPress does. */
export function listTermsByName(post: Post, taxonomy: Taxonomy, index: SiteIndex): number[] {
  const ids = index.termsOf(post, taxonomy);
  if (ids.length < 2) return ids;
  const named = ids.map((id) => ({ id, name: fold(index.term(id)?.name ?? "") }));
  return named.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id - b.id)).map(({ id }) => id);
}
