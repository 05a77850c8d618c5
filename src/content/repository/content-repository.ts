/** The site as one process sees it: the resident columns, a bounded cache of whole records, and changes that are committed whole. */

import { LRUCache } from "lru-cache";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { yieldBetween } from "../../core/next-turn.js";
import { createSiteIndex, type SiteIndex } from "../query/site-index.js";
import { type ContentChanged, describePostChange, describeTermChange } from "../records/record-changes.js";
import type { Post, PostColumns, Revision, Taxonomy, Term } from "../records/records.js";
import type { ContentBasis, ContentChanges, ContentRecord, ContentStore, ContentWrite } from "../store.js";
import { fileNames, markAsNamed, markAsOrphaned } from "./orphan-file-journal.js";
import { coalesceCalls } from "./request-coalescer.js";

/** Collects the writes of one change; nothing is stored until the change is complete. */
export interface Transaction {
  /** An id for a new record: of a post of any type or a revision (`post`), or of a term (`term`). */
  readonly newId: (kind: "post" | "term") => Promise<number>;
  /** The first of `count` consecutive ones. */
  readonly newIds: (kind: "post" | "term", count: number) => Promise<number>;
  /** Stores a post. Its `version` is the one it was read with, 0 for a new one. Its files are noted no longer. */
  readonly putPost: (post: Post) => void;
  /** The same for a post that changed only in what is kept beside it, such as an autosave: the host is not told. */
  readonly putBookkeeping: (post: Post) => void;
  /** Its files are noted as about to go. */
  readonly removePost: (post: Post) => void;
  readonly putTerm: (term: Term) => void;
  readonly removeTerm: (term: Term) => void;
  /** `version`: the one it was read with, 0 for a new one. */
  readonly putRevision: (revision: Revision, version?: number) => void;
  readonly removeRevision: (id: number, version: number) => void;
  /** Makes the commit conflict if another writer changed this record, although the transaction does not write it. */
  readonly expectUnchanged: (key: string) => void;
}

export interface ContentRepository {
  readonly index: SiteIndex;
  /** Epoch ms by the storage's clock. */
  readonly now: () => number;
  /** Brings `index` up to date with all that was committed before the call; loads it the first time. Nothing to wait for where the storage is in this process and loaded. */
  readonly current: () => void | Promise<void>;
  /** The category of posts without any; `undefined` until the content is loaded. */
  readonly defaultCategory: () => number | undefined;
  /** Another number after every change that was seen. */
  readonly stamp: () => number;
  /** Another number after every load. What was made of records before says nothing of those with the same id and version now: the storage may have been emptied. */
  readonly loads: () => number;
  /** A whole post if it is in the cache in its newest version; `undefined` says nothing about whether it exists. */
  readonly cached: (id: number) => Post | undefined;
  /** Whole posts in the order of `ids`; `undefined` for what does not exist. */
  readonly posts: (ids: readonly number[]) => Promise<readonly (Post | undefined)[]>;
  /**
   * What a search looks into, past the cache: a wide search must not put out what is asked for all the time. The event loop gets a turn between two calls.
   */
  readonly texts: (ids: readonly number[]) => Promise<readonly (SearchedTexts | undefined)[]>;
  readonly revisions: (ids: readonly number[]) => Promise<readonly (StoredRevision | undefined)[]>;
  /** How many whole records are in memory. */
  readonly held: () => number;
  /**
   * Runs `decide` on the newest state and commits what it wrote, all or nothing; one change of this process after the other. Where another writer was faster, it runs again from the state
   * that one left; `decide` must have no other effect.
   *
   * Errors: what `decide` throws; `storage_unavailable` after {@link MAX_ATTEMPTS} conflicts.
   */
  readonly change: <T>(decide: (draft: Transaction) => Promise<T> | T) => Promise<T>;
}

export interface SearchedTexts {
  readonly content: string;
  readonly excerpt: string;
  readonly file: string | undefined;
  readonly isProtected: boolean;
}

export interface StoredRevision extends Revision {
  readonly version: number;
}

const MAX_ATTEMPTS = 20;
/** Keys in one `read` of the store. */
const READ_KEYS = 1_000;

const COLUMNS = [
  "id",
  "type",
  "status",
  "author",
  "date",
  "dateGmt",
  "modified",
  "modifiedGmt",
  "slug",
  "title",
  "parent",
  "menuOrder",
  "hasPassword",
  "sticky",
  "format",
  "terms",
  "mimeType",
  "target",
  "beforeTrash",
  "importedAs",
] as const satisfies readonly (keyof PostColumns)[];

/** Statuses whose slug need not be unique: the reference makes it so when they are left. */
const SLUG_IS_FREE: ReadonlySet<string> = new Set(["draft", "pending", "auto-draft"]);

export const hasUniqueSlug = ({ status, type }: PostColumns): boolean =>
  !SLUG_IS_FREE.has(status) && type !== "nav_menu_item";

/** What no two posts may hold at once: pages below one parent, other types among themselves. */
const slugName = ({ type, parent, slug }: PostColumns): string =>
  type === "page" ? `slug/page/${parent}/${slug}` : `slug/${type}/${slug}`;

/** A taxonomy that every site has one term of: the first one is made with the site. */
const DEFAULT_CATEGORY = { taxonomy: "category", name: "Uncategorized", slug: "uncategorized" } as const;
const SITE_KEY = "site/1";

function recordOf(post: Post): NonNullable<ContentWrite["record"]> {
  const { version: _, ...whole } = post;
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, whole[name]]));
  const body = Object.fromEntries(Object.entries(whole).filter(([name]) => !Object.hasOwn(columns, name)));
  return {
    columns: JSON.stringify(columns),
    body: JSON.stringify(body),
    unique: [
      ...(hasUniqueSlug(post) && post.slug !== "" ? [slugName(post)] : []),
      ...fileNames(post.media),
      ...(post.importedAs === undefined ? [] : [`import/${post.importedAs}`]),
    ],
  };
}

function postOf({ columns, body, version }: ContentRecord): Post {
  return Object.freeze({ ...JSON.parse(columns ?? "{}"), ...JSON.parse(body), version }) as Post;
}

const termName = (taxonomy: Taxonomy, slug: string): string => `slug/${taxonomy}/${slug}`;

function termRecord(term: Term): NonNullable<ContentWrite["record"]> {
  const { version: _, ...columns } = term;
  return {
    columns: JSON.stringify(columns),
    body: "{}",
    unique: [termName(term.taxonomy, term.slug)],
  };
}

export interface ContentRepositoryOptions {
  readonly store: ContentStore;
  /** Told of every record that a change of this process wrote, once it is stored. Must not throw. */
  readonly changed: (change: ContentChanged) => void;
  /** Characters of whole records that stay in memory. */
  readonly cacheCharacters: number;
  /** Told how many whole records that were asked for were in memory, and how many were not. */
  readonly lookedUp?: ((hits: number, misses: number) => void) | undefined;
}

export function createContentRepository({
  store,
  changed,
  cacheCharacters,
  lookedUp,
}: ContentRepositoryOptions): ContentRepository {
  let defaultCategory: number | undefined;
  const index = createSiteIndex({ defaultCategory: () => defaultCategory });
  const cache = new LRUCache<number, Post>({
    maxSize: cacheCharacters,
    sizeCalculation: ({ content, excerpt, title }) => 500 + content.length + excerpt.length + title.length,
  });
  let sequence = -1;
  let stamp = 0;
  let loads = 0;

  const noteDefaultCategory = (): void => {
    const site = index.record(SITE_KEY);
    if (site !== undefined) ({ defaultCategory } = JSON.parse(site) as { defaultCategory: number });
  };

  /** The first process on an empty storage makes what every site has. */
  async function found(): Promise<void> {
    const id = await store.allocate("term", 1);
    const term: Term = { ...DEFAULT_CATEGORY, id, version: 0, description: "", parent: 0, meta: {} };
    await store.commit([
      { key: `term/${id}`, expectedVersion: 0, record: termRecord(term) },
      {
        key: SITE_KEY,
        expectedVersion: 0,
        record: { columns: JSON.stringify({ defaultCategory: id }), body: "{}", unique: [] },
      },
    ]);
    // Where the commit was refused, another process has just done it.
    await bringUpToDate();
  }

  async function load(): Promise<void> {
    const snapshot = await store.load();
    await index.load(snapshot.batches);
    sequence = snapshot.sequence;
    stamp += 1;
    loads += 1;
    cache.clear();
    noteDefaultCategory();
    // What was committed while it went on.
    await bringUpToDate();
  }

  function take(changes: ContentChanges): void | Promise<void> {
    if (changes === "reload") {
      // What is known now is answered until all has been loaded.
      sequence = -1;
      return load();
    }
    if (changes.sequence <= sequence) return;
    index.apply(changes.changes);
    sequence = changes.sequence;
    stamp += 1;
    noteDefaultCategory();
  }

  function bringUpToDate(): void | Promise<void> {
    if (sequence < 0) return load();
    const changes = store.changes(sequence);
    return changes instanceof Promise ? changes.then(take) : take(changes);
  }

  /** With every proof, since the storage may have been away when the site was to be made. */
  const foundIfNew = (): void | Promise<void> => (index.record(SITE_KEY) === undefined ? found() : undefined);

  const current = coalesceCalls(() => {
    const proved = bringUpToDate();
    return proved === undefined ? foundIfNew() : proved.then(foundIfNew);
  });

  const cached = (id: number): Post | undefined => {
    const post = cache.get(id);
    return post !== undefined && post.version === index.post(id)?.version ? post : undefined;
  };

  async function posts(ids: readonly number[]): Promise<readonly (Post | undefined)[]> {
    const loadsBefore = loads;
    const found = new Map<number, Post | undefined>(ids.map((id) => [id, cached(id)]));
    const missing = [...found].flatMap(([id, post]) => (post === undefined ? [id] : []));
    lookedUp?.(found.size - missing.length, missing.length);
    for (let start = 0; start < missing.length; start += READ_KEYS) {
      const batch = missing.slice(start, start + READ_KEYS);
      const records = await store.read(batch.map((id) => `post/${id}`));
      for await (const record of yieldBetween(records)) {
        if (record === undefined) continue;
        const post = postOf(record);
        if (loads === loadsBefore) cache.set(post.id, post);
        found.set(post.id, post);
      }
    }
    return ids.map((id) => found.get(id));
  }

  async function texts(ids: readonly number[]): Promise<readonly (SearchedTexts | undefined)[]> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    const records = await store.read(ids.map((id) => `post/${id}`));
    return records.map((record) => {
      if (record === undefined) return undefined;
      const { content, excerpt, media, password } = JSON.parse(record.body) as Pick<
        Post,
        "content" | "excerpt" | "media" | "password"
      >;
      return { content, excerpt, file: media?.name, isProtected: password !== "" };
    });
  }

  async function revisions(ids: readonly number[]): Promise<readonly (StoredRevision | undefined)[]> {
    const found: (StoredRevision | undefined)[] = [];
    for (let start = 0; start < ids.length; start += READ_KEYS) {
      const records = await store.read(ids.slice(start, start + READ_KEYS).map((id) => `revision/${id}`));
      for await (const record of yieldBetween(records)) {
        found.push(record && { ...(JSON.parse(record.body) as Revision), version: record.version });
      }
    }
    return found;
  }

  /** Changes of one process wait for each other: they would only refuse each other in turn. */
  let last: Promise<unknown> = Promise.resolve();

  function change<T>(decide: (draft: Transaction) => Promise<T> | T): Promise<T> {
    const mine = last.then(() => attempted(decide));
    last = mine.catch(() => {});
    return mine;
  }

  /** What is stored is not answered as a failure because the storage went away right after: then this process knows of its own writes at least. */
  async function seeOwn(writes: readonly ContentWrite[]): Promise<void> {
    for (const { key, expectedVersion, record } of writes) {
      if (record === null || !key.startsWith("post/")) continue;
      const post = postOf({ ...record, key, version: expectedVersion + 1 });
      cache.set(post.id, post);
    }
    try {
      await current();
    } catch (error) {
      if (!isPostbellError(error, "storage_unavailable")) throw error;
      // They come again with the next changes, since `sequence` stays as it is.
      index.apply(
        writes.map(({ key, expectedVersion, record }) => ({
          key,
          version: record === null ? 0 : expectedVersion + 1,
          columns: record?.columns ?? null,
        })),
      );
      stamp += 1;
    }
  }

  async function attempted<T>(decide: (draft: Transaction) => Promise<T> | T): Promise<T> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      await current();
      const writes: ContentWrite[] = [];
      const basis: ContentBasis[] = [];
      const events: ContentChanged[] = [];
      const put = (key: string, expectedVersion: number, record: ContentWrite["record"]): void => {
        writes.push({ key, expectedVersion, record });
      };
      const result = await decide({
        newId: (kind) => store.allocate(kind, 1),
        newIds: (kind, count) => store.allocate(kind, count),
        putPost: (post) => {
          events.push(describePostChange({ before: index.post(post.id), after: post }));
          put(`post/${post.id}`, post.version, recordOf(post));
          writes.push(...markAsNamed(post.media, { index, isNew: post.version === 0 }));
        },
        putBookkeeping: (post) => put(`post/${post.id}`, post.version, recordOf(post)),
        removePost: (post) => {
          events.push(describePostChange({ before: post, after: undefined }));
          put(`post/${post.id}`, post.version, null);
          writes.push(...markAsOrphaned(post.media, store.now()));
        },
        putTerm: (term) => {
          events.push(describeTermChange({ before: index.term(term.id), after: term }));
          put(`term/${term.id}`, term.version, termRecord(term));
        },
        removeTerm: (term) => {
          events.push(describeTermChange({ before: term, after: undefined }));
          put(`term/${term.id}`, term.version, null);
        },
        putRevision: (revision, version = 0) =>
          put(`revision/${revision.id}`, version, {
            columns: null,
            body: JSON.stringify(revision),
            unique: [],
          }),
        removeRevision: (id, version) => put(`revision/${id}`, version, null),
        expectUnchanged: (key) => basis.push({ key, version: index.version(key) }),
      });
      if (writes.length === 0) return result;
      const committed = await store.commit(writes, basis);
      if (committed.ok) {
        await seeOwn(writes);
        for (const event of events) changed(event);
        return result;
      }
    }
    throw new PostbellError(
      "storage_unavailable",
      `Other writers changed the same records ${MAX_ATTEMPTS} times in a row.`,
    );
  }

  return {
    index,
    now: () => store.now(),
    current,
    defaultCategory: () => defaultCategory,
    stamp: () => stamp,
    loads: () => loads,
    cached,
    posts,
    texts,
    revisions,
    held: () => cache.size,
    change,
  };
}
