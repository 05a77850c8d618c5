/**
 * Holds rows by type, status and one more property, each part in order. Knows which lists exist,
 * not what they are used for.
 */

import type { PostType, Taxonomy } from "../records/records.js";
import {
  compareBy,
  DEFAULT_ORDERING,
  type EffectiveStatus,
  type Ordering,
  type PostRow,
  sortByDefault,
} from "./row.js";
import { SortedList } from "./sorted-list.js";

/**
 * The property that the rows of one part share, in addition to type and status; `all` is every row.
 */
export type Part =
  | "all"
  | `author/${number}`
  | `parent/${number}`
  | `${Taxonomy}/${number}`
  /** Posts whose categories were all deleted. */
  | "orphan";

export interface StatusPartitions {
  /**
   * Takes each row of `removed` out of its parts and puts each of `added` into its own. No row may
   * be in both.
   */
  readonly change: (removed: readonly PostRow[], added: readonly PostRow[]) => void;
  /** Moves known rows into or out of the part `orphan`. */
  readonly changeOrphans: (removed: readonly PostRow[], added: readonly PostRow[]) => void;
  /**
   * Returns the rows of one part in that order. An order is created on first use and kept from then
   * on. The caller must neither change nor keep the list.
   */
  readonly list: (
    type: PostType,
    status: EffectiveStatus,
    part: Part,
    ordering: Ordering,
  ) => SortedList<PostRow>;
}

interface Changes {
  readonly removed: PostRow[];
  readonly added: PostRow[];
}

const toKey = (type: PostType, status: EffectiveStatus, part: Part): string => `${type} ${status} ${part}`;

type ListParts = (row: PostRow) => Iterable<Part>;

/**
 * `isOrphan` is called when rows enter and leave. If its result changes for a row in between, call
 * `changeOrphans`.
 */
export function createStatusPartitions(isOrphan: (row: PostRow) => boolean): StatusPartitions {
  const parts = new Map<string, Map<Ordering, SortedList<PostRow>>>();

  function* listParts(row: PostRow): Iterable<Part> {
    const { author, parent, terms } = row.columns;
    yield "all";
    yield `author/${author}`;
    yield `parent/${parent}`;
    for (const [taxonomy, ids] of Object.entries(terms)) {
      for (const id of new Set(ids)) yield `${taxonomy as Taxonomy}/${id}`;
    }
    if (isOrphan(row)) yield "orphan";
  }

  function change(removed: readonly PostRow[], added: readonly PostRow[], toParts: ListParts): void {
    const changes = new Map<string, Changes>();
    const collect = (rows: readonly PostRow[], side: keyof Changes): void => {
      for (const row of rows) {
        for (const part of toParts(row)) {
          const key = toKey(row.columns.type, row.status, part);
          const known = changes.get(key) ?? { removed: [], added: [] };
          known[side].push(row);
          changes.set(key, known);
        }
      }
    };
    collect(removed, "removed");
    // Sorted once, not again in each part that a row enters: a load brings all rows unsorted.
    collect(sortByDefault(added), "added");
    for (const [key, { removed: leaving, added: coming }] of changes) {
      const lists = parts.get(key) ?? new Map([[DEFAULT_ORDERING, new SortedList<PostRow>()]]);
      parts.set(key, lists);
      for (const [ordering, rows] of lists) rows.change(compareBy(ordering), leaving, coming);
      if (lists.get(DEFAULT_ORDERING)?.length === 0) parts.delete(key);
    }
  }

  return {
    change: (removed, added) => change(removed, added, listParts),
    changeOrphans: (removed, added) => change(removed, added, () => ["orphan"]),
    list(type, status, part, ordering) {
      const lists = parts.get(toKey(type, status, part));
      const known = lists?.get(ordering);
      if (known || !lists) return known ?? new SortedList();
      const sorted = lists.get(DEFAULT_ORDERING)?.slice().sort(compareBy(ordering));
      const created = new SortedList(sorted);
      lists.set(ordering, created);
      return created;
    },
  };
}
