/** Executes a plan over the indexes of a site. Decides nothing about what a list means. */

import type { Indexes } from "./indexes.js";
import type { DrivingIndex, Plan, PlanCheck, PlanOrder } from "./plan.js";
import {
  compileCheck,
  compilePlanTest,
  listNamedIds,
  listSources,
  type RowTest,
  type Source,
} from "./plan-sources.js";
import { compareBy, DEFAULT_ORDERING, type Ordering, type PostRow } from "./row.js";
import { type Compare, countBefore, type Sequence, type SortedList } from "./sorted-list.js";

/** Rows that fit, in lists that share an order and no row. Must not be changed. */
export interface Found {
  readonly lists: readonly Sequence<PostRow>[];
  readonly compare: Compare<PostRow>;
  /** The number of all rows that fit, including those that the lists leave out. */
  readonly total: number;
}

/** The parts that a query reads, through the driving index with the fewest rows. */
interface Scan {
  readonly indexes: Indexes;
  readonly plan: Plan;
  readonly drivingIndex: DrivingIndex;
  readonly sources: readonly Source[];
}

/** Consecutive rows of a list. */
interface Slice {
  readonly source: Source;
  readonly rows: SortedList<PostRow>;
  readonly start: number;
  readonly end: number;
}

interface Picked {
  readonly kept: Sequence<PostRow>;
  readonly count: number;
}

/**
 * If a range of dates has fewer than this fraction of the rows, sorting its rows is cheaper than
 * reading all rows in the order of the list.
 */
const FEW_BY_DATE = 8;

type DateOrdering = "date/asc" | "date/desc";
type DateRange = Extract<PlanCheck, { readonly kind: "date" | "modified" }>;

const isByDate = (ordering: Ordering): ordering is DateOrdering =>
  ordering === "date/asc" || ordering === "date/desc";

function createRowCompare(order: PlanOrder): Compare<PostRow> {
  if (order.by === "columns" || order.by === "relevance") return compareBy(order.ordering);
  const places = new Map<number | string, number>();
  for (const item of order.by === "ids" ? order.ids : order.slugs) {
    if (!places.has(item)) places.set(item, places.size);
  }
  const getPlace = ({ columns }: PostRow): number =>
    places.get(order.by === "ids" ? columns.id : columns.slug) ?? places.size;
  return (a, b) => getPlace(a) - getPlace(b) || a.columns.id - b.columns.id;
}

function getDateRange({ dateCheck, checks }: Plan): DateRange | undefined {
  const check = dateCheck === undefined ? undefined : checks[dateCheck];
  return check?.kind === "date" ? check : undefined;
}

const getRows = (
  { partitions }: Indexes,
  { access, part }: Source,
  ordering: Ordering,
): SortedList<PostRow> => partitions.list(access.type, access.status, part, ordering);

const countRows = (indexes: Indexes, sources: readonly Source[]): number =>
  sources.reduce((sum, source) => sum + getRows(indexes, source, DEFAULT_ORDERING).length, 0);

function chooseScan(indexes: Indexes, plan: Plan): Scan {
  let [drivingIndex] = plan.drivingIndexes;
  let sources = listSources(indexes, plan, drivingIndex);
  for (const other of plan.drivingIndexes.slice(1)) {
    const others = listSources(indexes, plan, other);
    if (countRows(indexes, others) < countRows(indexes, sources)) [drivingIndex, sources] = [other, others];
  }
  return { indexes, plan, drivingIndex, sources };
}

const sliceWhole = ({ indexes, sources }: Scan, ordering: Ordering): readonly Slice[] =>
  sources.map((source) => {
    const rows = getRows(indexes, source, ordering);
    return { source, rows, start: 0, end: rows.length };
  });

/** Returns the rows of each source within `range`, found by two searches. */
function sliceRange(
  { indexes, sources }: Scan,
  ordering: DateOrdering,
  { after, before }: DateRange,
): readonly Slice[] {
  return sources.map((source) => {
    const rows = getRows(indexes, source, ordering);
    const isAscending = ordering === "date/asc";
    const start = countBefore(rows, ({ columns }) =>
      isAscending ? columns.date <= after : columns.date >= before,
    );
    const end = countBefore(rows, ({ columns }) =>
      isAscending ? columns.date < before : columns.date > after,
    );
    return { source, rows, start, end: Math.max(start, end) };
  });
}

/** Counts the rows of a slice that pass `tests`, and returns the first `keep` of them. */
function pickRows({ rows, start, end }: Slice, tests: readonly RowTest[], keep: number): Picked {
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

/** Picks the rows of `slices` that pass all checks, except those that the indexes already cover. */
function pickSlices(
  { indexes, plan, drivingIndex }: Scan,
  slices: readonly Slice[],
  { isRanged, keep }: { readonly isRanged: boolean; readonly keep: number },
): readonly Picked[] {
  const covered = "covers" in drivingIndex ? drivingIndex.covers : undefined;
  const tests = plan.checks.flatMap((check, place) => {
    const isCovered = covered === place || (isRanged && place === plan.dateCheck);
    return isCovered ? [] : [compileCheck(indexes, check)];
  });
  return slices.map((slice) => pickRows(slice, [...slice.source.tests, ...tests], keep));
}

const toFound = (picked: readonly Picked[], compare: Compare<PostRow>): Found => ({
  lists: picked.map(({ kept }) => kept),
  compare,
  total: picked.reduce((sum, { count }) => sum + count, 0),
});

function findNamed(indexes: Indexes, plan: Plan, ids: readonly number[]): Found {
  const compare = createRowCompare(plan.order);
  const fits = compilePlanTest(indexes, plan);
  const rows = [...new Set(ids)].flatMap((id) => indexes.rows.get(id) ?? []);
  const list = rows.filter(fits).sort(compare);
  return { lists: [list], compare, total: list.length };
}

/** Executes `plan`. The lists may end after `keep` rows; the total counts all. */
export function runPlan(indexes: Indexes, plan: Plan, keep: number): Found {
  const { order } = plan;
  const ids = listNamedIds(indexes, plan.types, plan.drivingIndexes[0]);
  if (ids !== undefined) return findNamed(indexes, plan, ids);

  const compare = createRowCompare(order);
  const scan = chooseScan(indexes, plan);
  const range = getDateRange(plan);
  const ordering = order.by === "columns" || order.by === "relevance" ? order.ordering : DEFAULT_ORDERING;
  if (range !== undefined && isByDate(ordering)) {
    const slices = sliceRange(scan, ordering, range);
    return toFound(pickSlices(scan, slices, { isRanged: true, keep }), compare);
  }
  if (range !== undefined) {
    const slices = sliceRange(scan, DEFAULT_ORDERING, range);
    const inRange = slices.reduce((sum, { start, end }) => sum + end - start, 0);
    if (inRange * FEW_BY_DATE < countRows(indexes, scan.sources)) {
      const picked = pickSlices(scan, slices, { isRanged: true, keep: Number.POSITIVE_INFINITY });
      const rows = picked.flatMap(({ kept }) => kept.slice());
      return { lists: [rows.sort(compare)], compare, total: rows.length };
    }
  }
  return toFound(pickSlices(scan, sliceWhole(scan, ordering), { isRanged: false, keep }), compare);
}
