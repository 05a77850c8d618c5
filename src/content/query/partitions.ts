/** Rows by type, standing and one more property, each part kept in order. Knows which lists there are, not what they are asked for. */

import type { PostType, Taxonomy } from "../records/records.js";
import {
  compareBy,
  DEFAULT_ORDERING,
  type EffectiveStatus,
  inDefaultOrdering,
  type Ordering,
  type PostRow,
} from "./row.js";
import { SortedList } from "./sorted-list.js";

/** What the rows of one part have in common beside type and standing; `all` is every row. */
export type Part =
  | "all"
  | `author/${number}`
  | `parent/${number}`
  | `${Taxonomy}/${number}`
  /** Posts whose categories were all deleted. */
  | "orphan";

export interface StatusPartitions {
  /** Each row of `removed` leaves the parts it is in, each of `added` enters its own; none may be in both. */
  readonly change: (removed: readonly PostRow[], added: readonly PostRow[]) => void;
  /** Moves rows that are known already in or out of the part `orphan`. */
  readonly changeOrphans: (removed: readonly PostRow[], added: readonly PostRow[]) => void;
  /** The rows of one part in that order, which is made on first use and kept from then on. Not to be changed, nor to be kept. */
  readonly list: (
    type: PostType,
    standing: EffectiveStatus,
    part: Part,
    ordering: Ordering,
  ) => SortedList<PostRow>;
}

interface Changes {
  readonly removed: PostRow[];
  readonly added: PostRow[];
}

const keyOf = (type: PostType, standing: EffectiveStatus, part: Part): string =>
  `${type} ${standing} ${part}`;

type PartsOf = (row: PostRow) => Iterable<Part>;

/** `isOrphan` is asked when rows enter and leave; what changes the answer for a row that is in has to be told by `changeOrphans`. */
export function createStatusPartitions(isOrphan: (row: PostRow) => boolean): StatusPartitions {
  const parts = new Map<string, Map<Ordering, SortedList<PostRow>>>();

  function* partsOf(row: PostRow): Iterable<Part> {
    const { author, parent, terms } = row.columns;
    yield "all";
    yield `author/${author}`;
    yield `parent/${parent}`;
    for (const [taxonomy, ids] of Object.entries(terms)) {
      for (const id of new Set(ids)) yield `${taxonomy as Taxonomy}/${id}`;
    }
    if (isOrphan(row)) yield "orphan";
  }

  function change(removed: readonly PostRow[], added: readonly PostRow[], of: PartsOf): void {
    const changes = new Map<string, Changes>();
    const collect = (rows: readonly PostRow[], side: keyof Changes): void => {
      for (const row of rows) {
        for (const part of of(row)) {
          const key = keyOf(row.columns.type, row.standing, part);
          const known = changes.get(key) ?? { removed: [], added: [] };
          known[side].push(row);
          changes.set(key, known);
        }
      }
    };
    collect(removed, "removed");
    // Put in order once, not once more in each of the parts that a row enters: a load brings all rows, in no order.
    collect(inDefaultOrdering(added), "added");
    for (const [key, { removed: leaving, added: coming }] of changes) {
      const lists = parts.get(key) ?? new Map([[DEFAULT_ORDERING, new SortedList<PostRow>()]]);
      parts.set(key, lists);
      for (const [ordering, rows] of lists) rows.change(compareBy(ordering), leaving, coming);
      if (lists.get(DEFAULT_ORDERING)?.length === 0) parts.delete(key);
    }
  }

  return {
    change: (removed, added) => change(removed, added, partsOf),
    changeOrphans: (removed, added) => change(removed, added, () => ["orphan"]),
    list(type, standing, part, ordering) {
      const lists = parts.get(keyOf(type, standing, part));
      const known = lists?.get(ordering);
      if (known || !lists) return known ?? new SortedList();
      const sorted = lists.get(DEFAULT_ORDERING)?.slice().sort(compareBy(ordering));
      const made = new SortedList(sorted);
      lists.set(ordering, made);
      return made;
    },
  };
}
