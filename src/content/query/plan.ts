/** How a list is found, as data: which indexes may lead to its rows, what is left to be asked of each row, and how they stand. Looks at no record. */

import type { PostType, Taxonomy } from "../records/records.js";
import { type EffectiveStatus, type Ordering, STATUSES } from "./row.js";
import type { PostQuery, TermFilter, VisibilityScope } from "./types.js";

/** A question to one row. */
export type PlanCheck =
  | { readonly kind: "include" | "exclude"; readonly ids: readonly number[] }
  | { readonly kind: "author" | "parent"; readonly ids: readonly number[]; readonly isExcluded: boolean }
  | { readonly kind: "terms"; readonly relation: "AND" | "OR"; readonly filters: readonly TermFilter[] }
  | { readonly kind: "slug" | "format" | "mimeType"; readonly values: readonly string[] }
  | { readonly kind: "menuOrder"; readonly value: number }
  | { readonly kind: "sticky"; readonly value: boolean }
  | { readonly kind: "date" | "modified"; readonly after: number; readonly before: number };

/** An index that leads to all rows that fit, and more. `answers`: the check that it makes needless, by its place in `checks`. */
export type DrivingIndex =
  | { readonly by: "all" }
  | { readonly by: "id"; readonly ids: readonly number[]; readonly answers: number }
  | { readonly by: "slug"; readonly slugs: readonly string[]; readonly answers: number }
  | { readonly by: "sticky"; readonly answers: number }
  | { readonly by: "author" | "parent"; readonly ids: readonly number[]; readonly answers: number }
  /** The rows in at least one of the terms. */
  | {
      readonly by: "term";
      readonly taxonomy: Taxonomy;
      readonly terms: readonly number[];
      readonly includeChildren: boolean;
      readonly answers?: number;
    };

/** Which rows of one standing are seen: those of an author, or those that belong to a post of one; with neither, all. */
export interface AccessPath {
  readonly standing: EffectiveStatus;
  readonly author?: number;
  readonly heir?: number;
}

export type PlanOrder =
  | { readonly by: "columns"; readonly ordering: Ordering }
  | { readonly by: "ids"; readonly ids: readonly number[] }
  | { readonly by: "slugs"; readonly slugs: readonly string[] }
  | { readonly by: "relevance"; readonly ordering: Ordering };

export interface Plan {
  readonly type: PostType;
  readonly access: readonly AccessPath[];
  /** Any of them will do; the one with the fewest rows is taken. Those that name what they lead to come alone. */
  readonly leads: readonly [DrivingIndex, ...DrivingIndex[]];
  readonly checks: readonly PlanCheck[];
  /** The check that a list in the order of dates answers by two searches; its place in `checks`. */
  readonly dates?: number;
  readonly order: PlanOrder;
}

const isList = <T>(list: readonly T[] | undefined): list is readonly T[] =>
  list !== undefined && list.length > 0;

function accessOf({ type, visibility, inherited }: PostQuery): readonly AccessPath[] {
  const heirs = type === "attachment";
  const of = (
    standing: EffectiveStatus,
    own: VisibilityScope | undefined,
    parents?: VisibilityScope,
  ): readonly AccessPath[] => {
    if (own === undefined && parents === undefined) return [];
    if (own === "all" || parents === "all") return [{ standing }];
    return [
      {
        standing,
        ...(own && { author: own.author }),
        ...(parents && { heir: parents.author }),
      },
    ];
  };
  return [
    ...STATUSES.flatMap((status) => (heirs && status === "inherit" ? [] : of(status, visibility[status]))),
    ...STATUSES.flatMap((status) =>
      heirs ? of(`inherit/${status}`, visibility.inherit, inherited?.[status]) : [],
    ),
  ];
}

/** The checks of `query`, without those that the reference leaves out beside another. */
function checksOf(query: PostQuery): readonly PlanCheck[] {
  const { include, exclude, author, authorExclude, parent, parentExclude, slug, sticky, terms } = query;
  const range = (
    kind: "date" | "modified",
    after: number | undefined,
    before: number | undefined,
  ): PlanCheck[] =>
    after === undefined && before === undefined
      ? []
      : [{ kind, after: after ?? Number.NEGATIVE_INFINITY, before: before ?? Number.POSITIVE_INFINITY }];
  const list = <K extends "slug" | "format" | "mimeType">(
    kind: K,
    values: readonly string[] | undefined,
  ): PlanCheck[] => (isList(values) ? [{ kind, values }] : []);
  const checks: PlanCheck[] = [];
  // To the reference, sticky posts are a list of ids too, and a list of ids to include puts aside all those to exclude.
  if (isList(include)) checks.push({ kind: "include", ids: include });
  if (sticky === true) checks.push({ kind: "sticky", value: true });
  if (!isList(include) && sticky !== true) {
    if (isList(exclude)) checks.push({ kind: "exclude", ids: exclude });
    if (sticky === false) checks.push({ kind: "sticky", value: false });
  }
  if (isList(authorExclude)) checks.push({ kind: "author", ids: authorExclude, isExcluded: true });
  else if (isList(author)) checks.push({ kind: "author", ids: author, isExcluded: false });
  if (isList(parent)) checks.push({ kind: "parent", ids: parent, isExcluded: false });
  else if (isList(parentExclude)) checks.push({ kind: "parent", ids: parentExclude, isExcluded: true });
  const filters = terms?.filter((filter) => isList(filter.terms)) ?? [];
  if (query.termRelation === "OR" && filters.length > 1)
    checks.push({ kind: "terms", relation: "OR", filters });
  else for (const filter of filters) checks.push({ kind: "terms", relation: "AND", filters: [filter] });
  checks.push(...list("slug", slug), ...list("format", query.format), ...list("mimeType", query.mimeType));
  if (query.menuOrder !== undefined) checks.push({ kind: "menuOrder", value: query.menuOrder });
  checks.push(...range("date", query.after, query.before));
  checks.push(...range("modified", query.modifiedAfter, query.modifiedBefore));
  return checks;
}

/** What leads to the rows that pass `check`; nothing where only looking at each row tells. */
function leadOf(check: PlanCheck, answers: number): readonly DrivingIndex[] {
  if (check.kind === "include") return [{ by: "id", ids: check.ids, answers }];
  if (check.kind === "slug") return [{ by: "slug", slugs: check.values, answers }];
  if (check.kind === "sticky") return check.value ? [{ by: "sticky", answers }] : [];
  if (check.kind === "author" || check.kind === "parent") {
    return check.isExcluded ? [] : [{ by: check.kind, ids: check.ids, answers }];
  }
  if (check.kind !== "terms") return [];
  const [filter, ...others] = check.filters;
  if (filter === undefined || others.length > 0 || filter.operator === "NOT") return [];
  const { taxonomy, terms, includeChildren, operator } = filter;
  if (operator === "OR") return [{ by: "term", taxonomy, terms, includeChildren, answers }];
  return terms.map((term) => ({ by: "term", taxonomy, terms: [term], includeChildren: false }) as const);
}

/** The indexes whose rows are few by their nature, the fewest first: no other has to be asked. */
const NAMED: readonly DrivingIndex["by"][] = ["id", "slug", "sticky"];

function leadsOf(checks: readonly PlanCheck[]): readonly [DrivingIndex, ...DrivingIndex[]] {
  const leads = checks.flatMap(leadOf);
  for (const by of NAMED) {
    const named = leads.find((lead) => lead.by === by);
    if (named) return [named];
  }
  const [first, ...others] = leads;
  return first ? [first, ...others] : [{ by: "all" }];
}

function orderOf({ orderBy, order, include, slug, search }: PostQuery): PlanOrder {
  if (orderBy === "include" && isList(include)) return { by: "ids", ids: include };
  if (orderBy === "include_slugs" && isList(slug)) return { by: "slugs", slugs: slug };
  if (orderBy === "relevance" && search) return { by: "relevance", ordering: `date/${order}` };
  const isGiven = orderBy !== "include" && orderBy !== "include_slugs" && orderBy !== "relevance";
  return { by: "columns", ordering: `${isGiven ? orderBy : "date"}/${order}` };
}

/**
 * How `query` is answered but for its search, its page and the sticky posts in front.
 *
 * Source of the rules: the reference. `include` puts `exclude` aside, `authorExclude` puts `author` aside, `parent` puts `parentExclude` aside;
 * an order by a list that was not given is the one by date; `include` and `include_slugs` take no direction.
 */
export function planQuery(query: PostQuery): Plan {
  const checks = checksOf(query);
  const dates = checks.findIndex(({ kind }) => kind === "date");
  return {
    type: query.type,
    access: accessOf(query),
    leads: leadsOf(checks),
    checks,
    ...(dates >= 0 && { dates }),
    order: orderOf(query),
  };
}
