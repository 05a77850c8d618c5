/**
 * The filters of lists. One entry declares the argument, the types that have it, and its part of
 * the query.
 */

import type { Argument, Arguments, Json, JsonObject, Schema } from "../../schema/types.js";
import { COUNTS, IDS, NAMES } from "../argument-bounds.js";
import type { Collection } from "../collections.js";
import type { PostQuery, TermFilter } from "../query/types.js";
import { KNOWN_MIME_TYPES } from "../records/known-mime-types.js";
import { POST_FORMATS } from "../records/post-formats.js";
import type { PostType, Taxonomy } from "../records/records.js";
import { getTaxonomy } from "../terms/taxonomies.js";
import { ADDRESSED_TYPES } from "./post-field.js";
import type { Values } from "./write-context.js";

interface ListFilter {
  /** Left out where the taxonomies of a type decide. */
  readonly types?: readonly PostType[];
  readonly argument: Argument;
  /** The member of the query, and its value. `undefined` does not filter. */
  readonly toQuery?: (value: Json, values: Values) => Partial<PostQuery> | undefined;
}

const ids: Argument = { ...IDS, default: [] };
const MEDIA_KINDS = ["image", "video", "text", "application", "audio"] as const;

/** Returns an array that has entries; `undefined` for anything else. */
export const nonEmpty = <T extends Json>(value: Json | undefined): readonly T[] | undefined =>
  Array.isArray(value) && value.length > 0 ? (value as readonly T[]) : undefined;

const toList =
  (column: "author" | "authorExclude" | "parent" | "parentExclude" | "format") =>
  (value: Json): Partial<PostQuery> | undefined => {
    const list = nonEmpty(value);
    return list && ({ [column]: list } as Partial<PostQuery>);
  };

const POST_ONLY: readonly PostType[] = ["post"];

/** In the order in which OPTIONS lists the arguments. Filters by term stand before `sticky`. */
const FILTERS: { readonly [name: string]: ListFilter } = {
  author: {
    types: ADDRESSED_TYPES,
    argument: { description: "Limit result set to posts assigned to specific authors.", ...ids },
    toQuery: toList("author"),
  },
  author_exclude: {
    types: ADDRESSED_TYPES,
    argument: { description: "Ensure result set excludes posts assigned to specific authors.", ...ids },
    toQuery: toList("authorExclude"),
  },
  menu_order: {
    types: ["page", "nav_menu_item"],
    argument: {
      description: "Limit result set to posts with a specific menu_order value.",
      type: "integer",
    },
    toQuery: (value) => ({ menuOrder: value as number }),
  },
  parent: {
    types: ["page", "attachment"],
    argument: { description: "Limit result set to items with particular parent IDs.", ...ids },
    toQuery: toList("parent"),
  },
  parent_exclude: {
    types: ["page", "attachment"],
    argument: {
      description: "Limit result set to all items except those of a particular parent ID.",
      ...ids,
    },
    toQuery: toList("parentExclude"),
  },
  tax_relation: {
    types: ["post", "nav_menu_item", "wp_block"],
    argument: {
      description: "Limit result set based on relationship between multiple taxonomies.",
      type: "string",
      enum: ["AND", "OR"],
    },
    toQuery: (value) => ({ termRelation: value as "AND" | "OR" }),
  },
};

const FILTERS_AFTER_TERMS: { readonly [name: string]: ListFilter } = {
  sticky: {
    types: POST_ONLY,
    argument: { description: "Limit result set to items that are sticky.", type: "boolean" },
    toQuery: (value) => ({ sticky: value as boolean }),
  },
  ignore_sticky: {
    types: POST_ONLY,
    argument: { description: "Whether to ignore sticky posts or not.", type: "boolean", default: true },
  },
  format: {
    types: POST_ONLY,
    argument: {
      description: "Limit result set to items assigned one or more given formats.",
      type: "array",
      mostItems: COUNTS.names,
      uniqueItems: true,
      items: { type: "string", enum: POST_FORMATS },
    },
    toQuery: toList("format"),
  },
  media_type: {
    types: ["attachment"],
    argument: {
      description: "Limit result set to attachments of a particular media type or media types.",
      type: "array",
      mostItems: COUNTS.names,
      items: { type: "string", enum: MEDIA_KINDS },
      default: null,
    },
    toQuery: (_, values) => toMimeTypes(values),
  },
  mime_type: {
    types: ["attachment"],
    argument: {
      description: "Limit result set to attachments of a particular MIME type or MIME types.",
      ...NAMES,
      default: null,
    },
    toQuery: (_, values) => toMimeTypes(values),
  },
};

/**
 * Both arguments name media types: `mime_type` whole ones, `media_type` all of a kind. As in
 * WordPress, unknown names filter nothing.
 */
function toMimeTypes({ mime_type: whole, media_type: kinds }: Values): Partial<PostQuery> | undefined {
  const mimeType = [
    ...((whole ?? []) as readonly string[]).filter((name) => KNOWN_MIME_TYPES.has(name)),
    ...((kinds ?? []) as readonly string[]).map((kind) => `${kind}/`),
  ];
  return mimeType.length > 0 ? { mimeType } : undefined;
}

const termFilters = (taxonomies: readonly Taxonomy[]): readonly (readonly [string, ListFilter])[] =>
  taxonomies.flatMap((taxonomy) => {
    const { base } = getTaxonomy(taxonomy);
    return [
      [base, { argument: termArgument(taxonomy, { isExclude: false }) }],
      [`${base}_exclude`, { argument: termArgument(taxonomy, { isExclude: true }) }],
    ] as const;
  });

const listFilters = ({ type, taxonomies }: Collection): readonly (readonly [string, ListFilter])[] => {
  const ofType = (filters: typeof FILTERS): [string, ListFilter][] =>
    Object.entries(filters).filter(([, { types }]) => types?.includes(type));
  return [...ofType(FILTERS), ...termFilters(taxonomies), ...ofType(FILTERS_AFTER_TERMS)];
};

/** Returns the arguments with which a list of this type is filtered. */
export const filterArguments = (collection: Collection): Arguments =>
  Object.fromEntries(listFilters(collection).map(([name, { argument }]) => [name, argument]));

/** Returns the function that turns the values of these arguments into members of the query. */
export function createFilterQuery(collection: Collection): (values: Values) => Partial<PostQuery> {
  const filters = listFilters(collection).filter(([, { toQuery }]) => toQuery !== undefined);
  return (values) => {
    const query: { -readonly [K in keyof PostQuery]?: PostQuery[K] } = {};
    for (const [name, { toQuery }] of filters) {
      const value = values[name];
      if (value !== undefined && value !== null) Object.assign(query, toQuery?.(value, values));
    }
    return query;
  };
}

// Filters of lists by the terms of a taxonomy: their arguments, and their part of the query.

const INCLUDE_CHILDREN: Schema = {
  description: "Whether to include child terms in the terms limiting the result set.",
  type: "boolean",
  default: false,
};

const OPERATOR: Schema = {
  description: "Whether items must be assigned all or any of the specified terms.",
  type: "string",
  enum: ["AND", "OR"],
  default: "OR",
};

/** Returns the argument that filters by term ids, or by an object with ids and options. */
function termArgument(taxonomy: Taxonomy, { isExclude }: { readonly isExclude: boolean }): Argument {
  const { labels, isHierarchical } = getTaxonomy(taxonomy);
  const verb = isExclude ? "except those with" : "with";
  return {
    description: `Limit result set to items ${verb} specific ${labels.name.toLowerCase()}.`,
    type: ["object", "array"],
    oneOf: [
      { title: "Term ID List", ...IDS },
      {
        title: "Term ID Taxonomy Query",
        type: "object",
        properties: {
          terms: { description: "Term IDs.", ...IDS, default: [] },
          ...(isHierarchical ? { include_children: INCLUDE_CHILDREN } : {}),
          ...(isExclude ? {} : { operator: OPERATOR }),
        },
        additionalProperties: false,
      },
    ],
  };
}

function toTermFilter(taxonomy: Taxonomy, value: Values[string], isExclude: boolean): TermFilter | undefined {
  if (value === undefined || value === null) return undefined;
  const query = (Array.isArray(value) ? { terms: value } : value) as JsonObject;
  const terms = (query["terms"] ?? []) as readonly number[];
  if (terms.length === 0) return undefined;
  const operator = isExclude ? "NOT" : query["operator"] === "AND" ? "AND" : "OR";
  return { taxonomy, terms, operator, includeChildren: query["include_children"] === true };
}

/** Returns the filters by term that the values of a list's arguments ask for. */
export const toTermFilters = (values: Values, { taxonomies }: Collection): readonly TermFilter[] =>
  taxonomies
    .flatMap((taxonomy) => {
      const { base } = getTaxonomy(taxonomy);
      return [
        toTermFilter(taxonomy, values[base], false),
        toTermFilter(taxonomy, values[`${base}_exclude`], true),
      ];
    })
    .filter((filter) => filter !== undefined);
