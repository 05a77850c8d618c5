/** Finds the parts of the indexes whose rows a driving index leads to. */

import type { PostType } from "../records/records.js";
import type { Indexes } from "./indexes.js";
import type { Part } from "./partitions.js";
import type { AccessPath, DrivingIndex, Plan } from "./plan.js";
import { compileAccessTest, type RowTest, resolveTerms } from "./row-tests.js";

/**
 * A part of the rows of one status, with the tests of its rows that the plan's checks do not have.
 */
export interface Source {
  readonly access: AccessPath;
  readonly part: Part;
  readonly tests: readonly RowTest[];
}

type SourcePart = Pick<Source, "part" | "tests">;

/** Returns the ids that a driving index names itself; `undefined` for one that reads parts. */
export function listNamedIds(
  { rows, slugs, stickies }: Indexes,
  types: readonly PostType[],
  drivingIndex: DrivingIndex,
): readonly number[] | undefined {
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
  { taxonomy, terms, includeChildren }: Extract<DrivingIndex, { readonly by: "term" }>,
): readonly SourcePart[] {
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

/** Returns the parts of the rows of one status, of one author if `author` is given. */
function listParts(
  indexes: Indexes,
  drivingIndex: DrivingIndex,
  author: number | undefined,
): readonly SourcePart[] {
  if (drivingIndex.by === "author" || drivingIndex.by === "parent") {
    const { by } = drivingIndex;
    const ids = [...new Set(drivingIndex.ids)].filter((id) => by === "parent" || id === (author ?? id));
    return ids.map((id) => ({ part: `${by}/${id}`, tests: [] }));
  }
  if (drivingIndex.by === "term") return listTermParts(indexes, drivingIndex);
  return [{ part: author === undefined ? "all" : `author/${author}`, tests: [] }];
}

export function listSources(indexes: Indexes, plan: Plan, drivingIndex: DrivingIndex): readonly Source[] {
  return plan.access.flatMap((access) => {
    const author = access.inheritedAuthor === undefined ? access.author : undefined;
    // The rows of an author's own part need no test of the author.
    const isCovered = author !== undefined && (drivingIndex.by === "author" || drivingIndex.by === "all");
    const test = isCovered ? undefined : compileAccessTest(access);
    return listParts(indexes, drivingIndex, author).map(({ part, tests }) => ({
      access,
      part,
      tests: test ? [test, ...tests] : tests,
    }));
  });
}
