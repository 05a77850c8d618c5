/** The indexes of a site that a query can use: rows in partitions, terms, slugs. */

import type { PostColumns, PostType, Taxonomy, Term } from "../records/records.js";
import { createMultiMap, type MultiMap } from "./multi-map.js";
import {
  compareBy,
  DEFAULT_ORDERING,
  type EffectiveStatus,
  type Ordering,
  type PostRow,
  sortByDefault,
} from "./row.js";
import { createSlugIndex, type PostSlugs } from "./slug-index.js";
import { SortedList } from "./sorted-list.js";

export interface Indexes {
  rows: Map<number, PostRow>;
  partitions: StatusPartitions;
  terms: TermIndex;
  slugs: PostSlugs;
  stickies: MultiMap<PostType>;
  defaultCategory: () => number | undefined;
}

/** True if all categories of a post were deleted. Such a post is in the default category. */
export const isOrphan = ({ columns }: { columns: PostColumns }, terms: TermIndex): boolean => {
  if (columns.type !== "post") return false;
  const ids = columns.terms.category ?? [];
  return ids.length > 0 && !ids.some((id) => terms.has("category", id));
};

// Holds rows by type, status and one more property, each part in order. Knows which lists exist,
// not what they are used for.

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

interface StatusPartitions {
  /**
   * Takes each row of `removed` out of its parts and puts each of `added` in. No row may
   * be in both.
   */
  change: (removed: PostRow[], added: PostRow[]) => void;
  /** Moves known rows into or out of the part `orphan`. */
  changeOrphans: (removed: PostRow[], added: PostRow[]) => void;
  /**
   * Returns the rows of one part in that order. An order is created on first use and kept from then
   * on. The caller must neither change nor keep the list.
   */
  list: (type: PostType, status: EffectiveStatus, part: Part, ordering: Ordering) => SortedList<PostRow>;
}

interface Changes {
  removed: PostRow[];
  added: PostRow[];
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

  function change(removed: PostRow[], added: PostRow[], toParts: ListParts): void {
    const changes = new Map<string, Changes>();
    const collect = (rows: PostRow[], side: keyof Changes): void => {
      for (const row of rows) {
        for (const part of toParts(row)) {
          const key = toKey(row.columns.type, row.status, part);
          const found = changes.get(key) ?? { removed: [], added: [] };
          found[side].push(row);
          changes.set(key, found);
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
      const found = lists?.get(ordering);
      if (found || !lists) return found ?? new SortedList();
      const sorted = lists.get(DEFAULT_ORDERING)?.slice().sort(compareBy(ordering));
      const created = new SortedList(sorted);
      lists.set(ordering, created);
      return created;
    },
  };
}

// Indexes the terms of a site by taxonomy, parent and slug. Knows no post.

export interface TermIndex {
  get: (id: number) => Term | undefined;
  put: (term: Term) => void;
  remove: (id: number) => void;
  /** True if the term exists and belongs to that taxonomy. */
  has: (taxonomy: Taxonomy, id: number) => boolean;
  /** By id. */
  all: (taxonomy: Taxonomy) => Term[];
  /** By id. */
  below: (taxonomy: Taxonomy, parent: number) => Term[];
  /** By id. */
  withSlug: (taxonomy: Taxonomy, slug: string) => Term[];
  /** By id. Upper and lower case are the same. */
  withName: (taxonomy: Taxonomy, parent: number, name: string) => Term[];
  /** As in `SlugIndex`. */
  nextFreeSlug: (taxonomy: Taxonomy, stem: string, from: number) => number;
  /** Returns `ids` and the terms below them at any depth, nearest first. Visits each once. */
  withDescendants: (taxonomy: Taxonomy, ids: Iterable<number>) => Set<number>;
}

export function createTermIndex(): TermIndex {
  const terms = new Map<number, Term>();
  const byTaxonomy = createMultiMap<Taxonomy>();
  const byParent = createMultiMap<string>();
  const bySlug = createSlugIndex();
  const byName = createMultiMap<string>();
  const lists = new Map<Taxonomy, Term[]>();

  const resolve = (ids: number[]): Term[] => ids.flatMap((id) => terms.get(id) ?? []);
  const toNameKey = ({
    taxonomy,
    parent,
    name,
  }: {
    taxonomy: Taxonomy;
    parent: number;
    name: string;
  }): string => `${taxonomy}/${parent}/${name.toLowerCase()}`;
  const below = (taxonomy: Taxonomy, parent: number) => resolve(byParent.get(`${taxonomy}/${parent}`));

  function remove(id: number): void {
    const term = terms.get(id);
    if (!term) return;
    const { taxonomy, parent, slug } = term;
    terms.delete(id);
    lists.delete(taxonomy);
    byTaxonomy.remove(taxonomy, id);
    byParent.remove(`${taxonomy}/${parent}`, id);
    bySlug.remove(`${taxonomy}/${slug}`, id);
    byName.remove(toNameKey(term), id);
  }

  return {
    get: (id) => terms.get(id),
    put(term) {
      const { id, taxonomy, parent, slug } = term;
      remove(id);
      terms.set(id, term);
      lists.delete(taxonomy);
      byTaxonomy.add(taxonomy, id);
      byParent.add(`${taxonomy}/${parent}`, id);
      bySlug.add(`${taxonomy}/${slug}`, id);
      byName.add(toNameKey(term), id);
    },
    remove,
    has: (taxonomy, id) => terms.get(id)?.taxonomy === taxonomy,
    all(taxonomy) {
      const found = lists.get(taxonomy) ?? resolve(byTaxonomy.get(taxonomy));
      lists.set(taxonomy, found);
      return found;
    },
    below,
    withSlug: (taxonomy, slug) => resolve(bySlug.get(`${taxonomy}/${slug}`)),
    withName: (taxonomy, parent, name) => resolve(byName.get(toNameKey({ taxonomy, parent, name }))),
    nextFreeSlug: (taxonomy, stem, from) => bySlug.nextFree(`${taxonomy}/${stem}`, from),
    withDescendants(taxonomy, ids) {
      const found = new Set(ids);
      // The set grows during the iteration and takes no id twice.
      for (const parent of found) for (const child of below(taxonomy, parent)) found.add(child.id);
      return found;
    },
  };
}
