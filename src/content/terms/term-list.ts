/** The list of a taxonomy's terms: its arguments, and which terms it answers in which order. Pure. */

import type { Arguments, Json } from "../../schema/types.js";
import { IDS as ID_LIST, LENGTHS, SLUGS } from "../argument-bounds.js";
import { contains } from "../query/contains.js";
import { fold } from "../query/folding.js";
import type { Term } from "../records/records.js";
import { RestError } from "../rest/error.js";
import { contextArgument, pageArguments } from "../rest/record-fields.js";
import { toSlug } from "../text/slug.js";
import type { TaxonomyDefinition } from "./taxonomies.js";

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

export function termListArguments({ isHierarchical }: TaxonomyDefinition): Arguments {
  return {
    context: contextArgument,
    ...pageArguments,
    search: {
      description: "Limit results to those matching a string.",
      type: "string",
      maxLength: LENGTHS.search,
    },
    exclude: { description: "Ensure result set excludes specific IDs.", ...IDS },
    include: { description: "Limit result set to specific IDs.", ...IDS },
    ...(isHierarchical
      ? {}
      : { offset: { description: "Offset the result set by a specific number of items.", type: "integer" } }),
    order: {
      description: "Order sort attribute ascending or descending.",
      type: "string",
      default: "asc",
      enum: ["asc", "desc"],
    },
    orderby: {
      description: "Sort collection by term attribute.",
      type: "string",
      default: "name",
      enum: ORDERS,
    },
    hide_empty: {
      description: "Whether to hide terms not assigned to any posts.",
      type: "boolean",
      default: false,
    },
    ...(isHierarchical
      ? {
          parent: {
            description: "Limit result set to terms assigned to a specific parent.",
            type: "integer",
          },
        }
      : {}),
    post: {
      description: "Limit result set to terms assigned to a specific post.",
      type: "integer",
      default: null,
    },
    slug: {
      description: "Limit result set to terms with one or more specific slugs.",
      ...SLUGS,
    },
  };
}

/** What a list is asked for; absent means: no such filter. */
export interface TermQuery {
  readonly search?: string;
  readonly include?: readonly number[];
  readonly exclude?: readonly number[];
  readonly parent?: number;
  readonly slug?: readonly string[];
  readonly hideEmpty: boolean;
  readonly orderBy: TermOrder;
  readonly order: "asc" | "desc";
}

/**
 * The query behind the arguments of a list.
 *
 * Errors: RestError 400 for an order that lacks what it orders by.
 */
export function toTermQuery(values: { readonly [name: string]: Json | undefined }): TermQuery {
  const orderBy = values["orderby"] as TermOrder;
  const list = (name: string): readonly Json[] | undefined => {
    const value = values[name];
    return Array.isArray(value) && value.length > 0 ? value : undefined;
  };
  const include = list("include") as readonly number[] | undefined;
  const slug = (list("slug") as readonly string[] | undefined)?.map(toSlug);
  if (orderBy === "include" && include === undefined) {
    throw new RestError(
      400,
      "rest_orderby_include_missing_include",
      "You need to define an include parameter to order by include.",
    );
  }
  const { search, parent } = values;
  return {
    orderBy,
    order: values["order"] === "desc" ? "desc" : "asc",
    hideEmpty: values["hide_empty"] === true,
    exclude: (values["exclude"] ?? []) as readonly number[],
    ...(typeof search === "string" && search !== "" ? { search } : {}),
    ...(typeof parent === "number" ? { parent } : {}),
    ...(include === undefined ? {} : { include }),
    ...(slug === undefined ? {} : { slug }),
  };
}

/** Ids of the terms that hold a published post, or have one below them that does. `all`: every term of the taxonomy. Linear. */
function filledTerms(all: readonly Term[], countOf: (term: Term) => number): ReadonlySet<number> {
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

/** Those of `terms` that fit, in order; equals stay in the order they came in. `all`: every term of the taxonomy. */
export function listTerms(
  terms: readonly Term[],
  query: TermQuery,
  { all, countOf }: { readonly all: readonly Term[]; readonly countOf: (term: Term) => number },
): readonly Term[] {
  const { include, exclude, parent, slug, search, hideEmpty, orderBy, order } = query;
  const included = include && new Set(include);
  const excluded = new Set(exclude);
  const slugs = slug && new Set(slug);
  const filled = hideEmpty ? filledTerms(all, countOf) : undefined;
  const wanted = search === undefined ? undefined : fold(search);
  const found = terms.filter(
    (term) =>
      (included === undefined || included.has(term.id)) &&
      !excluded.has(term.id) &&
      (parent === undefined || term.parent === parent) &&
      (slugs === undefined || slugs.has(term.slug)) &&
      (wanted === undefined || contains(fold(term.name), wanted) || contains(fold(term.slug), wanted)) &&
      (filled === undefined || filled.has(term.id)),
  );
  if (orderBy === "include") return inOrderOf(found, ({ id }) => id, include ?? []);
  if (orderBy === "include_slugs") return inOrderOf(found, (term) => term.slug, slug ?? []);

  const keyOf: {
    readonly [by in Exclude<TermOrder, "include" | "include_slugs">]: (term: Term) => string | number;
  } = {
    id: ({ id }) => id,
    name: ({ name }) => fold(name),
    slug: (term) => term.slug,
    description: ({ description }) => fold(description),
    count: countOf,
    // Nobody groups terms.
    term_group: () => 0,
  };
  const keyed = found.map((term) => ({ term, key: keyOf[orderBy](term) }));
  const direction = order === "desc" ? -1 : 1;
  keyed.sort((a, b) => (a.key < b.key ? -direction : a.key > b.key ? direction : 0));
  return keyed.map(({ term }) => term);
}

/** By the place of their key in `keys`; those whose key is not there come last. */
function inOrderOf<K>(terms: readonly Term[], keyOf: (term: Term) => K, keys: readonly K[]): readonly Term[] {
  const places = new Map(keys.map((key, at) => [key, at]));
  const place = (term: Term): number => places.get(keyOf(term)) ?? keys.length;
  return terms.toSorted((a, b) => place(a) - place(b));
}
