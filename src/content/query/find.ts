/** Answers a query: the plan, then the search among what it leaves, then the page. */

import { nextTurn, TURN_CHARACTERS } from "../../core/next-turn.js";
import { planQuery } from "./plan.js";
import { compareBy, DEFAULT_ORDERING, type PostRow } from "./row.js";
import { compilePlanTest, type Found, type Indexes, runPlan } from "./run.js";
import { createSearchMatch, type PostSearch, type SearchText } from "./search.js";
import { slicePage } from "./sorted-list.js";
import type { PostPage, PostQuery } from "./types.js";

/** In the order of `ids`, at most {@link TEXTS_AT_ONCE} of them; `undefined` for what does not exist any more. */
export type SearchTexts = (ids: readonly number[]) => Promise<readonly (SearchText | undefined)[]>;

const TEXTS_AT_ONCE = 500;

const idOf = ({ columns }: PostRow): number => columns.id;

/**
 * The texts of a post as far as the caller may read them: not those behind a password, unless the caller may edit the post.
 *
 * Looks at the version in the index and at the one that the texts were read from: the post may have got its password in between.
 */
function readableTexts(
  { columns }: PostRow,
  text: SearchText,
  { searchedProtected }: PostSearch,
): SearchText {
  if (!columns.hasPassword && !text.isProtected) return text;
  const editable = searchedProtected[columns.status];
  const mayEdit = editable === "all" || (editable !== undefined && editable.author === columns.author);
  return mayEdit ? text : { content: "", excerpt: "", file: text.file };
}

function searched(
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
  /** How well a row fits, lower being better; absent where it does not. */
  const ranks = new Map<PostRow, number>();
  const open: PostRow[] = [];
  for (const row of rows) {
    const fits = match.byTitle(row.title());
    if (fits === undefined) open.push(row);
    else if (fits) ranks.set(row, match.rank(row.title(), undefined));
  }

  function finish(): readonly PostRow[] {
    const fitting = rows.filter((row) => ranks.has(row));
    // The sort of the language is stable: rows of one rank keep the order they are in.
    return isRanked ? fitting.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0)) : fitting;
  }

  async function read(): Promise<readonly PostRow[]> {
    let sinceTurn = 0;
    for (let start = 0; start < open.length; start += TEXTS_AT_ONCE) {
      const batch = open.slice(start, start + TEXTS_AT_ONCE);
      const found = await texts(batch.map(idOf));
      for (const [place, row] of batch.entries()) {
        const read = found[place];
        if (read === undefined) continue;
        const text = readableTexts(row, read, search);
        if (match.byText(row.title(), text)) ranks.set(row, match.rank(row.title(), text));
        sinceTurn += row.title().length + text.content.length + text.excerpt.length;
        if (sinceTurn < TURN_CHARACTERS) continue;
        sinceTurn = 0;
        await nextTurn();
      }
    }
    return finish();
  }

  return open.length > 0 ? read() : finish();
}

/** Whether the list is what the reference takes for the front of the site, where alone it puts sticky posts first. */
const isFront = ({ stickyFirst, offset, search, terms, format }: PostQuery): boolean =>
  stickyFirst === true &&
  offset === 0 &&
  !search?.text.trim() &&
  !format?.length &&
  !terms?.some((filter) => filter.operator !== "NOT" && filter.terms.length > 0);

/** Those on the page in their order, then published ones that fit but stand on another page, newest first, then the rest: the page may grow. */
function stickiesFirst(indexes: Indexes, query: PostQuery, page: readonly PostRow[]): readonly PostRow[] {
  const isOnPage = new Set(page);
  const fits = compilePlanTest(indexes, planQuery(query));
  const others = indexes.stickies
    .get(query.type)
    .flatMap((id) => indexes.rows.get(id) ?? [])
    .filter((row) => row.columns.status === "publish" && !isOnPage.has(row) && fits(row))
    .sort(compareBy(DEFAULT_ORDERING));
  return [
    ...page.filter(({ columns }) => columns.sticky),
    ...others,
    ...page.filter(({ columns }) => !columns.sticky),
  ];
}

/** At once, unless a search has to look into texts: then it reads them batch after batch. */
export function findPosts(
  indexes: Indexes,
  query: PostQuery,
  texts: SearchTexts,
): PostPage | Promise<PostPage> {
  const answer = (page: readonly PostRow[], total: number): PostPage => ({
    ids: (isFront(query) ? stickiesFirst(indexes, query, page) : page).map(idOf),
    total,
  });
  const plan = planQuery(query);
  const { search, offset, limit } = query;
  if (search === undefined || search.text.trim() === "") {
    const { lists, compare, total } = runPlan(indexes, plan, offset + limit);
    return answer(slicePage(lists, compare, offset, limit), total);
  }
  const cut = (rows: readonly PostRow[]): PostPage => answer(rows.slice(offset, offset + limit), rows.length);
  const rows = searched(runPlan(indexes, plan, Number.POSITIVE_INFINITY), query, search, texts);
  return rows instanceof Promise ? rows.then(cut) : cut(rows);
}
