/** The resident columns of one site and the indexes over them: what lists and look-ups are answered from. Knows no request and no storage. */

import type { PostColumns, PostType, Taxonomy, Term } from "../records/records.js";
import type { ContentChange } from "../store.js";
import { findPosts, type SearchTexts } from "./find.js";
import { createMultiMap, type MultiMap } from "./multi-map.js";
import { createStatusPartitions, type Part } from "./partitions.js";
import {
  DEFAULT_ORDERING,
  EFFECTIVE_STATUSES,
  type EffectiveStatus,
  type PostRow,
  type StoredColumns,
  toPostRow,
} from "./row.js";
import { type Indexes, isOrphan } from "./run.js";
import { type Compare, countBefore, SortedList } from "./sorted-list.js";
import { createTermIndex } from "./term-index.js";
import type { PostPage, PostQuery } from "./types.js";

export type { SearchTexts } from "./find.js";
export type { StoredColumns } from "./row.js";
export type { SearchText } from "./search.js";

export interface SiteIndex {
  /** Replaces everything by `batches`; until the last one has come, the former content is answered. */
  readonly load: (batches: AsyncIterable<readonly ContentChange[]>) => Promise<void>;
  readonly apply: (changes: readonly ContentChange[]) => void;
  readonly post: (id: number) => StoredColumns | undefined;
  readonly term: (id: number) => Term | undefined;
  /** Columns, as JSON, of a record that is neither a post nor a term. */
  readonly record: (key: string) => string | undefined;
  /** The same of all whose key begins with `prefix`. */
  readonly records: (prefix: string) => readonly { readonly key: string; readonly columns: string }[];
  /** Of any record with columns; 0 where there is none. */
  readonly version: (key: string) => number;
  /** By id. */
  readonly terms: (taxonomy: Taxonomy) => readonly Term[];
  /** The terms directly below `parent`, by id. */
  readonly termChildren: (taxonomy: Taxonomy, parent: number) => readonly Term[];
  /** By id. */
  readonly termsBySlug: (taxonomy: Taxonomy, slug: string) => readonly Term[];
  /** `ids` and the terms below them at any depth, nearest first. Ends on cycles. */
  readonly withDescendants: (taxonomy: Taxonomy, ids: Iterable<number>) => ReadonlySet<number>;
  /** The terms of `post` that exist, in the order of its columns; the default category where all its categories were deleted. */
  readonly termsOf: (post: PostColumns, taxonomy: Taxonomy) => readonly number[];
  /** Published posts of any type in the term itself. */
  readonly countOf: (taxonomy: Taxonomy, id: number) => number;
  /** At once, unless a search has to look into texts. What changes meanwhile may or may not count. */
  readonly find: (query: PostQuery, texts: SearchTexts) => PostPage | Promise<PostPage>;
  /** Ids, ascending, of the posts whose `parent` it is. */
  readonly childrenOf: (id: number, type?: PostType) => readonly number[];
  /** Ids, ascending, of the menu items that point at `post/<id>` or `term/<id>`. */
  readonly targeting: (target: string) => readonly number[];
  /** Ids, ascending, of the posts of the type with that slug, in any status. */
  readonly withSlug: (type: PostType, slug: string) => readonly number[];
  /** The earliest `dateGmt` of a post with the status `future`. */
  readonly nextDue: () => number | undefined;
  /** Ids of the posts with the status `future` whose `dateGmt` is not after `now`, earliest first. */
  readonly due: (now: number) => readonly number[];
  /** How many posts of all types there are. */
  readonly size: () => number;
}

export interface SiteIndexOptions {
  /** The category of posts whose categories were all deleted; asked whenever it matters. */
  readonly defaultCategory?: (() => number | undefined) | undefined;
}

const POST_TYPES: readonly PostType[] = ["post", "page", "attachment", "nav_menu_item", "wp_block"];
/** Published as far as counts go: an attachment is what the post is that it belongs to. */
const PUBLISHED: readonly EffectiveStatus[] = ["publish", "inherit/publish"];

const isScheduled = ({ columns: { status, dateGmt } }: PostRow): boolean =>
  status === "future" && dateGmt !== null;
const dueAt = ({ columns }: PostRow): number => columns.dateGmt ?? Number.POSITIVE_INFINITY;
const byTime: Compare<PostRow> = (a, b) => dueAt(a) - dueAt(b) || a.columns.id - b.columns.id;

const TERM = "term/";
const POST = "post/";

/** Rows that leave and enter the sorted lists, each list being gone through once for all of them. */
interface Moves {
  readonly removed: Set<PostRow>;
  readonly added: Set<PostRow>;
}

/** All that is known of the site at one time; a load builds another. */
interface Contents extends Indexes {
  readonly others: ReadonlyMap<string, { readonly version: number; readonly columns: string }>;
  readonly children: MultiMap<number>;
  readonly targets: MultiMap<string>;
  readonly scheduled: SortedList<PostRow>;
  /** Takes in changes; lists show them once `settle` was called with the same moves. */
  readonly take: (changes: readonly ContentChange[], moves: Moves) => void;
  readonly settle: (moves: Moves) => void;
}

function createContents(defaultCategory: () => number | undefined): Contents {
  const rows = new Map<number, PostRow>();
  const others = new Map<string, { readonly version: number; readonly columns: string }>();
  const terms = createTermIndex();
  const parts = createStatusPartitions((row) => isOrphan(row, terms));
  const slugs = createMultiMap<string>();
  const stickies = createMultiMap<PostType>();
  const children = createMultiMap<number>();
  const targets = createMultiMap<string>();
  const scheduled = new SortedList<PostRow>();

  function enter(row: PostRow, { added }: Moves): void {
    const { id, type, slug, parent, target, sticky } = row.columns;
    rows.set(id, row);
    added.add(row);
    if (slug !== "") slugs.add(`${type}/${slug}`, id);
    if (parent !== 0) children.add(parent, id);
    if (target !== "") targets.add(target, id);
    if (sticky) stickies.add(type, id);
  }

  function leave(row: PostRow, { removed, added }: Moves): void {
    const { id, type, slug, parent, target } = row.columns;
    rows.delete(id);
    // One that came with the same changes is in no list yet.
    if (!added.delete(row)) removed.add(row);
    slugs.remove(`${type}/${slug}`, id);
    children.remove(parent, id);
    targets.remove(target, id);
    stickies.remove(type, id);
  }

  function putPost(id: number, columns: StoredColumns | undefined, moves: Moves): void {
    const old = rows.get(id);
    if (old) leave(old, moves);
    if (columns) {
      const parent = columns.parent === id ? columns : rows.get(columns.parent)?.columns;
      enter(toPostRow(columns, parent), moves);
    }
    if (old?.columns.status === columns?.status && old?.columns.author === columns?.author) return;
    for (const child of children.get(id)) {
      const heir = rows.get(child);
      if (heir?.columns.type !== "attachment" || heir.columns.status !== "inherit" || child === id) continue;
      leave(heir, moves);
      enter(toPostRow(heir.columns, columns), moves);
    }
  }

  function putTerm(id: number, term: Term | undefined): void {
    const isComing = term?.taxonomy === "category";
    const isKnown = terms.has("category", id);
    // Only the posts that name a category which comes or goes can be left without any by it, or no longer.
    const touched =
      isComing === isKnown
        ? []
        : EFFECTIVE_STATUSES.flatMap((standing) =>
            parts.list("post", standing, `category/${id}`, DEFAULT_ORDERING).slice(),
          );
    const before = new Set(touched.filter((row) => isOrphan(row, terms)));
    if (term) terms.put(term);
    else terms.remove(id);
    const after = new Set(touched.filter((row) => isOrphan(row, terms)));
    parts.changeOrphans(
      [...before].filter((row) => !after.has(row)),
      [...after].filter((row) => !before.has(row)),
    );
  }

  return {
    rows,
    others,
    partitions: parts,
    terms,
    slugs,
    stickies,
    children,
    targets,
    scheduled,
    defaultCategory,
    take(changes, moves) {
      for (const { key, version, columns } of changes) {
        if (key.startsWith(TERM)) {
          const id = Number(key.slice(TERM.length));
          const term = columns === null ? undefined : (JSON.parse(columns) as Term);
          putTerm(id, term && Object.freeze(Object.assign(term, { version })));
        } else if (key.startsWith(POST)) {
          const id = Number(key.slice(POST.length));
          const post =
            columns === null ? undefined : { ...(JSON.parse(columns) as PostColumns), id, version };
          putPost(id, post && Object.freeze(post), moves);
        } else if (columns === null) others.delete(key);
        else others.set(key, { version, columns });
      }
    },
    settle({ removed, added }) {
      parts.change([...removed], [...added]);
      scheduled.change(byTime, [...removed].filter(isScheduled), [...added].filter(isScheduled));
    },
  };
}

export function createSiteIndex({ defaultCategory = () => undefined }: SiteIndexOptions = {}): SiteIndex {
  let contents = createContents(defaultCategory);

  function termsOf(post: PostColumns, taxonomy: Taxonomy): readonly number[] {
    const ids = (post.terms[taxonomy] ?? []).filter((id) => contents.terms.has(taxonomy, id));
    const fallback = defaultCategory();
    return taxonomy === "category" && fallback !== undefined && isOrphan({ columns: post }, contents.terms)
      ? [fallback]
      : ids;
  }

  return Object.freeze<SiteIndex>({
    size: () => contents.rows.size,
    async load(batches) {
      const next = createContents(defaultCategory);
      const moves: Moves = { removed: new Set(), added: new Set() };
      for await (const batch of batches) next.take(batch, moves);
      next.settle(moves);
      contents = next;
    },
    apply(changes) {
      const moves: Moves = { removed: new Set(), added: new Set() };
      // Terms first, so that nothing moves between the lists of posts that are about to change.
      contents.take(
        changes.filter(({ key }) => key.startsWith(TERM)),
        moves,
      );
      contents.take(
        changes.filter(({ key }) => !key.startsWith(TERM)),
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
    version(key) {
      if (key.startsWith(POST))
        return contents.rows.get(Number(key.slice(POST.length)))?.columns.version ?? 0;
      if (key.startsWith(TERM)) return contents.terms.get(Number(key.slice(TERM.length)))?.version ?? 0;
      return contents.others.get(key)?.version ?? 0;
    },
    terms: (taxonomy) => contents.terms.all(taxonomy),
    termChildren: (taxonomy, parent) => contents.terms.below(taxonomy, parent),
    termsBySlug: (taxonomy, slug) => contents.terms.withSlug(taxonomy, slug),
    withDescendants: (taxonomy, ids) => contents.terms.withDescendants(taxonomy, ids),
    termsOf,
    countOf(taxonomy, id) {
      if (!contents.terms.has(taxonomy, id)) return 0;
      const size = (part: Part): number =>
        POST_TYPES.flatMap((type) => PUBLISHED.map((standing) => ({ type, standing }))).reduce(
          (sum, { type, standing }) =>
            sum + contents.partitions.list(type, standing, part, DEFAULT_ORDERING).length,
          0,
        );
      const isDefault = taxonomy === "category" && id === defaultCategory();
      return size(`${taxonomy}/${id}`) + (isDefault ? size("orphan") : 0);
    },
    find: (query, texts) => findPosts(contents, query, texts),
    childrenOf(id, type) {
      const ids = contents.children.get(id);
      return type === undefined
        ? ids
        : ids.filter((child) => contents.rows.get(child)?.columns.type === type);
    },
    targeting: (target) => contents.targets.get(target),
    withSlug: (type, slug) => contents.slugs.get(`${type}/${slug}`),
    nextDue: () => contents.scheduled.at(0)?.columns.dateGmt ?? undefined,
    due: (now) =>
      contents.scheduled
        .slice(
          0,
          countBefore(contents.scheduled, (row) => dueAt(row) <= now),
        )
        .map(({ columns }) => columns.id),
  });
}
