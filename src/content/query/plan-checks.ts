/** Turns the filters of a query into the checks of its plan, by the rules of WordPress. */

import type { PostQuery, TermFilter } from "./types.js";

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

export const isNonEmpty = <T>(list: readonly T[] | undefined): list is readonly T[] =>
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
export function listChecks(query: PostQuery): readonly PlanCheck[] {
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
