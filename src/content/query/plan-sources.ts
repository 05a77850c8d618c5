/** Finds the parts of the indexes whose rows a driving index leads to. */

import type { PostType, Taxonomy } from "../records/records.js";
import { type Indexes, isOrphan, type Part } from "./indexes.js";
import type { AccessPath, DrivingIndex, Plan, PlanCheck } from "./plan.js";
import type { PostRow } from "./row.js";
import type { TermFilter } from "./types.js";

/**
 * A part of the rows of one status, with the tests of its rows that the plan's checks do not have.
 */
export interface Source {
  access: AccessPath;
  part: Part;
  tests: RowTest[];
}

type SourcePart = { part: Source["part"]; tests: Source["tests"] };

/** Returns the ids that a driving index names itself; `undefined` for one that reads parts. */
export function listNamedIds(
  { rows, slugs, stickies }: Indexes,
  types: PostType[],
  drivingIndex: DrivingIndex,
): number[] | undefined {
  if (drivingIndex.by === "id") return drivingIndex.ids;
  if (drivingIndex.by === "slug") {
    return types.flatMap((type) =>
      drivingIndex.slugs
        .flatMap((slug) => slugs.withSlug(type, slug))
        .filter((id) => rows.get(id)?.columns.type === type),
    );
  }
  return drivingIndex.by === "sticky" ? types.flatMap((type) => stickies.get(type)) : undefined;
}

function listTermParts(
  indexes: Indexes,
  { taxonomy, terms, includeChildren }: Extract<DrivingIndex, { by: "term" }>,
): SourcePart[] {
  const ids = [...resolveTerms(indexes, taxonomy, terms, includeChildren)];
  const fallback = taxonomy === "category" ? indexes.defaultCategory() : undefined;
  const places = new Map(ids.map((id, place) => [id, place]));
  const inTerms = ids.map((id, place) => {
    // A row in several of the terms must come once.
    const isFirst: RowTest = ({ columns }) => {
      for (const other of columns.terms[taxonomy] ?? [])
        if ((places.get(other) ?? place) < place) return false;
      return true;
    };
    return { part: `${taxonomy}/${id}`, tests: place === 0 ? [] : [isFirst] } as const;
  });
  const hasOrphans = fallback !== undefined && ids.includes(fallback);
  return hasOrphans ? [...inTerms, { part: "orphan", tests: [] }] : inTerms;
}

/** Returns the parts of the rows of one status, of one author if there is an `author`. */
function listParts(indexes: Indexes, drivingIndex: DrivingIndex, author: number | undefined): SourcePart[] {
  if (drivingIndex.by === "author" || drivingIndex.by === "parent") {
    const { by } = drivingIndex;
    const ids = [...new Set(drivingIndex.ids)].filter((id) => by === "parent" || id === (author ?? id));
    return ids.map((id) => ({ part: `${by}/${id}`, tests: [] }));
  }
  if (drivingIndex.by === "term") return listTermParts(indexes, drivingIndex);
  return [{ part: author === undefined ? "all" : `author/${author}`, tests: [] }];
}

export function listSources(indexes: Indexes, plan: Plan, drivingIndex: DrivingIndex): Source[] {
  return plan.access.flatMap((access) => {
    const author = access.inheritedAuthor === undefined ? access.author : undefined;
    // The rows of an author's part need no test of the author.
    const isCovered = author !== undefined && (drivingIndex.by === "author" || drivingIndex.by === "all");
    const test = isCovered ? undefined : compileAccessTest(access);
    return listParts(indexes, drivingIndex, author).map(({ part, tests }) => ({
      access,
      part,
      tests: test ? [test, ...tests] : tests,
    }));
  });
}

// Compiles the checks of a plan into functions that test one row.

export type RowTest = (row: PostRow) => boolean;

/** Returns those of `ids` that exist, with the terms below them if children count. */
function resolveTerms(
  { terms }: Indexes,
  taxonomy: Taxonomy,
  ids: readonly number[],
  includeChildren: boolean,
): Set<number> {
  const existing = ids.filter((id) => terms.has(taxonomy, id));
  return includeChildren ? terms.withDescendants(taxonomy, existing) : new Set(existing);
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

type GroupCheck = Extract<PlanCheck, { kind: "terms" | "any" }>;
type IdCheck = Extract<PlanCheck, { ids: number[] }>;

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
function compileAccessTest({ author, inheritedAuthor }: AccessPath): RowTest | undefined {
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
