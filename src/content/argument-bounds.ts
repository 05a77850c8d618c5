/**
 * The largest value that each kind of argument takes. One table for every route; the schemas of the arguments repeat it, so OPTIONS and OpenAPI show it.
 *
 * A bound is chosen so that a value at the bound costs a few milliseconds, and so that no client that works with WordPress meets it.
 */

import type { Schema } from "../schema/types.js";

/** In characters. */
export const LENGTHS = {
  /** The largest `limits.bodyBytes` there can be: a text of an author who may write free HTML is bounded by the body alone. */
  content: 67_108_864,
  /** A title is one line; WordPress's column has 65 535 bytes. A slug is made of it, and it is searched, so it stays short. */
  title: 10_000,
  /** WordPress keeps 200 characters of a slug. A client may send the title that a slug is made of. */
  slug: 10_000,
  /** Names of types, templates, roles, media types and CSS classes. */
  name: 200,
  /** WordPress keeps 200 characters of a term's name. Markup, which is removed before, counts here. */
  termName: 1_000,
  /** Longer than any description of a category; every text of a term is filtered. */
  termText: 20_000,
  /** WordPress ignores a search text that is longer. Of each word and phrase the first 250 characters are compared. */
  search: 1_600,
  /** As long as WordPress's column for it. */
  password: 255,
  /** What browsers, servers and proxies all take. */
  url: 2_048,
  /** The address in an item of a batch, with its query. */
  batchPath: 8_192,
  header: 8_192,
  /** The longest form of RFC 3339 has 35 characters. */
  date: 64,
  /** `_fields` and `_embed`: as much as Node takes in the head of a request. */
  selection: 16_384,
  /** A number in an argument for which WordPress states no type. */
  number: 64,
} as const;

/** In items. */
export const COUNTS = {
  /** As many values as a JSON body may have; a client may list everything it knows. Reading them takes a few milliseconds. */
  ids: 10_000,
  /** Each costs a slug. A page has 100 items. */
  slugs: 100,
  /** Roles, classes, statuses, media types, columns. */
  names: 100,
  /** Edits of one image. */
  edits: 100,
  /** `_fields` and `_embed`. */
  selection: 1_000,
  /** Members of a free object: the fields of an item in a batch, its headers. */
  members: 1_000,
} as const;

/** A list of ids. */
export const IDS = {
  type: "array",
  items: { type: "integer" },
  mostItems: COUNTS.ids,
} as const satisfies Schema;

/** A list of names. */
export const NAMES = {
  type: "array",
  items: { type: "string", maxLength: LENGTHS.name },
  mostItems: COUNTS.names,
} as const satisfies Schema;

/** A list of slugs. */
export const SLUGS = {
  type: "array",
  items: { type: "string", maxLength: LENGTHS.slug },
  mostItems: COUNTS.slugs,
} as const satisfies Schema;
