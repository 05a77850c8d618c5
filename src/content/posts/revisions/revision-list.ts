/** The list of a post's revisions: arguments, selection and order. Pure. */

import type { Argument, Arguments, Json } from "../../../schema/types.js";
import { IDS as ID_LIST } from "../../argument-bounds.js";
import { createSearchMatch, type SearchMatch } from "../../query/search.js";
import type { Revision } from "../../records/records.js";
import { RestError } from "../../rest/error.js";
import {
  contextArgument,
  idArguments,
  offsetArgument,
  orderArgument,
  pageArguments,
  searchArgument,
} from "../../rest/record-fields.js";
import { fold } from "../../text/normalise.js";

const ORDERS = ["date", "id", "include", "relevance", "slug", "include_slugs", "title"] as const;

const { default: _, ...perPageArgument } = pageArguments["per_page"] as Argument;
const IDS = { ...ID_LIST, default: [], late: true } as const;

/** Without `per_page`, all revisions are one page. */
export const revisionListArguments: Arguments = {
  context: contextArgument,
  page: pageArguments["page"] as Argument,
  per_page: perPageArgument,
  search: searchArgument,
  ...idArguments(IDS),
  offset: { ...offsetArgument, late: true },
  order: { ...orderArgument("desc"), late: true },
  orderby: {
    description: "Sort collection by object attribute.",
    type: "string",
    default: "date",
    enum: ORDERS,
    late: true,
  },
};

type Values = { [name: string]: Json | undefined };

export interface RevisionQuery {
  /** Empty: all. */
  include: number[];
  exclude: Set<number>;
  /** `undefined`: every revision matches. */
  match: SearchMatch | undefined;
  orderBy: (typeof ORDERS)[number];
  order: "asc" | "desc";
}

/**
 * Turns the arguments of a list into a query.
 *
 * @throws RestError 400 for an order that lacks what it orders by
 */
export function toRevisionQuery(values: Values): RevisionQuery {
  const orderBy = values["orderby"] as RevisionQuery["orderBy"];
  const search = (values["search"] ?? "") as string;
  const include = (values["include"] ?? []) as number[];
  if (orderBy === "relevance" && search === "") {
    throw new RestError(
      400,
      "rest_no_search_term_defined",
      "You need to define a search term to order by relevance.",
    );
  }
  if (orderBy === "include" && include.length === 0) {
    throw new RestError(
      400,
      "rest_orderby_include_missing_include",
      "You need to define an include parameter to order by include.",
    );
  }
  const isRanked = orderBy === "relevance";
  return {
    include,
    exclude: new Set((values["exclude"] ?? []) as number[]),
    match:
      search.trim() === ""
        ? undefined
        : createSearchMatch({ text: search, columns: [], isExact: false }, { hasFiles: false, isRanked }),
    orderBy,
    order: values["order"] as "asc" | "desc",
  };
}

/** Picks the ids that may be listed. Like in WordPress, `include` overrides `exclude`. */
export function selectCandidates(ids: readonly number[], { include, exclude }: RevisionQuery): number[] {
  if (include.length === 0) return ids.filter((id) => !exclude.has(id));
  const wanted = new Set(include);
  return ids.filter((id) => wanted.has(id));
}

/** The sort key of a revision. The texts of all revisions at once could take too much memory. */
export interface Entry {
  id: number;
  date: number;
  isAutosave: boolean;
  /** Folded. */
  title: string;
  /** The lower, the better the match. */
  rank: number;
}

/**
 * True if the order depends on more than ids. Without autosaves, the dates of revisions follow
 * their ids.
 */
export const needsRecords = ({ match, orderBy }: RevisionQuery, autosaves: Set<number>): boolean =>
  match !== undefined || orderBy === "title" || autosaves.size > 0;

export const toEntry = (id: number): Entry => ({ id, date: id, isAutosave: false, title: "", rank: 0 });

/** Returns `undefined` if the search does not match the revision. */
export function toLoadedEntry(
  { id, date, title, content, excerpt }: Revision,
  isAutosave: boolean,
  { match }: RevisionQuery,
): Entry | undefined {
  const folded = fold(title);
  const text = { content, excerpt };
  if (match?.byText(folded, text) === false) return undefined;
  return { id, date, isAutosave, title: folded, rank: match?.rank(folded, text) ?? 0 };
}

/** Returns the ids of `entries` in the order of the list. */
export function sortEntries(entries: Entry[], { orderBy, order, include }: RevisionQuery): number[] {
  const sign = order === "desc" ? -1 : 1;
  const places = new Map(include.map((id, place) => [id, place]));
  const byDate = (a: Entry, b: Entry): number => a.date - b.date || a.id - b.id;
  const byKey =
    (keyOf: (entry: Entry) => string) =>
    (a: Entry, b: Entry): number => {
      const [x, y] = [keyOf(a), keyOf(b)];
      return x < y ? -sign : x > y ? sign : a.id - b.id;
    };
  const compare: { [by in RevisionQuery["orderBy"]]: (a: Entry, b: Entry) => number } = {
    date: (a, b) => sign * byDate(a, b),
    // The list has no argument for slugs, so this order is the one by date.
    include_slugs: (a, b) => sign * byDate(a, b),
    id: (a, b) => sign * (a.id - b.id),
    include: (a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0),
    relevance: (a, b) => a.rank - b.rank || byDate(b, a),
    slug: byKey(({ isAutosave }) => (isAutosave ? "autosave" : "revision")),
    title: byKey(({ title }) => title),
  };
  return [...entries].sort(compare[orderBy]).map(({ id }) => id);
}

/**
 * Returns the requested part of the list. Like in WordPress, `offset` counts only together with
 * `per_page`, and then replaces `page`.
 *
 * @throws RestError 400 `rest_revision_invalid_offset_number` or
 * `rest_revision_invalid_page_number`, unless the list is empty
 */
export function toRevisionPage(
  values: Values,
  total: number,
): { start: number; end: number; perPage: number } {
  const page = Number(values["page"]);
  const offset = values["offset"] as number | undefined;
  const perPage = values["per_page"] === undefined ? Math.max(total, 1) : Number(values["per_page"]);
  if (total > 0 && offset !== undefined && offset >= total) {
    throw new RestError(
      400,
      "rest_revision_invalid_offset_number",
      "The offset number requested is larger than or equal to the number of available revisions.",
    );
  }
  if (total > 0 && !offset && page > Math.ceil(total / perPage)) {
    throw new RestError(
      400,
      "rest_revision_invalid_page_number",
      "The page number requested is larger than the number of pages available.",
    );
  }
  if (values["per_page"] === undefined) return { start: 0, end: total, perPage };
  const start = offset === undefined ? (page - 1) * perPage : Math.max(0, offset);
  return { start, end: start + perPage, perPage };
}
