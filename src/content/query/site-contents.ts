/** The resident content of a site at one time, and the indexes over it. A load builds a new one. */

import type { PostColumns, PostType, Term } from "../records/records.js";
import type { ContentChange } from "../store.js";
import { type Indexes, isOrphan } from "./indexes.js";
import { createMultiMap, type MultiMap } from "./multi-map.js";
import { createStatusPartitions } from "./partitions.js";
import { DEFAULT_ORDERING, EFFECTIVE_STATUSES, type PostRow, type StoredColumns, toPostRow } from "./row.js";
import { createPostSlugs } from "./slug-index.js";
import { type Compare, SortedList } from "./sorted-list.js";
import { createTermIndex } from "./term-index.js";

export const TERM_PREFIX = "term/";
export const POST_PREFIX = "post/";

/** Rows that leave and enter the sorted lists. Each list is updated once for all of them. */
export interface RowMoves {
  readonly removed: Set<PostRow>;
  readonly added: Set<PostRow>;
}

export interface SiteContents extends Indexes {
  /** The records that are neither posts nor terms. */
  readonly others: ReadonlyMap<string, { readonly version: number; readonly columns: string }>;
  readonly children: MultiMap<number>;
  readonly targets: MultiMap<string>;
  readonly scheduled: SortedList<PostRow>;
  /** Applies changes. Lists show them after `settle` was called with the same moves. */
  readonly apply: (changes: readonly ContentChange[], moves: RowMoves) => void;
  readonly settle: (moves: RowMoves) => void;
}

const isScheduled = ({ columns: { status, dateGmt } }: PostRow): boolean =>
  status === "future" && dateGmt !== null;

/** Returns when a scheduled post is due, in epoch ms. */
export const getDueTime = ({ columns }: PostRow): number => columns.dateGmt ?? Number.POSITIVE_INFINITY;

const compareDueTimes: Compare<PostRow> = (a, b) =>
  getDueTime(a) - getDueTime(b) || a.columns.id - b.columns.id;

export function createSiteContents(defaultCategory: () => number | undefined): SiteContents {
  const rows = new Map<number, PostRow>();
  const others = new Map<string, { readonly version: number; readonly columns: string }>();
  const terms = createTermIndex();
  const partitions = createStatusPartitions((row) => isOrphan(row, terms));
  const slugs = createPostSlugs();
  const stickies = createMultiMap<PostType>();
  const children = createMultiMap<number>();
  const targets = createMultiMap<string>();
  const scheduled = new SortedList<PostRow>();

  function enter(row: PostRow, { added }: RowMoves): void {
    const { id, type, parent, target, sticky } = row.columns;
    rows.set(id, row);
    added.add(row);
    slugs.add(row.columns);
    if (parent !== 0) children.add(parent, id);
    if (target !== "") targets.add(target, id);
    if (sticky) stickies.add(type, id);
  }

  function leave(row: PostRow, { removed, added }: RowMoves): void {
    const { id, type, parent, target } = row.columns;
    rows.delete(id);
    // A row that came with the same changes is in no list yet.
    if (!added.delete(row)) removed.add(row);
    slugs.remove(row.columns);
    children.remove(parent, id);
    targets.remove(target, id);
    stickies.remove(type, id);
  }

  function putPost(id: number, columns: StoredColumns | undefined, moves: RowMoves): void {
    const old = rows.get(id);
    if (old) leave(old, moves);
    if (columns) {
      const parent = columns.parent === id ? columns : rows.get(columns.parent)?.columns;
      enter(toPostRow(columns, parent), moves);
    }
    if (old?.columns.status === columns?.status && old?.columns.author === columns?.author) return;
    updateAttachments(id, columns, moves);
  }

  /** Gives the attachments of a post that inherit its status rows with the new one. */
  function updateAttachments(id: number, columns: StoredColumns | undefined, moves: RowMoves): void {
    for (const child of children.get(id)) {
      const row = rows.get(child);
      if (row?.columns.type !== "attachment" || row.columns.status !== "inherit" || child === id) continue;
      leave(row, moves);
      enter(toPostRow(row.columns, columns), moves);
    }
  }

  function putTerm(id: number, term: Term | undefined): void {
    const isComing = term?.taxonomy === "category";
    const isKnown = terms.has("category", id);
    // Only posts with a category that appears or disappears can become or cease to be orphans.
    const touched =
      isComing === isKnown
        ? []
        : EFFECTIVE_STATUSES.flatMap((status) =>
            partitions.list("post", status, `category/${id}`, DEFAULT_ORDERING).slice(),
          );
    const before = new Set(touched.filter((row) => isOrphan(row, terms)));
    if (term) terms.put(term);
    else terms.remove(id);
    const after = new Set(touched.filter((row) => isOrphan(row, terms)));
    partitions.changeOrphans(
      [...before].filter((row) => !after.has(row)),
      [...after].filter((row) => !before.has(row)),
    );
  }

  function applyChange({ key, version, columns }: ContentChange, moves: RowMoves): void {
    if (key.startsWith(TERM_PREFIX)) {
      const id = Number(key.slice(TERM_PREFIX.length));
      const term = columns === null ? undefined : (JSON.parse(columns) as Term);
      putTerm(id, term && Object.freeze(Object.assign(term, { version })));
    } else if (key.startsWith(POST_PREFIX)) {
      const id = Number(key.slice(POST_PREFIX.length));
      const post = columns === null ? undefined : { ...(JSON.parse(columns) as PostColumns), id, version };
      putPost(id, post && Object.freeze(post), moves);
    } else if (columns === null) others.delete(key);
    else others.set(key, { version, columns });
  }

  return {
    rows,
    others,
    partitions,
    terms,
    slugs,
    stickies,
    children,
    targets,
    scheduled,
    defaultCategory,
    apply(changes, moves) {
      for (const change of changes) applyChange(change, moves);
    },
    settle({ removed, added }) {
      partitions.change([...removed], [...added]);
      scheduled.change(compareDueTimes, [...removed].filter(isScheduled), [...added].filter(isScheduled));
    },
  };
}
