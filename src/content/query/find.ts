/** Finds the posts of a query: executes its plan, searches the rows found, and cuts the page. */

import { nextTurn, TURN_CHARACTERS } from "../../core/next-turn.js";
import type { Indexes } from "./indexes.js";
import { planQuery } from "./plan.js";
import { compareBy, DEFAULT_ORDERING, type PostRow } from "./row.js";
import { type Found, runPlan } from "./run.js";
import { createSearchMatch, type PostSearch, type SearchMatch, type SearchText } from "./search.js";
import { slicePage } from "./sorted-list.js";
import type { PostPage, PostQuery } from "./types.js";

/**
 * Resolves with texts in the order of `ids`, at most {@link TEXTS_AT_ONCE} of them.
 * `undefined` for posts that no longer exist.
 */
export type SearchTexts = (ids: readonly number[]) => Promise<readonly (SearchText | undefined)[]>;

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
  rows: readonly PostRow[],
  search: PostSearch,
  {
    match,
    ranks,
    texts,
  }: { readonly match: SearchMatch; readonly ranks: Ranks; readonly texts: SearchTexts },
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
): readonly PostRow[] | Promise<readonly PostRow[]> {
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

  const finish = (): readonly PostRow[] => {
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
function putStickiesFirst(indexes: Indexes, query: PostQuery, page: readonly PostRow[]): readonly PostRow[] {
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
  const toPage = (page: readonly PostRow[], total: number): PostPage => ({
    ids: (query.stickyFirst === true ? putStickiesFirst(indexes, query, page) : page).map(getId),
    total,
  });
  const plan = planQuery(query);
  const { search, offset, limit } = query;
  if (search === undefined || search.text.trim() === "") {
    const { lists, compare, total } = runPlan(indexes, plan, offset + limit);
    return toPage(slicePage(lists, compare, offset, limit), total);
  }
  const cut = (rows: readonly PostRow[]): PostPage => toPage(rows.slice(offset, offset + limit), rows.length);
  const rows = searchRows(runPlan(indexes, plan, Number.POSITIVE_INFINITY), query, search, texts);
  return rows instanceof Promise ? rows.then(cut) : cut(rows);
}
