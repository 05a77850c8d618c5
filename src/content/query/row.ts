/** A post as the indexes hold it, the orders of lists, and the tree of pages. */

import type { PostOrder } from "../records/content-model.js";
import type { PostColumns, PostStatus } from "../records/records.js";
import { fold } from "../text/normalise.js";
import type { Compare } from "./sorted-list.js";

/** The stored columns; frozen. */
export type StoredColumns = PostColumns & { version: number };

/**
 * The status of a post. If an attachment inherits its status, the status of the post it belongs to
 * follows: `inherit/draft`.
 */
export type EffectiveStatus = PostStatus | `inherit/${PostStatus}`;

export const STATUSES: PostStatus[] = [
  "publish",
  "future",
  "draft",
  "pending",
  "private",
  "trash",
  "auto-draft",
  "inherit",
];

export const EFFECTIVE_STATUSES: EffectiveStatus[] = STATUSES.flatMap((status) => [
  status,
  `inherit/${status}` as const,
]);

/**
 * Never changes: another state of the post is another row. So a row is always found where it was
 * put.
 */
export interface PostRow {
  columns: StoredColumns;
  status: EffectiveStatus;
  /**
   * The author of the post that an attachment with the status `inherit` belongs to; its own author
   * if there is no such post.
   */
  inheritedAuthor: number;
  /** Returns the folded title, which comparisons use. */
  title: () => string;
}

export function toPostRow(columns: StoredColumns, parent: PostColumns | undefined): PostRow {
  let title: string | undefined;
  const isInheriting = columns.type === "attachment" && columns.status === "inherit";
  return {
    columns,
    status: isInheriting ? `inherit/${parent?.status ?? "publish"}` : columns.status,
    inheritedAuthor: isInheriting ? (parent ?? columns).author : columns.author,
    title: () => {
      title ??= fold(columns.title);
      return title;
    },
  };
}

/** The orders that only need the columns. */
type ColumnOrder = Exclude<PostOrder, "include" | "include_slugs" | "relevance">;

/** An order with its direction. */
export type Ordering = `${ColumnOrder}/${"asc" | "desc"}`;

/** The order in which every part is kept from the start. */
export const DEFAULT_ORDERING = "date/desc" satisfies Ordering;

/**
 * Sorts rows by {@link DEFAULT_ORDERING}. The keys are copied first: a sort that looks them up in
 * the rows takes ten times as long.
 */
export const sortByDefault = (rows: PostRow[]): PostRow[] =>
  rows
    .map((row) => ({ row, date: row.columns.date, id: row.columns.id }))
    .sort((a, b) => b.date - a.date || b.id - a.id)
    .map(({ row }) => row);

const KEYS: { [order in ColumnOrder]: (row: PostRow) => number | string } = {
  author: ({ columns }) => columns.author,
  date: ({ columns }) => columns.date,
  id: ({ columns }) => columns.id,
  modified: ({ columns }) => columns.modified,
  parent: ({ columns }) => columns.parent,
  slug: ({ columns }) => columns.slug,
  title: (row) => row.title(),
  menu_order: ({ columns }) => columns.menuOrder,
};

const byId: Compare<PostRow> = (a, b) => a.columns.id - b.columns.id;

function createCompare(order: ColumnOrder, isDescending: boolean): Compare<PostRow> {
  const key = KEYS[order];
  const sign = isDescending ? -1 : 1;
  // WordPress reads dates from an index that continues with the id. In its other orders, equal
  // posts stay in the order of their creation, whatever the direction.
  const tie = order === "date" ? sign : 1;
  return (a, b) => {
    const x = key(a);
    const y = key(b);
    return x < y ? -sign : x > y ? sign : tie * byId(a, b);
  };
}

const COMPARISONS = new Map<Ordering, Compare<PostRow>>(
  (Object.keys(KEYS) as ColumnOrder[]).flatMap((order) => [
    [`${order}/asc`, createCompare(order, false)],
    [`${order}/desc`, createCompare(order, true)],
  ]),
);

export function compareBy(ordering: Ordering): Compare<PostRow> {
  return COMPARISONS.get(ordering) as Compare<PostRow>;
}

// Walks up the tree of pages.

/** Deeper than any real tree. A walk ends here, whatever is stored. */
const MAX_DEPTH = 100;

/** Returns the ids of the posts above a post, nearest first. Ends at a cycle, if one is stored. */
export function listAncestors(
  post: PostColumns,
  index: { post: (id: number) => PostColumns | undefined },
): number[] {
  const ancestors: number[] = [];
  for (let at = index.post(post.parent); at !== undefined; at = index.post(at.parent)) {
    if (at.id === post.id || ancestors.includes(at.id) || ancestors.length === MAX_DEPTH) break;
    ancestors.push(at.id);
  }
  return ancestors;
}
