/** Lists the terms of a taxonomy: the arguments, the filters and the order. Pure. */

import type { Arguments, Json } from "../../schema/types.js";
import { IDS as ID_LIST, SLUGS } from "../argument-bounds.js";
import type { TaxonomyDefinition } from "../records/content-model.js";
import type { Term } from "../records/records.js";
import {
  contextArgument,
  idArguments,
  offsetArgument,
  orderArgument,
  pageArguments,
  searchArgument,
} from "../rest/record-fields.js";
import { contains, fold } from "../text/normalise.js";
import { toSlug } from "../text/slug.js";

const ORDERS = [
  "id",
  "include",
  "name",
  "slug",
  "include_slugs",
  "term_group",
  "description",
  "count",
] as const;
type TermOrder = (typeof ORDERS)[number];

const IDS = { ...ID_LIST, default: [] } as const;

const ORDER_ARGUMENTS: Arguments = {
  order: orderArgument("asc"),
  orderby: {
    description: "Sort collection by term attribute.",
    type: "string",
    default: "name",
    enum: ORDERS,
  },
};
const OFFSET: Arguments = {
  offset: offsetArgument,
};
const PARENT: Arguments = {
  parent: { description: "Limit result set to terms assigned to a specific parent.", type: "integer" },
};

/** Returns the arguments of a list in the order of WordPress. */
export const termListArguments = ({ isHierarchical }: TaxonomyDefinition): Arguments => ({
  context: contextArgument,
  ...pageArguments,
  search: searchArgument,
  ...idArguments(IDS),
  ...(isHierarchical ? {} : OFFSET),
  ...ORDER_ARGUMENTS,
  hide_empty: {
    description: "Whether to hide terms not assigned to any posts.",
    type: "boolean",
    default: false,
  },
  ...(isHierarchical ? PARENT : {}),
  post: {
    description: "Limit result set to terms assigned to a specific post.",
    type: "integer",
    default: null,
  },
  slug: { description: "Limit result set to terms with one or more specific slugs.", ...SLUGS },
});

/** A query for terms. An absent property means no such filter. */
export interface TermQuery {
  search?: string;
  include?: number[];
  exclude?: number[];
  parent?: number;
  slug?: string[];
  hideEmpty: boolean;
  orderBy: TermOrder;
  order: "asc" | "desc";
}

/** Returns the query for the arguments of a list. `include` without ids orders by name. */
export function toTermQuery(values: { [name: string]: Json | undefined }): TermQuery {
  const list = (name: string): Json[] | undefined => {
    const value = values[name];
    return Array.isArray(value) && value.length > 0 ? value : undefined;
  };
  const include = list("include") as number[] | undefined;
  const slug = (list("slug") as string[] | undefined)?.map(toSlug);
  const asked = values["orderby"] as TermOrder;
  const isMissing = (asked === "include" && !include) || (asked === "include_slugs" && !slug);
  const orderBy = isMissing ? "name" : asked;
  const { search, parent } = values;
  return {
    orderBy,
    order: values["order"] === "desc" ? "desc" : "asc",
    hideEmpty: values["hide_empty"] === true,
    exclude: (values["exclude"] ?? []) as number[],
    ...(typeof search === "string" && search !== "" ? { search } : {}),
    ...(typeof parent === "number" ? { parent } : {}),
    ...(include === undefined ? {} : { include }),
    ...(slug === undefined ? {} : { slug }),
  };
}

/**
 * Finds the terms with a published post, or with such a term below them. `all`: every term of the
 * taxonomy. Linear.
 */
function findFilledTerms(all: Term[], countOf: (term: Term) => number): Set<number> {
  const byId = new Map(all.map((term) => [term.id, term]));
  const filled = new Set<number>();
  for (const term of all) {
    if (countOf(term) === 0) continue;
    let at: Term | undefined = term;
    while (at !== undefined && !filled.has(at.id)) {
      filled.add(at.id);
      at = byId.get(at.parent);
    }
  }
  return filled;
}

/**
 * Returns those of `terms` that fit, in order. Equal terms keep their order. `all`: every term of
 * the taxonomy.
 */
export function listTerms(
  terms: Term[],
  query: TermQuery,
  { all, countOf }: { all: Term[]; countOf: (term: Term) => number },
): Term[] {
  const { include, exclude, parent, slug, search, hideEmpty, orderBy, order } = query;
  const included = include && new Set(include);
  const excluded = new Set(exclude);
  const slugs = slug && new Set(slug);
  const filled = hideEmpty ? findFilledTerms(all, countOf) : undefined;
  const wanted = search === undefined ? undefined : fold(search.trim());
  const found = terms.filter(
    (term) =>
      (included === undefined || included.has(term.id)) &&
      !excluded.has(term.id) &&
      (parent === undefined || term.parent === parent) &&
      (slugs === undefined || slugs.has(term.slug)) &&
      (wanted === undefined || contains(fold(term.name), wanted) || contains(fold(term.slug), wanted)) &&
      (filled === undefined || filled.has(term.id)),
  );
  const isReversed = order === "desc";
  if (orderBy === "include") return sortByList(found, ({ id }) => id, include ?? [], isReversed);
  if (orderBy === "include_slugs") return sortByList(found, (term) => term.slug, slug ?? [], isReversed);

  const keyOf: {
    [by in Exclude<TermOrder, "include" | "include_slugs">]: (term: Term) => string | number;
  } = {
    id: ({ id }) => id,
    name: ({ name }) => fold(name),
    slug: (term) => term.slug,
    description: ({ description }) => fold(description),
    count: countOf,
    // There are no term groups.
    term_group: () => 0,
  };
  const keyed = found.map((term) => ({ term, key: keyOf[orderBy](term) }));
  const direction = isReversed ? -1 : 1;
  keyed.sort((a, b) => (a.key < b.key ? -direction : a.key > b.key ? direction : 0));
  return keyed.map(({ term }) => term);
}

/** Sorts terms by the place of their key in `keys`. Terms whose key is not there come last. */
function sortByList<K>(terms: Term[], keyOf: (term: Term) => K, keys: K[], isReversed: boolean): Term[] {
  const places = new Map(keys.map((key, at) => [key, at]));
  const place = (term: Term): number => places.get(keyOf(term)) ?? keys.length;
  const sorted = terms.toSorted((a, b) => place(a) - place(b));
  return isReversed ? sorted.reverse() : sorted;
}
