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
  | { by: "all" }
  | { by: "id"; ids: number[]; covers: number }
  | { by: "slug"; slugs: string[]; covers: number }
  | { by: "sticky"; covers: number }
  | { by: "author" | "parent"; ids: number[]; covers: number }
  /** The rows in at least one of the terms. */
  | {
      by: "term";
      taxonomy: Taxonomy;
      terms: readonly number[];
      includeChildren: boolean;
      covers?: number;
    };

/**
 * The rows of one type and status that are visible: those of `author`, and those that belong to a
 * post of `inheritedAuthor`. Without either, all of them.
 */
export interface AccessPath {
  type: PostType;
  status: EffectiveStatus;
  author?: number;
  inheritedAuthor?: number;
}

export type PlanOrder =
  | { by: "columns"; ordering: Ordering }
  | { by: "ids"; ids: number[] }
  | { by: "slugs"; slugs: string[] }
  | { by: "relevance"; ordering: Ordering };

export interface Plan {
  types: PostType[];
  access: AccessPath[];
  /**
   * Any of them leads to the rows; the one with the fewest rows is used. `id`, `slug` or `sticky`
   * comes alone.
   */
  drivingIndexes: [DrivingIndex, ...DrivingIndex[]];
  checks: PlanCheck[];
  /** The place in `checks` of the range that a list ordered by date finds by two searches. */
  dateCheck?: number;
  order: PlanOrder;
}

function toAccessPath(
  group: AccessPath,
  scope: VisibilityScope | undefined,
  inherited?: VisibilityScope,
): AccessPath[] {
  if (scope === undefined && inherited === undefined) return [];
  if (scope === "all" || inherited === "all") return [group];
  return [
    {
      ...group,
      ...(scope && { author: scope.author }),
      ...(inherited && { inheritedAuthor: inherited.author }),
    },
  ];
}

function listAccessPaths(type: PostType, { visibility, inherited }: PostQuery): AccessPath[] {
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
): DrivingIndex[] {
  if (operator === "NOT") return [];
  if (operator === "OR") return [{ by: "term", taxonomy, terms, includeChildren, covers }];
  return terms.map((term) => ({ by: "term", taxonomy, terms: [term], includeChildren: false }) as const);
}

/**
 * Returns the indexes that lead to the rows that pass `check`; empty if each row must be tested.
 */
function listDrivingIndexes(check: PlanCheck, covers: number): DrivingIndex[] {
  if (check.kind === "include") return [{ by: "id", ids: check.ids, covers }];
  if (check.kind === "slug") return [{ by: "slug", slugs: check.values, covers }];
  if (check.kind === "sticky") return check.value ? [{ by: "sticky", covers }] : [];
  if (check.kind === "author" || check.kind === "parent") {
    return check.isExcluded ? [] : [{ by: check.kind, ids: check.ids, covers }];
  }
  return check.kind === "terms" ? listTermIndexes(check.filter, covers) : [];
}

/** Indexes that always have few rows, the smallest first. If there is one, no other is needed. */
const NAMED: DrivingIndex["by"][] = ["id", "slug", "sticky"];

function chooseDrivingIndexes(checks: PlanCheck[]): Plan["drivingIndexes"] {
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
 * `author`, and `parent` overrides `parentExclude`. An order by an absent list is the
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
  | { kind: "include" | "exclude"; ids: number[] }
  | { kind: "author" | "parent"; ids: number[]; isExcluded: boolean }
  | { kind: "terms"; filter: TermFilter }
  | { kind: "any"; checks: PlanCheck[] }
  | { kind: "slug" | "format" | "mimeType"; values: string[] }
  | { kind: "menuOrder"; value: number }
  | { kind: "sticky"; value: boolean }
  | { kind: "date" | "modified"; after: number; before: number };

const isNonEmpty = <T>(list: readonly T[] | undefined): list is T[] => list !== undefined && list.length > 0;

/**
 * For WordPress, sticky posts are a list of ids too, and a list of ids to include overrides all ids
 * to exclude.
 */
function listIdChecks({ include, exclude, sticky }: PostQuery): PlanCheck[] {
  const checks: PlanCheck[] = [];
  if (isNonEmpty(include)) checks.push({ kind: "include", ids: include });
  if (sticky === true) checks.push({ kind: "sticky", value: true });
  if (checks.length > 0) return checks;
  if (isNonEmpty(exclude)) checks.push({ kind: "exclude", ids: exclude });
  if (sticky === false) checks.push({ kind: "sticky", value: false });
  return checks;
}

function listAuthorChecks({ author, authorExclude }: PostQuery): PlanCheck[] {
  if (isNonEmpty(authorExclude)) return [{ kind: "author", ids: authorExclude, isExcluded: true }];
  return isNonEmpty(author) ? [{ kind: "author", ids: author, isExcluded: false }] : [];
}

function listParentChecks({ parent, parentExclude }: PostQuery): PlanCheck[] {
  if (isNonEmpty(parent)) return [{ kind: "parent", ids: parent, isExcluded: false }];
  return isNonEmpty(parentExclude) ? [{ kind: "parent", ids: parentExclude, isExcluded: true }] : [];
}

/** For WordPress, a format is a term as well, so that the relation holds for it too. */
function listTermChecks({ terms, format, termRelation }: PostQuery): PlanCheck[] {
  const filters = terms?.filter((filter) => isNonEmpty(filter.terms)) ?? [];
  const checks: PlanCheck[] = [
    ...filters.map((filter) => ({ kind: "terms", filter }) as const),
    ...listValueChecks("format", format),
  ];
  return termRelation === "OR" && checks.length > 1 ? [{ kind: "any", checks }] : checks;
}

const listValueChecks = (
  kind: "slug" | "format" | "mimeType",
  values: readonly string[] | undefined,
): PlanCheck[] => (isNonEmpty(values) ? [{ kind, values }] : []);

const listRangeChecks = (
  kind: "date" | "modified",
  after: number | undefined,
  before: number | undefined,
): PlanCheck[] =>
  after === undefined && before === undefined
    ? []
    : [{ kind, after: after ?? Number.NEGATIVE_INFINITY, before: before ?? Number.POSITIVE_INFINITY }];

/** Returns the checks of `query`, without those that another filter overrides. */
function listChecks(query: PostQuery): PlanCheck[] {
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
