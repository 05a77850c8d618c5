/** Finds the posts of a query: executes its plan, searches the rows found, and cuts the page. */

import { nextTurn, TURN_CHARACTERS } from "../../core/next-turn.js";
import type { Indexes } from "./indexes.js";
import { type DrivingIndex, type Plan, type PlanCheck, type PlanOrder, planQuery } from "./plan.js";
import {
  compileCheck,
  compilePlanTest,
  listNamedIds,
  listSources,
  type RowTest,
  type Source,
} from "./plan-sources.js";
import { compareBy, DEFAULT_ORDERING, type Ordering, type PostRow } from "./row.js";
import { createSearchMatch, type PostSearch, type SearchMatch, type SearchText } from "./search.js";
import { type Compare, countBefore, type Sequence, type SortedList, slicePage } from "./sorted-list.js";
import type { PostPage, PostQuery } from "./types.js";

/**
 * Resolves with texts in the order of `ids`, at most {@link TEXTS_AT_ONCE} of them.
 * `undefined` for posts that no longer exist.
 */
export type SearchTexts = (ids: number[]) => Promise<(SearchText | undefined)[]>;

const TEXTS_AT_ONCE = 500;

const getId = ({ columns }: PostRow): number => columns.id;

/**
 * Returns the texts of a post that the caller may read. Texts behind a password are only for those
 * who may edit the post.
 *
 * Checks both the version in the index and the one that the texts were read from: the post may have
 * got its password in between.
 */
function selectReadableTexts(
  { columns }: PostRow,
  text: SearchText,
  { searchedProtected }: PostSearch,
): SearchText {
  if (!columns.hasPassword && !text.isProtected) return text;
  const editable = searchedProtected[columns.status];
  const mayEdit = editable === "all" || (editable !== undefined && editable.author === columns.author);
  return mayEdit ? text : { content: "", excerpt: "", file: text.file };
}

/** Ranks of the rows that fit a search; lower is better. */
type Ranks = Map<PostRow, number>;

/**
 * Reads the texts of `rows` in batches, and ranks those that fit. Gives others a turn in between.
 */
async function searchTexts(
  rows: PostRow[],
  search: PostSearch,
  { match, ranks, texts }: { match: SearchMatch; ranks: Ranks; texts: SearchTexts },
): Promise<void> {
  let sinceTurn = 0;
  for (let start = 0; start < rows.length; start += TEXTS_AT_ONCE) {
    const batch = rows.slice(start, start + TEXTS_AT_ONCE);
    const found = await texts(batch.map(getId));
    for (const [place, row] of batch.entries()) {
      const read = found[place];
      if (read === undefined) continue;
      const text = selectReadableTexts(row, read, search);
      if (match.byText(row.title(), text)) ranks.set(row, match.rank(row.title(), text));
      sinceTurn += row.title().length + text.content.length + text.excerpt.length;
      if (sinceTurn < TURN_CHARACTERS) continue;
      sinceTurn = 0;
      await nextTurn();
    }
  }
}

function searchRows(
  { lists, compare, total }: Found,
  { type, orderBy }: PostQuery,
  search: PostSearch,
  texts: SearchTexts,
): PostRow[] | Promise<PostRow[]> {
  const isRanked = orderBy === "relevance";
  const match = createSearchMatch(search, { hasFiles: type === "attachment", isRanked });
  const rows = slicePage(lists, compare, 0, total).filter(
    ({ columns }) => search.seesProtected || !columns.hasPassword,
  );
  const ranks: Ranks = new Map();
  const undecided: PostRow[] = [];
  for (const row of rows) {
    const fits = match.byTitle(row.title());
    if (fits === undefined) undecided.push(row);
    else if (fits) ranks.set(row, match.rank(row.title(), undefined));
  }

  const finish = (): PostRow[] => {
    const fitting = rows.filter((row) => ranks.has(row));
    // The sort is stable: rows of one rank keep their order.
    return isRanked ? fitting.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0)) : fitting;
  };
  return undecided.length > 0
    ? searchTexts(undecided, search, { match, ranks, texts }).then(finish)
    : finish();
}

/**
 * Puts sticky posts first: those on the page in their order, then all other published ones, newest
 * first, unless the list excludes them by their ids. So the page may grow.
 */
function putStickiesFirst(indexes: Indexes, query: PostQuery, page: PostRow[]): PostRow[] {
  const isOnPage = new Set(page);
  const excluded = new Set(query.exclude);
  const others = indexes.stickies
    .get(query.type)
    .flatMap((id) => indexes.rows.get(id) ?? [])
    .filter((row) => row.columns.status === "publish" && !isOnPage.has(row) && !excluded.has(row.columns.id))
    .sort(compareBy(DEFAULT_ORDERING));
  return [
    ...page.filter(({ columns }) => columns.sticky),
    ...others,
    ...page.filter(({ columns }) => !columns.sticky),
  ];
}

/** Returns a promise only if a search must read texts. It then reads them in batches. */
export function findPosts(
  indexes: Indexes,
  query: PostQuery,
  texts: SearchTexts,
): PostPage | Promise<PostPage> {
  const toPage = (page: PostRow[], total: number): PostPage => ({
    ids: (query.stickyFirst === true ? putStickiesFirst(indexes, query, page) : page).map(getId),
    total,
  });
  const plan = planQuery(query);
  const { search, offset, limit } = query;
  if (search === undefined || search.text.trim() === "") {
    const { lists, compare, total } = runPlan(indexes, plan, offset + limit);
    return toPage(slicePage(lists, compare, offset, limit), total);
  }
  const cut = (rows: PostRow[]): PostPage => toPage(rows.slice(offset, offset + limit), rows.length);
  const rows = searchRows(runPlan(indexes, plan, Number.POSITIVE_INFINITY), query, search, texts);
  return rows instanceof Promise ? rows.then(cut) : cut(rows);
}

// Executes a plan over the indexes of a site. Decides nothing about what a list means.

/** Rows that fit, in lists that share an order and no row. Must not be changed. */
interface Found {
  lists: Sequence<PostRow>[];
  compare: Compare<PostRow>;
  /** The number of all rows that fit, including those that the lists leave out. */
  total: number;
}

/** The parts that a query reads, through the driving index with the fewest rows. */
interface Scan {
  indexes: Indexes;
  plan: Plan;
  drivingIndex: DrivingIndex;
  sources: Source[];
}

/** Consecutive rows of a list. */
interface Slice {
  source: Source;
  rows: SortedList<PostRow>;
  start: number;
  end: number;
}

interface Picked {
  rows: Sequence<PostRow>;
  count: number;
}

/**
 * If a range of dates has fewer than this fraction of the rows, sorting its rows is cheaper than
 * reading all rows in the order of the list.
 */
const FEW_BY_DATE = 8;

type DateOrdering = "date/asc" | "date/desc";
type DateRange = Extract<PlanCheck, { kind: "date" | "modified" }>;

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

const countRows = (indexes: Indexes, sources: Source[]): number =>
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

const sliceWhole = ({ indexes, sources }: Scan, ordering: Ordering): Slice[] =>
  sources.map((source) => {
    const rows = getRows(indexes, source, ordering);
    return { source, rows, start: 0, end: rows.length };
  });

/** Returns the rows of each source within `range`, found by two searches. */
function sliceRange(
  { indexes, sources }: Scan,
  ordering: DateOrdering,
  { after, before }: DateRange,
): Slice[] {
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
function pickRows({ rows, start, end }: Slice, tests: RowTest[], keep: number): Picked {
  if (tests.length === 0) {
    const isWhole = start === 0 && end === rows.length;
    return { rows: isWhole ? rows : rows.slice(start, Math.min(end, start + keep)), count: end - start };
  }
  const page: PostRow[] = [];
  let count = 0;
  rows.forEach(start, end, (row) => {
    if (!tests.every((test) => test(row))) return;
    count += 1;
    if (page.length < keep) page.push(row);
  });
  return { rows: page, count };
}

/** Picks the rows of `slices` that pass all checks, except those that the indexes already cover. */
function pickSlices(
  { indexes, plan, drivingIndex }: Scan,
  slices: Slice[],
  { isRanged, keep }: { isRanged: boolean; keep: number },
): Picked[] {
  const covered = "covers" in drivingIndex ? drivingIndex.covers : undefined;
  const tests = plan.checks.flatMap((check, place) => {
    const isCovered = covered === place || (isRanged && place === plan.dateCheck);
    return isCovered ? [] : [compileCheck(indexes, check)];
  });
  return slices.map((slice) => pickRows(slice, [...slice.source.tests, ...tests], keep));
}

const toFound = (picked: Picked[], compare: Compare<PostRow>): Found => ({
  lists: picked.map(({ rows }) => rows),
  compare,
  total: picked.reduce((sum, { count }) => sum + count, 0),
});

function findNamed(indexes: Indexes, plan: Plan, ids: number[]): Found {
  const compare = createRowCompare(plan.order);
  const fits = compilePlanTest(indexes, plan);
  const rows = [...new Set(ids)].flatMap((id) => indexes.rows.get(id) ?? []);
  const list = rows.filter(fits).sort(compare);
  return { lists: [list], compare, total: list.length };
}

/** Executes `plan`. The lists may end after `keep` rows; the total counts all. */
function runPlan(indexes: Indexes, plan: Plan, keep: number): Found {
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
      const rows = picked.flatMap((one) => one.rows.slice());
      return { lists: [rows.sort(compare)], compare, total: rows.length };
    }
  }
  return toFound(pickSlices(scan, sliceWhole(scan, ordering), { isRanged: false, keep }), compare);
}
