/**
 * The site as this process holds it in memory: the columns of all records, loaded at the start
 * and kept up to date with the changes of all writers, and a cache of whole records. Concurrent
 * requests share one check for changes.
 */

import { LRUCache } from "lru-cache";
import { nextTurn, yieldBetween } from "../../core/next-turn.js";
import { createSiteIndex, type SearchText, type SiteIndex } from "../query/site-index.js";
import type { ContentModel } from "../records/content-model.js";
import { decodePost, decodeRevision, encodeTerm, type StoredRevision } from "../records/record-codec.js";
import type { Post, Term } from "../records/records.js";
import type { ContentChange, ContentChanges, ContentRecord, ContentStore, ContentWrite } from "../store.js";

export interface ResidentSite {
  index: SiteIndex;
  /**
   * Waits until `index` reflects every commit made before this call. Loads the content the first
   * time. Returns without a promise if the storage is in this process and loaded.
   */
  current: () => void | Promise<void>;
  /** Returns the category of posts without any; `undefined` until the content is loaded. */
  defaultCategory: () => number | undefined;
  /**
   * Returns another number after every change of `index`. Records that are not in it, such as the
   * preferences of users, do not count: each user could keep emptying the caches with them.
   */
  stamp: () => number;
  /**
   * Returns another number after every load. The storage may have been emptied before a load: then
   * a record with a known id and version is another record.
   */
  loads: () => number;
  /**
   * Applies writes that are committed but not read back, because the storage became unavailable.
   * The next changes bring them again.
   */
  applyOwnWrites: (writes: ContentWrite[]) => void;
}

const NOT_LOADED = -1;

export function createResidentSite({
  store,
  model,
  onLoad,
}: {
  store: ContentStore;
  model: ContentModel;
  /** Called after each load, before anybody sees its content. */
  onLoad: () => void;
}): ResidentSite {
  let defaultCategory: number | undefined;
  const index = createSiteIndex({ defaultCategory: () => defaultCategory, model });
  let sequence = NOT_LOADED;
  let stamp = 0;
  let loads = 0;

  function countChange(): void {
    stamp += 1;
    defaultCategory = readDefaultCategory(index) ?? defaultCategory;
  }

  /** To be called before the changes are applied. */
  const isIndexed = (changes: readonly ContentChange[]): boolean =>
    changes.some(({ key, columns }) => columns !== null || index.version(key) > 0);

  async function load(): Promise<void> {
    const snapshot = await store.load();
    await index.load(snapshot.batches);
    sequence = snapshot.sequence;
    loads += 1;
    onLoad();
    countChange();
    // Applies what was committed during the load.
    await applyChanges();
  }

  function apply(changes: ContentChanges): void | Promise<void> {
    if (changes === "reload") {
      // Requests see the known content until the load is complete.
      sequence = NOT_LOADED;
      return load();
    }
    if (changes.sequence <= sequence) return;
    const isVisible = isIndexed(changes.changes);
    index.apply(changes.changes);
    sequence = changes.sequence;
    if (isVisible) countChange();
  }

  function applyChanges(): void | Promise<void> {
    if (sequence === NOT_LOADED) return load();
    const changes = store.changes(sequence);
    return changes instanceof Promise ? changes.then(apply) : apply(changes);
  }

  /**
   * Runs after every read of the changes, not only at the start: the storage may have been
   * unavailable then. If another process creates the record first, the commit is refused.
   */
  function createSiteIfNew(): void | Promise<void> {
    if (!hasSiteRecord(index)) return createSiteRecord(store).then(applyChanges);
  }

  return {
    index,
    current: coalesceCalls(() => {
      const applied = applyChanges();
      return applied === undefined ? createSiteIfNew() : applied.then(createSiteIfNew);
    }),
    defaultCategory: () => defaultCategory,
    stamp: () => stamp,
    loads: () => loads,
    applyOwnWrites(writes) {
      const changes = writes.map(({ key, expectedVersion, record }) => ({
        key,
        version: record === null ? 0 : expectedVersion + 1,
        columns: record?.columns ?? null,
      }));
      const isVisible = isIndexed(changes);
      index.apply(changes);
      if (isVisible) stamp += 1;
    },
  };
}

// The record of the site itself, which the first process on an empty storage creates.

const SITE_KEY = "site/1";

/** Every site has this category, for posts without any other. */
const DEFAULT_CATEGORY = { taxonomy: "category", name: "Uncategorized", slug: "uncategorized" } as const;

const hasSiteRecord = (index: SiteIndex): boolean => index.record(SITE_KEY) !== undefined;

/** Returns the id of the default category; `undefined` before the site record exists. */
function readDefaultCategory(index: SiteIndex): number | undefined {
  const site = index.record(SITE_KEY);
  return site === undefined ? undefined : (JSON.parse(site) as { defaultCategory: number }).defaultCategory;
}

/** Stores the site record and the default category, unless another process did so before. */
async function createSiteRecord(store: ContentStore): Promise<void> {
  const id = await store.allocate("term", 1);
  const term: Term = { ...DEFAULT_CATEGORY, id, version: 0, description: "", parent: 0, meta: {} };
  await store.commit([
    { key: `term/${id}`, expectedVersion: 0, record: encodeTerm(term) },
    {
      key: SITE_KEY,
      expectedVersion: 0,
      record: { columns: JSON.stringify({ defaultCategory: id }), body: "{}", unique: [] },
    },
  ]);
}

// Coalesces concurrent calls: one check for changes confirms for many requests that the cached data
// is current.

/**
 * The first turn admits the requests that arrived with this one, the second those that arrived
 * while responses were sent. So a whole round of clients shares one call.
 */
const TURNS_BEFORE_CALL = 2;

/**
 * Returns a function that calls `call`. Calls made while one is in flight wait together for the
 * next one: only a call that starts later proves what is true now. A result without a promise is
 * returned at once. If a call fails, it fails for those that wait for the next one too.
 */
export function coalesceCalls(call: () => void | Promise<void>): () => void | Promise<void> {
  /** True if the last call returned a promise. */
  let isAsynchronous = false;
  let inFlight: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const start = (): void | Promise<void> => {
    next = undefined;
    const result = call();
    isAsynchronous = result !== undefined;
    inFlight = result?.finally(() => {
      inFlight = undefined;
    });
    return inFlight;
  };

  const startNext = async (): Promise<void> => {
    try {
      await inFlight;
      for (let turn = 0; turn < TURNS_BEFORE_CALL; turn += 1) await nextTurn();
    } catch (error) {
      // The callers have waited long enough, and another call would hardly succeed.
      next = undefined;
      throw error;
    }
    return start();
  };

  return () => {
    if (next === undefined && !isAsynchronous) return start();
    next ??= startNext();
    return next;
  };
}

// Reads whole records from the store, with a bounded cache of posts in front.

/** The most keys in one `read` of the store. */
const READ_KEYS = 1_000;
/** Characters that a cached post counts in addition to its texts. */
const CHARACTERS_PER_POST = 500;

export interface RecordCache {
  /**
   * Returns a post if the cache has its newest version. `undefined` does not mean it is missing.
   */
  cached: (id: number) => Post | undefined;
  /** Resolves with whole posts in the order of `ids`; `undefined` for those that do not exist. */
  posts: (ids: number[]) => Promise<(Post | undefined)[]>;
  /**
   * Resolves with the texts that a search reads. Bypasses the cache, so that a wide search does not
   * evict the posts that clients request often. Gives the event loop a turn before each read.
   */
  texts: (ids: number[]) => Promise<(SearchText | undefined)[]>;
  revisions: (ids: number[]) => Promise<(StoredRevision | undefined)[]>;
  add: (post: Post) => void;
  clear: () => void;
  /** Returns the number of cached posts. */
  size: () => number;
}

export function createRecordCache({
  store,
  index,
  cacheCharacters,
  lookedUp,
}: {
  store: ContentStore;
  /** Tells the newest version of each post. */
  index: SiteIndex;
  /** Size of the cache in characters. */
  cacheCharacters: number;
  /** Called with the number of cached and of missing posts of each read. */
  lookedUp?: ((hits: number, misses: number) => void) | undefined;
}): RecordCache {
  const cache = new LRUCache<number, Post>({
    maxSize: cacheCharacters,
    sizeCalculation: ({ content, excerpt, title }) =>
      CHARACTERS_PER_POST + content.length + excerpt.length + title.length,
  });
  /** Grows when the cache is cleared: what was read before must not enter it afterwards. */
  let generation = 0;

  const readPosts = (ids: number[]) => store.read(ids.map((id) => `post/${id}`));

  function cached(id: number): Post | undefined {
    const post = cache.get(id);
    return post !== undefined && post.version === index.post(id)?.version ? post : undefined;
  }

  async function posts(ids: number[]): Promise<(Post | undefined)[]> {
    const generationBefore = generation;
    const found = new Map<number, Post | undefined>(ids.map((id) => [id, cached(id)]));
    const missing = [...found].flatMap(([id, post]) => (post === undefined ? [id] : []));
    lookedUp?.(found.size - missing.length, missing.length);
    for (let start = 0; start < missing.length; start += READ_KEYS) {
      const records = await readPosts(missing.slice(start, start + READ_KEYS));
      for await (const record of yieldBetween(records)) {
        if (record === undefined) continue;
        const post = decodePost(record);
        if (generation === generationBefore) cache.set(post.id, post);
        found.set(post.id, post);
      }
    }
    return ids.map((id) => found.get(id));
  }

  async function revisions(ids: number[]): Promise<(StoredRevision | undefined)[]> {
    const found: (StoredRevision | undefined)[] = [];
    for (let start = 0; start < ids.length; start += READ_KEYS) {
      const records = await store.read(ids.slice(start, start + READ_KEYS).map((id) => `revision/${id}`));
      for await (const record of yieldBetween(records)) found.push(record && decodeRevision(record));
    }
    return found;
  }

  return {
    cached,
    posts,
    async texts(ids) {
      await nextTurn();
      return (await readPosts(ids)).map((record) => record && toSearchText(record));
    },
    revisions,
    add: (post) => void cache.set(post.id, post),
    clear() {
      cache.clear();
      generation += 1;
    },
    size: () => cache.size,
  };
}

function toSearchText({ body }: ContentRecord): SearchText {
  const { content, excerpt, media, password, menuItem } = JSON.parse(body) as Post;
  // WordPress keeps the description and the title attribute of a menu item there.
  if (menuItem !== null)
    return {
      content: menuItem.description,
      excerpt: menuItem.attrTitle,
      file: undefined,
      isProtected: false,
    };
  return { content, excerpt, file: media?.name, isProtected: password !== "" };
}
