/**
 * The resident columns of one site, which lists and look-ups read. Knows no request and no storage.
 */

import type { ContentModel } from "../records/content-model.js";
import type { PostColumns, PostType, Taxonomy, Term } from "../records/records.js";
import type { ContentChange } from "../store.js";
import { findPosts, type SearchTexts } from "./find.js";
import {
  createStatusPartitions,
  createTermIndex,
  type Indexes,
  isOrphan,
  type Part,
  type TermIndex,
} from "./indexes.js";
import { createMultiMap, type MultiMap } from "./multi-map.js";
import {
  DEFAULT_ORDERING,
  EFFECTIVE_STATUSES,
  type EffectiveStatus,
  type PostRow,
  type StoredColumns,
  toPostRow,
} from "./row.js";
import { createPostSlugs, type PostSlugs } from "./slug-index.js";
import { type Compare, countBefore, SortedList } from "./sorted-list.js";
import type { PostPage, PostQuery } from "./types.js";

export type { SearchTexts } from "./find.js";
export type { StoredColumns } from "./row.js";
export type { SearchText } from "./search.js";

export interface SiteIndex {
  /** The types and taxonomies of the site. */
  model: ContentModel;
  /**
   * Replaces everything by `batches`. Reads see the former content until the last batch has come.
   */
  load: (batches: AsyncIterable<readonly ContentChange[]>) => Promise<void>;
  apply: (changes: readonly ContentChange[]) => void;
  post: (id: number) => StoredColumns | undefined;
  term: (id: number) => Term | undefined;
  /** Returns the columns, as JSON, of a record that is neither a post nor a term. */
  record: (key: string) => string | undefined;
  /** Returns the same for all records whose key begins with `prefix`. */
  records: (prefix: string) => { key: string; columns: string }[];
  /** Returns the version of any record with columns; 0 if it does not exist. */
  version: (key: string) => number;
  /** By id. */
  terms: (taxonomy: Taxonomy) => Term[];
  /** Returns the terms directly below `parent`, by id. */
  termChildren: (taxonomy: Taxonomy, parent: number) => Term[];
  /** By id. */
  termsBySlug: (taxonomy: Taxonomy, slug: string) => Term[];
  /** Returns `ids` and the terms below them at any depth, nearest first. Cycles are safe. */
  withDescendants: (taxonomy: Taxonomy, ids: Iterable<number>) => Set<number>;
  /**
   * Returns the terms of `post` that exist, in the order of its columns. If all its categories were
   * deleted, returns the default category.
   */
  termsOf: (post: PostColumns, taxonomy: Taxonomy) => number[];
  /** Counts the published posts of any type in the term itself. */
  countOf: (taxonomy: Taxonomy, id: number) => number;
  /**
   * Finds a page of posts. Returns a promise only if a search must read texts. Changes in the
   * meantime may or may not count.
   */
  find: (query: PostQuery, texts: SearchTexts) => PostPage | Promise<PostPage>;
  /** Returns the ids, ascending, of the posts whose `parent` it is. */
  childrenOf: (id: number, type?: PostType) => number[];
  /** Returns the ids, ascending, of the menu items that point at `post/<id>` or `term/<id>`. */
  targeting: (target: string) => number[];
  /** Returns the ids, ascending, of the posts of the type with that slug, in any status. */
  withSlug: (type: PostType, slug: string) => number[];
  /**
   * True if another post than the ignored ones has the slug, in any status, and its address would
   * be the one of `post`.
   */
  isSlugTaken: PostSlugs["isTaken"];
  /** As in `SlugIndex`, for slugs of `post`. All posts count. */
  nextFreeSlug: PostSlugs["nextFree"];
  /** The same for slugs of terms. */
  nextFreeTermSlug: TermIndex["nextFreeSlug"];
  /**
   * Returns the terms below `parent` with this name, by id. Upper and lower case are the same.
   */
  termsByName: TermIndex["withName"];
  /** Returns the earliest `dateGmt` of a post with the status `future`. */
  nextDue: () => number | undefined;
  /**
   * Returns the ids of the posts with the status `future` that are due at `now`, earliest first.
   */
  due: (now: number) => number[];
  /** Returns the number of posts of all types. */
  size: () => number;
}

/** The statuses that count as published. An attachment has the status of the post it belongs to. */
const PUBLISHED: EffectiveStatus[] = ["publish", "inherit/publish"];

const createMoves = (): RowMoves => ({ removed: new Set(), added: new Set() });

function countPublished({ partitions }: SiteContents, types: Iterable<PostType>, part: Part): number {
  let count = 0;
  for (const type of types)
    for (const status of PUBLISHED) count += partitions.list(type, status, part, DEFAULT_ORDERING).length;
  return count;
}

function getVersion({ rows, terms, others }: SiteContents, key: string): number {
  if (key.startsWith(POST_PREFIX))
    return rows.get(Number(key.slice(POST_PREFIX.length)))?.columns.version ?? 0;
  if (key.startsWith(TERM_PREFIX)) return terms.get(Number(key.slice(TERM_PREFIX.length)))?.version ?? 0;
  return others.get(key)?.version ?? 0;
}

export function createSiteIndex({
  defaultCategory = () => undefined,
  model,
}: {
  /** Returns the category of posts whose categories were all deleted. */
  defaultCategory?: (() => number | undefined) | undefined;
  model: ContentModel;
}): SiteIndex {
  let contents = createSiteContents(defaultCategory, model);

  function termsOf(post: PostColumns, taxonomy: Taxonomy): number[] {
    const ids = (post.terms[taxonomy] ?? []).filter((id) => contents.terms.has(taxonomy, id));
    const fallback = defaultCategory();
    return taxonomy === "category" && fallback !== undefined && isOrphan({ columns: post }, contents.terms)
      ? [fallback]
      : ids;
  }

  return Object.freeze<SiteIndex>({
    model,
    size: () => contents.rows.size,
    async load(batches) {
      const next = createSiteContents(defaultCategory, model);
      const moves = createMoves();
      for await (const batch of batches) next.apply(batch, moves);
      next.settle(moves);
      contents = next;
    },
    apply(changes) {
      const moves = createMoves();
      // Terms come first: so no post moves between lists that the same changes are about to update.
      contents.apply(
        changes.filter(({ key }) => key.startsWith(TERM_PREFIX)),
        moves,
      );
      contents.apply(
        changes.filter(({ key }) => !key.startsWith(TERM_PREFIX)),
        moves,
      );
      contents.settle(moves);
    },
    post: (id) => contents.rows.get(id)?.columns,
    term: (id) => contents.terms.get(id),
    record: (key) => contents.others.get(key)?.columns,
    records: (prefix) =>
      [...contents.others].flatMap(([key, { columns }]) =>
        key.startsWith(prefix) ? [{ key, columns }] : [],
      ),
    version: (key) => getVersion(contents, key),
    terms: (taxonomy) => contents.terms.all(taxonomy),
    termChildren: (taxonomy, parent) => contents.terms.below(taxonomy, parent),
    termsBySlug: (taxonomy, slug) => contents.terms.withSlug(taxonomy, slug),
    withDescendants: (taxonomy, ids) => contents.terms.withDescendants(taxonomy, ids),
    termsOf,
    countOf(taxonomy, id) {
      if (!contents.terms.has(taxonomy, id)) return 0;
      const isDefault = taxonomy === "category" && id === defaultCategory();
      const count = countPublished(contents, model.types.keys(), `${taxonomy}/${id}`);
      return isDefault ? count + countPublished(contents, model.types.keys(), "orphan") : count;
    },
    find: (query, texts) => findPosts(contents, query, texts),
    childrenOf(id, type) {
      const ids = contents.children.get(id);
      return type === undefined
        ? ids
        : ids.filter((child) => contents.rows.get(child)?.columns.type === type);
    },
    targeting: (target) => contents.targets.get(target),
    withSlug: (type, slug) =>
      contents.slugs.withSlug(type, slug).filter((id) => contents.rows.get(id)?.columns.type === type),
    isSlugTaken: (post, slug, isIgnored) => contents.slugs.isTaken(post, slug, isIgnored),
    nextFreeSlug: (post, stem, from) => contents.slugs.nextFree(post, stem, from),
    nextFreeTermSlug: (taxonomy, stem, from) => contents.terms.nextFreeSlug(taxonomy, stem, from),
    termsByName: (taxonomy, parent, name) => contents.terms.withName(taxonomy, parent, name),
    nextDue: () => contents.scheduled.at(0)?.columns.dateGmt ?? undefined,
    due: (now) =>
      contents.scheduled
        .slice(
          0,
          countBefore(contents.scheduled, (row) => getDueTime(row) <= now),
        )
        .map(({ columns }) => columns.id),
  });
}

// The resident content of a site at one time, and the indexes over it. A load builds a new one.

const TERM_PREFIX = "term/";
const POST_PREFIX = "post/";

/** Rows that leave and enter the sorted lists. Each list is updated once for all of them. */
interface RowMoves {
  removed: Set<PostRow>;
  added: Set<PostRow>;
}

interface SiteContents extends Indexes {
  /** The records that are neither posts nor terms. */
  others: Map<string, { version: number; columns: string }>;
  children: MultiMap<number>;
  targets: MultiMap<string>;
  scheduled: SortedList<PostRow>;
  /** Applies changes. Lists show them after `settle` was called with the same moves. */
  apply: (changes: readonly ContentChange[], moves: RowMoves) => void;
  settle: (moves: RowMoves) => void;
}

const isScheduled = ({ columns: { status, dateGmt } }: PostRow): boolean =>
  status === "future" && dateGmt !== null;

/** Returns when a scheduled post is due, in epoch ms. */
const getDueTime = ({ columns }: PostRow): number => columns.dateGmt ?? Number.POSITIVE_INFINITY;

const compareDueTimes: Compare<PostRow> = (a, b) =>
  getDueTime(a) - getDueTime(b) || a.columns.id - b.columns.id;

/** Records of types and taxonomies that `model` does not have are left out. */
function createSiteContents(defaultCategory: () => number | undefined, model: ContentModel): SiteContents {
  const rows = new Map<number, PostRow>();
  const others = new Map<string, { version: number; columns: string }>();
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
      const isKnown = term !== undefined && model.taxonomies.has(term.taxonomy);
      putTerm(id, isKnown ? Object.freeze(Object.assign(term, { version })) : undefined);
    } else if (key.startsWith(POST_PREFIX)) {
      const id = Number(key.slice(POST_PREFIX.length));
      const post = columns === null ? undefined : { ...(JSON.parse(columns) as PostColumns), id, version };
      const isKnown = post !== undefined && model.types.has(post.type);
      putPost(id, isKnown ? Object.freeze(post) : undefined, moves);
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
