/** Compiles the checks of a plan into functions that test one row. */

import type { Taxonomy } from "../records/records.js";
import { type Indexes, isOrphan } from "./indexes.js";
import type { AccessPath, Plan } from "./plan.js";
import type { PlanCheck } from "./plan-checks.js";
import type { PostRow } from "./row.js";
import type { TermFilter } from "./types.js";

export type RowTest = (row: PostRow) => boolean;

/** Returns those of `ids` that exist, with the terms below them if children count. */
export function resolveTerms(
  { terms }: Indexes,
  taxonomy: Taxonomy,
  ids: readonly number[],
  includeChildren: boolean,
): ReadonlySet<number> {
  const known = ids.filter((id) => terms.has(taxonomy, id));
  return includeChildren ? terms.withDescendants(taxonomy, known) : new Set(known);
}

function compileTermFilter(indexes: Indexes, filter: TermFilter): RowTest {
  const { taxonomy, operator } = filter;
  const ids = resolveTerms(indexes, taxonomy, filter.terms, filter.includeChildren);
  const fallback = taxonomy === "category" ? indexes.defaultCategory() : undefined;
  const isIn = (row: PostRow, id: number): boolean =>
    row.columns.terms[taxonomy]?.includes(id) || (id === fallback && isOrphan(row, indexes.terms));
  if (operator === "AND") {
    if (filter.terms.some((id) => !ids.has(id))) return () => false;
    const every = [...ids];
    return (row) => every.every((id) => isIn(row, id));
  }
  const hasFallback = fallback !== undefined && ids.has(fallback);
  const isInAny: RowTest = (row) => {
    for (const id of row.columns.terms[taxonomy] ?? []) if (ids.has(id)) return true;
    return hasFallback && isOrphan(row, indexes.terms);
  };
  return operator === "OR" ? isInAny : (row) => !isInAny(row);
}

type GroupCheck = Extract<PlanCheck, { readonly kind: "terms" | "any" }>;
type IdCheck = Extract<PlanCheck, { readonly ids: readonly number[] }>;

function compileIdCheck(check: IdCheck): RowTest {
  const ids = new Set(check.ids);
  if ("isExcluded" in check) {
    const { kind, isExcluded } = check;
    return ({ columns }) => ids.has(columns[kind]) !== isExcluded;
  }
  const isIncluded = check.kind === "include";
  return ({ columns }) => ids.has(columns.id) === isIncluded;
}

function compileColumnCheck(check: Exclude<PlanCheck, GroupCheck | IdCheck>): RowTest {
  switch (check.kind) {
    case "slug":
    case "format": {
      const values = new Set(check.values);
      return ({ columns }) => values.has(columns[check.kind]);
    }
    case "mimeType": {
      // `image/` among the values stands for every image.
      const wanted = new Set(check.values);
      return ({ columns: { mimeType } }) =>
        wanted.has(mimeType) || wanted.has(mimeType.slice(0, mimeType.indexOf("/") + 1));
    }
    case "menuOrder":
      return ({ columns }) => columns.menuOrder === check.value;
    case "sticky":
      return ({ columns }) => columns.sticky === check.value;
    case "date":
    case "modified": {
      const { kind, after, before } = check;
      return ({ columns }) => columns[kind] > after && columns[kind] < before;
    }
  }
}

export function compileCheck(indexes: Indexes, check: PlanCheck): RowTest {
  if (check.kind === "terms") return compileTermFilter(indexes, check.filter);
  if (check.kind === "any") {
    const tests = check.checks.map((one) => compileCheck(indexes, one));
    return (row) => tests.some((test) => test(row));
  }
  return "ids" in check ? compileIdCheck(check) : compileColumnCheck(check);
}

/** Returns the test of who may see a row; `undefined` if every row is visible. */
export function compileAccessTest({ author, inheritedAuthor }: AccessPath): RowTest | undefined {
  if (author === undefined && inheritedAuthor === undefined) return undefined;
  return (row) => row.columns.author === author || row.inheritedAuthor === inheritedAuthor;
}

/** Returns a function that tests one row against all of `plan`. */
export function compilePlanTest(indexes: Indexes, plan: Plan): RowTest {
  const access = new Map(
    plan.access.map((path) => [`${path.type} ${path.status}`, compileAccessTest(path) ?? (() => true)]),
  );
  const tests = plan.checks.map((check) => compileCheck(indexes, check));
  return (row) =>
    access.get(`${row.columns.type} ${row.status}`)?.(row) === true && tests.every((test) => test(row));
}
