/**
 * The largest value of each kind of argument, for every route. The schemas of arguments repeat it,
 * so that OPTIONS and OpenAPI show it.
 *
 * A value at its bound costs a few milliseconds, and clients that work with WordPress stay below
 * it.
 */

import type { Schema } from "../schema/types.js";

/** In characters. */
export const LENGTHS = {
  /**
   * The largest possible `limits.requestBytes`: only the body bounds the text of an author with
   * `unfiltered_html`.
   */
  content: 67_108_864,
  /**
   * One line; WordPress's column has 65 535 bytes. It stays short because it is searched and makes
   * slugs.
   */
  title: 10_000,
  /** WordPress keeps 200 characters of a slug. A client may send the title that becomes a slug. */
  slug: 10_000,
  /** Names of types, templates, roles, media types and CSS classes. */
  name: 200,
  /**
   * WordPress keeps 200 characters of a term's name. Here markup counts, which is removed before.
   */
  termName: 1_000,
  /** Longer than any description of a category; every text of a term is sanitised. */
  termText: 20_000,
  /**
   * WordPress ignores a longer search. The first 250 characters of each word or phrase are
   * compared.
   */
  search: 1_600,
  /** As long as WordPress's column for it. */
  password: 255,
  /** The length that all browsers, servers and proxies accept. */
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
  /**
   * As many values as a JSON body may have, read within a few milliseconds. A client may list all
   * it knows.
   */
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
  itemLimit: COUNTS.ids,
} as const satisfies Schema;

/** A list of names. */
export const NAMES = {
  type: "array",
  items: { type: "string", maxLength: LENGTHS.name },
  itemLimit: COUNTS.names,
} as const satisfies Schema;

/** A list of slugs. */
export const SLUGS = {
  type: "array",
  items: { type: "string", maxLength: LENGTHS.slug },
  itemLimit: COUNTS.slugs,
} as const satisfies Schema;
