/** Carries out a plan over the indexes of a site. Decides nothing about what a list means. */

import type { PostColumns, PostType, Taxonomy } from "../records/records.js";
import type { MultiMap } from "./multi-map.js";
import type { Part, StatusPartitions } from "./partitions.js";
import type { AccessPath, DrivingIndex, Plan, PlanCheck, PlanOrder } from "./plan.js";
import { compareBy, DEFAULT_ORDERING, type Ordering, type PostRow } from "./row.js";
import { type Compare, countBefore, type Sequence, type SortedList } from "./sorted-list.js";
import type { TermIndex } from "./term-index.js";
import type { TermFilter } from "./types.js";

/** The indexes that a plan may lead through. */
export interface Indexes {
  readonly rows: ReadonlyMap<number, PostRow>;
  readonly partitions: StatusPartitions;
  readonly terms: TermIndex;
  /** By `type/slug`. */
  readonly slugs: MultiMap<string>;
  readonly stickies: MultiMap<PostType>;
  readonly defaultCategory: () => number | undefined;
}

type Test = (row: PostRow) => boolean;

/** Rows that fit, in lists that share an order and no row; not to be changed. */
export interface Found {
  readonly lists: readonly Sequence<PostRow>[];
  readonly compare: Compare<PostRow>;
  /** Of all that fit, also of those that were not kept. */
  readonly total: number;
}

/** Whether all categories of a post were deleted: such a post is in the default one. */
export const isOrphan = ({ columns }: { readonly columns: PostColumns }, terms: TermIndex): boolean => {
  if (columns.type !== "post") return false;
  const ids = columns.terms.category ?? [];
  return ids.length > 0 && !ids.some((id) => terms.has("category", id));
};

/** Those of `ids` that exist, and the terms below them where they count. */
function existing(
  { terms }: Indexes,
  taxonomy: Taxonomy,
  ids: readonly number[],
  includeChildren: boolean,
): ReadonlySet<number> {
  const known = ids.filter((id) => terms.has(taxonomy, id));
  return includeChildren ? terms.withDescendants(taxonomy, known) : new Set(known);
}

function testOfTerms(indexes: Indexes, filter: TermFilter): Test {
  const { taxonomy, operator } = filter;
  const ids = existing(indexes, taxonomy, filter.terms, filter.includeChildren);
  const fallback = taxonomy === "category" ? indexes.defaultCategory() : undefined;
  const isIn = (row: PostRow, id: number): boolean =>
    row.columns.terms[taxonomy]?.includes(id) || (id === fallback && isOrphan(row, indexes.terms));
  if (operator === "AND") {
    if (filter.terms.some((id) => !ids.has(id))) return () => false;
    const every = [...ids];
    return (row) => every.every((id) => isIn(row, id));
  }
  const hasFallback = fallback !== undefined && ids.has(fallback);
  const isInAny: Test = (row) => {
    for (const id of row.columns.terms[taxonomy] ?? []) if (ids.has(id)) return true;
    return hasFallback && isOrphan(row, indexes.terms);
  };
  return operator === "OR" ? isInAny : (row) => !isInAny(row);
}

function testOf(indexes: Indexes, check: PlanCheck): Test {
  switch (check.kind) {
    case "include":
    case "exclude": {
      const ids = new Set(check.ids);
      return ({ columns }) => ids.has(columns.id) === (check.kind === "include");
    }
    case "author":
    case "parent": {
      const ids = new Set(check.ids);
      return ({ columns }) => ids.has(columns[check.kind]) !== check.isExcluded;
    }
    case "terms": {
      const tests = check.filters.map((filter) => testOfTerms(indexes, filter));
      return check.relation === "OR"
        ? (row) => tests.some((test) => test(row))
        : (row) => tests.every((test) => test(row));
    }
    case "slug":
    case "format": {
      const values = new Set(check.values);
      return ({ columns }) => values.has(columns[check.kind]);
    }
    case "mimeType": {
      // A kind stands among them as `image/`.
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

function testOfAccess({ author, heir }: AccessPath): Test | undefined {
  if (author === undefined && heir === undefined) return undefined;
  return (row) => row.columns.author === author || row.heir === heir;
}

/** Whether one row fits `plan`. */
export function compilePlanTest(indexes: Indexes, plan: Plan): Test {
  const access = new Map(plan.access.map((entry) => [entry.standing, testOfAccess(entry) ?? (() => true)]));
  const tests = plan.checks.map((check) => testOf(indexes, check));
  return (row) =>
    row.columns.type === plan.type &&
    access.get(row.standing)?.(row) === true &&
    tests.every((test) => test(row));
}

function compareOf(order: PlanOrder): Compare<PostRow> {
  if (order.by === "columns" || order.by === "relevance") return compareBy(order.ordering);
  const places = new Map<number | string, number>();
  for (const item of order.by === "ids" ? order.ids : order.slugs) {
    if (!places.has(item)) places.set(item, places.size);
  }
  const placeOf = ({ columns }: PostRow): number =>
    places.get(order.by === "ids" ? columns.id : columns.slug) ?? places.size;
  return (a, b) => placeOf(a) - placeOf(b) || a.columns.id - b.columns.id;
}

/** The ids that a lead names itself; `undefined` for one that goes through the parts. */
function namedBy(
  { slugs, stickies }: Indexes,
  type: PostType,
  lead: DrivingIndex,
): readonly number[] | undefined {
  if (lead.by === "id") return lead.ids;
  if (lead.by === "slug") return lead.slugs.flatMap((slug) => slugs.get(`${type}/${slug}`));
  return lead.by === "sticky" ? stickies.get(type) : undefined;
}

/** A part of the rows of one standing, and what is asked of each of its rows beside the checks. */
interface Source {
  readonly access: AccessPath;
  readonly part: Part;
  readonly tests: readonly Test[];
}

/** The parts of the rows of one standing that `lead` goes through. */
function partsOf(
  indexes: Indexes,
  lead: DrivingIndex,
  author: number | undefined,
): readonly Pick<Source, "part" | "tests">[] {
  if (lead.by === "author" || lead.by === "parent") {
    const ids = [...new Set(lead.ids)].filter((id) => lead.by === "parent" || id === (author ?? id));
    return ids.map((id) => ({ part: `${lead.by}/${id}`, tests: [] }));
  }
  if (lead.by !== "term") return [{ part: author === undefined ? "all" : `author/${author}`, tests: [] }];
  const { taxonomy } = lead;
  const ids = [...existing(indexes, taxonomy, lead.terms, lead.includeChildren)];
  const fallback = taxonomy === "category" ? indexes.defaultCategory() : undefined;
  const places = new Map(ids.map((id, place) => [id, place]));
  const inTerms = ids.map((id, place) => {
    // A row in several of the terms is to come once.
    const isNew: Test = ({ columns }) => {
      for (const other of columns.terms[taxonomy] ?? [])
        if ((places.get(other) ?? place) < place) return false;
      return true;
    };
    return { part: `${taxonomy}/${id}`, tests: place === 0 ? [] : [isNew] } as const;
  });
  const hasOrphans = fallback !== undefined && ids.includes(fallback);
  return hasOrphans ? [...inTerms, { part: "orphan", tests: [] }] : inTerms;
}

function sourcesOf(indexes: Indexes, plan: Plan, lead: DrivingIndex): readonly Source[] {
  return plan.access.flatMap((access) => {
    const author = access.heir === undefined ? access.author : undefined;
    // The rows of one author's part need not be asked for him.
    const isAnswered = author !== undefined && (lead.by === "author" || lead.by === "all");
    const test = isAnswered ? undefined : testOfAccess(access);
    return partsOf(indexes, lead, author).map(({ part, tests }) => ({
      access,
      part,
      tests: test ? [test, ...tests] : tests,
    }));
  });
}

/** From so small a part of the rows on, it is cheaper to put those of a range of dates in order than to go through all in that order. */
const FEW_BY_DATE = 8;

/** Consecutive rows of a list. */
interface Stretch {
  readonly source: Source;
  readonly rows: SortedList<PostRow>;
  readonly start: number;
  readonly end: number;
}

/** The rows of a stretch that pass `tests`: how many, and the first `keep` of them. */
function pick(
  { rows, start, end }: Stretch,
  tests: readonly Test[],
  keep: number,
): { readonly kept: Sequence<PostRow>; readonly count: number } {
  if (tests.length === 0) {
    const isWhole = start === 0 && end === rows.length;
    return { kept: isWhole ? rows : rows.slice(start, Math.min(end, start + keep)), count: end - start };
  }
  const kept: PostRow[] = [];
  let count = 0;
  rows.forEach(start, end, (row) => {
    if (!tests.every((test) => test(row))) return;
    count += 1;
    if (kept.length < keep) kept.push(row);
  });
  return { kept, count };
}

type DateOrdering = "date/asc" | "date/desc";

const isByDate = (ordering: Ordering): ordering is DateOrdering =>
  ordering === "date/asc" || ordering === "date/desc";

/** The rows within `range`, by two searches. */
function within(
  source: Source,
  rows: SortedList<PostRow>,
  ordering: DateOrdering,
  { after, before }: { readonly after: number; readonly before: number },
): Stretch {
  const [start, end] =
    ordering === "date/asc"
      ? [
          countBefore(rows, ({ columns }) => columns.date <= after),
          countBefore(rows, ({ columns }) => columns.date < before),
        ]
      : [
          countBefore(rows, ({ columns }) => columns.date >= before),
          countBefore(rows, ({ columns }) => columns.date > after),
        ];
  return { source, rows, start, end: Math.max(start, end) };
}

/** At most the first `keep` rows of what is found are needed; the total counts all. */
export function runPlan(indexes: Indexes, plan: Plan, keep: number): Found {
  const { type, order } = plan;
  const compare = compareOf(order);
  const named = namedBy(indexes, type, plan.leads[0]);
  if (named) {
    const fits = compilePlanTest(indexes, plan);
    const rows = [...new Set(named)].flatMap((id) => indexes.rows.get(id) ?? []);
    const list = rows.filter(fits).sort(compare);
    return { lists: [list], compare, total: list.length };
  }

  const listOf = ({ access: { standing }, part }: Source, ordering: Ordering): SortedList<PostRow> =>
    indexes.partitions.list(type, standing, part, ordering);
  const sizeOf = (sources: readonly Source[]): number =>
    sources.reduce((sum, source) => sum + listOf(source, DEFAULT_ORDERING).length, 0);
  let [lead] = plan.leads;
  let sources = sourcesOf(indexes, plan, lead);
  for (const other of plan.leads.slice(1)) {
    const others = sourcesOf(indexes, plan, other);
    if (sizeOf(others) < sizeOf(sources)) [lead, sources] = [other, others];
  }

  const dates = plan.dates === undefined ? undefined : plan.checks[plan.dates];
  const range = dates?.kind === "date" ? dates : undefined;
  const whole = (ordering: Ordering): readonly Stretch[] =>
    sources.map((source) => {
      const rows = listOf(source, ordering);
      return { source, rows, start: 0, end: rows.length };
    });
  const ranged = (ordering: DateOrdering): readonly Stretch[] | undefined =>
    range && sources.map((source) => within(source, listOf(source, ordering), ordering, range));
  const picked = (stretches: readonly Stretch[], isRanged: boolean, most: number) => {
    const tests = plan.checks.flatMap((check, place) => {
      const isAnswered = ("answers" in lead && lead.answers === place) || (isRanged && place === plan.dates);
      return isAnswered ? [] : [testOf(indexes, check)];
    });
    return stretches.map((stretch) => pick(stretch, [...stretch.source.tests, ...tests], most));
  };
  const found = (picks: ReturnType<typeof picked>): Found => ({
    lists: picks.map(({ kept }) => kept),
    compare,
    total: picks.reduce((sum, { count }) => sum + count, 0),
  });

  const ordering = order.by === "columns" || order.by === "relevance" ? order.ordering : DEFAULT_ORDERING;
  if (isByDate(ordering)) {
    const stretches = ranged(ordering);
    return found(picked(stretches ?? whole(ordering), stretches !== undefined, keep));
  }
  const stretches = ranged(DEFAULT_ORDERING);
  const inRange = stretches?.reduce((sum, { start, end }) => sum + end - start, 0) ?? 0;
  if (stretches && inRange * FEW_BY_DATE < sizeOf(sources)) {
    const rows = picked(stretches, true, Number.POSITIVE_INFINITY).flatMap(({ kept }) => kept.slice());
    return { lists: [rows.sort(compare)], compare, total: rows.length };
  }
  return found(picked(whole(ordering), false, keep));
}
