/**
 * Plans a query as data: which indexes can lead to its rows, which checks remain for each row, and
 * how the rows are ordered. Reads no record.
 */

import type { PostType, Taxonomy } from "../records/records.js";
import { type EffectiveStatus, type Ordering, STATUSES } from "./row.js";
import type { PostQuery, TermFilter, VisibilityScope } from "./types.js";

/**
 * An index that leads to all rows that fit, and possibly to more. `covers` is the place in `checks`
 * of the check that every row of the index passes.
 */
export type DrivingIndex =
  | { readonly by: "all" }
  | { readonly by: "id"; readonly ids: readonly number[]; readonly covers: number }
  | { readonly by: "slug"; readonly slugs: readonly string[]; readonly covers: number }
  | { readonly by: "sticky"; readonly covers: number }
  | { readonly by: "author" | "parent"; readonly ids: readonly number[]; readonly covers: number }
  /** The rows in at least one of the terms. */
  | {
      readonly by: "term";
      readonly taxonomy: Taxonomy;
      readonly terms: readonly number[];
      readonly includeChildren: boolean;
      readonly covers?: number;
    };

/**
 * The rows of one type and status that are visible: those of `author`, and those that belong to a
 * post of `inheritedAuthor`. Without either, all of them.
 */
export interface AccessPath {
  readonly type: PostType;
  readonly status: EffectiveStatus;
  readonly author?: number;
  readonly inheritedAuthor?: number;
}

export type PlanOrder =
  | { readonly by: "columns"; readonly ordering: Ordering }
  | { readonly by: "ids"; readonly ids: readonly number[] }
  | { readonly by: "slugs"; readonly slugs: readonly string[] }
  | { readonly by: "relevance"; readonly ordering: Ordering };

export interface Plan {
  readonly types: readonly PostType[];
  readonly access: readonly AccessPath[];
  /**
   * Any of them leads to the rows; the one with the fewest rows is used. `id`, `slug` or `sticky`
   * comes alone.
   */
  readonly drivingIndexes: readonly [DrivingIndex, ...DrivingIndex[]];
  readonly checks: readonly PlanCheck[];
  /** The place in `checks` of the range that a list ordered by date finds by two searches. */
  readonly dateCheck?: number;
  readonly order: PlanOrder;
}

function toAccessPath(
  group: Pick<AccessPath, "type" | "status">,
  own: VisibilityScope | undefined,
  inherited?: VisibilityScope,
): readonly AccessPath[] {
  if (own === undefined && inherited === undefined) return [];
  if (own === "all" || inherited === "all") return [group];
  return [
    { ...group, ...(own && { author: own.author }), ...(inherited && { inheritedAuthor: inherited.author }) },
  ];
}

function listAccessPaths(
  type: PostType,
  { visibility, inherited }: Pick<PostQuery, "visibility" | "inherited">,
): readonly AccessPath[] {
  const canInherit = type === "attachment";
  return [
    ...STATUSES.flatMap((status) =>
      canInherit && status === "inherit" ? [] : toAccessPath({ type, status }, visibility[status]),
    ),
    ...STATUSES.flatMap((status) =>
      canInherit
        ? toAccessPath({ type, status: `inherit/${status}` }, visibility.inherit, inherited?.[status])
        : [],
    ),
  ];
}

function listTermIndexes(
  { taxonomy, terms, includeChildren, operator }: TermFilter,
  covers: number,
): readonly DrivingIndex[] {
  if (operator === "NOT") return [];
  if (operator === "OR") return [{ by: "term", taxonomy, terms, includeChildren, covers }];
  return terms.map((term) => ({ by: "term", taxonomy, terms: [term], includeChildren: false }) as const);
}

/**
 * Returns the indexes that lead to the rows that pass `check`; empty if each row must be tested.
 */
function listDrivingIndexes(check: PlanCheck, covers: number): readonly DrivingIndex[] {
  if (check.kind === "include") return [{ by: "id", ids: check.ids, covers }];
  if (check.kind === "slug") return [{ by: "slug", slugs: check.values, covers }];
  if (check.kind === "sticky") return check.value ? [{ by: "sticky", covers }] : [];
  if (check.kind === "author" || check.kind === "parent") {
    return check.isExcluded ? [] : [{ by: check.kind, ids: check.ids, covers }];
  }
  return check.kind === "terms" ? listTermIndexes(check.filter, covers) : [];
}

/** Indexes that always have few rows, the smallest first. If there is one, no other is needed. */
const NAMED: readonly DrivingIndex["by"][] = ["id", "slug", "sticky"];

function chooseDrivingIndexes(checks: readonly PlanCheck[]): Plan["drivingIndexes"] {
  const indexes = checks.flatMap(listDrivingIndexes);
  for (const by of NAMED) {
    const named = indexes.find((index) => index.by === by);
    if (named) return [named];
  }
  const [first, ...others] = indexes;
  return first ? [first, ...others] : [{ by: "all" }];
}

function planOrder({ orderBy, order, include, slug, search }: PostQuery): PlanOrder {
  if (orderBy === "include" && isNonEmpty(include)) return { by: "ids", ids: include };
  if (orderBy === "include_slugs" && isNonEmpty(slug)) return { by: "slugs", slugs: slug };
  if (orderBy === "relevance" && search) return { by: "relevance", ordering: `date/${order}` };
  const isGiven = orderBy !== "include" && orderBy !== "include_slugs" && orderBy !== "relevance";
  return { by: "columns", ordering: `${isGiven ? orderBy : "date"}/${order}` };
}

/**
 * Plans `query`, except for its search, its page and the sticky posts in front.
 *
 * The rules are those of WordPress. `include` overrides `exclude`, `authorExclude` overrides
 * `author`, and `parent` overrides `parentExclude`. An order by a list that was not given is the
 * order by date. `include` and `include_slugs` have no direction.
 */
export function planQuery(query: PostQuery): Plan {
  const checks = listChecks(query);
  const dateCheck = checks.findIndex(({ kind }) => kind === "date");
  const types = [query.type, ...(query.alsoTypes ?? [])];
  return {
    types,
    access: types.flatMap((type) => listAccessPaths(type, query)),
    drivingIndexes: chooseDrivingIndexes(checks),
    checks,
    ...(dateCheck >= 0 && { dateCheck }),
    order: planOrder(query),
  };
}

/** A condition on one row. */
export type PlanCheck =
  | { readonly kind: "include" | "exclude"; readonly ids: readonly number[] }
  | { readonly kind: "author" | "parent"; readonly ids: readonly number[]; readonly isExcluded: boolean }
  | { readonly kind: "terms"; readonly filter: TermFilter }
  | { readonly kind: "any"; readonly checks: readonly PlanCheck[] }
  | { readonly kind: "slug" | "format" | "mimeType"; readonly values: readonly string[] }
  | { readonly kind: "menuOrder"; readonly value: number }
  | { readonly kind: "sticky"; readonly value: boolean }
  | { readonly kind: "date" | "modified"; readonly after: number; readonly before: number };

const isNonEmpty = <T>(list: readonly T[] | undefined): list is readonly T[] =>
  list !== undefined && list.length > 0;

/**
 * For WordPress, sticky posts are a list of ids too, and a list of ids to include overrides all ids
 * to exclude.
 */
function listIdChecks({ include, exclude, sticky }: PostQuery): readonly PlanCheck[] {
  const checks: PlanCheck[] = [];
  if (isNonEmpty(include)) checks.push({ kind: "include", ids: include });
  if (sticky === true) checks.push({ kind: "sticky", value: true });
  if (checks.length > 0) return checks;
  if (isNonEmpty(exclude)) checks.push({ kind: "exclude", ids: exclude });
  if (sticky === false) checks.push({ kind: "sticky", value: false });
  return checks;
}

function listAuthorChecks({ author, authorExclude }: PostQuery): readonly PlanCheck[] {
  if (isNonEmpty(authorExclude)) return [{ kind: "author", ids: authorExclude, isExcluded: true }];
  return isNonEmpty(author) ? [{ kind: "author", ids: author, isExcluded: false }] : [];
}

function listParentChecks({ parent, parentExclude }: PostQuery): readonly PlanCheck[] {
  if (isNonEmpty(parent)) return [{ kind: "parent", ids: parent, isExcluded: false }];
  return isNonEmpty(parentExclude) ? [{ kind: "parent", ids: parentExclude, isExcluded: true }] : [];
}

/** For WordPress, a format is a term as well, so that the relation holds for it too. */
function listTermChecks({ terms, format, termRelation }: PostQuery): readonly PlanCheck[] {
  const filters = terms?.filter((filter) => isNonEmpty(filter.terms)) ?? [];
  const checks: readonly PlanCheck[] = [
    ...filters.map((filter) => ({ kind: "terms", filter }) as const),
    ...listValueChecks("format", format),
  ];
  return termRelation === "OR" && checks.length > 1 ? [{ kind: "any", checks }] : checks;
}

const listValueChecks = (
  kind: "slug" | "format" | "mimeType",
  values: readonly string[] | undefined,
): readonly PlanCheck[] => (isNonEmpty(values) ? [{ kind, values }] : []);

const listRangeChecks = (
  kind: "date" | "modified",
  after: number | undefined,
  before: number | undefined,
): readonly PlanCheck[] =>
  after === undefined && before === undefined
    ? []
    : [{ kind, after: after ?? Number.NEGATIVE_INFINITY, before: before ?? Number.POSITIVE_INFINITY }];

/** Returns the checks of `query`, without those that another filter overrides. */
function listChecks(query: PostQuery): readonly PlanCheck[] {
  const { menuOrder } = query;
  return [
    ...listIdChecks(query),
    ...listAuthorChecks(query),
    ...listParentChecks(query),
    ...listTermChecks(query),
    ...listValueChecks("slug", query.slug),
    ...listValueChecks("mimeType", query.mimeType),
    ...(menuOrder === undefined ? [] : [{ kind: "menuOrder", value: menuOrder } as const]),
    ...listRangeChecks("date", query.after, query.before),
    ...listRangeChecks("modified", query.modifiedAfter, query.modifiedBefore),
  ];
}
