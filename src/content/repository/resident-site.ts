/**
 * Loads the columns of the site when the process starts, and applies the changes of all writers.
 * Concurrent requests share one check for changes.
 */

import { nextTurn } from "../../core/next-turn.js";
import { createSiteIndex, type SiteIndex } from "../query/site-index.js";
import { encodeTerm } from "../records/record-codec.js";
import type { Term } from "../records/records.js";
import type { ContentChange, ContentChanges, ContentStore, ContentWrite } from "../store.js";

export interface ResidentSite {
  readonly index: SiteIndex;
  /**
   * Waits until `index` reflects every commit made before this call. Loads the content the first
   * time. Returns without a promise if the storage is in this process and loaded.
   */
  readonly current: () => void | Promise<void>;
  /** Returns the category of posts without any; `undefined` until the content is loaded. */
  readonly defaultCategory: () => number | undefined;
  /**
   * Returns another number after every change of `index`. Records that are not in it, such as the
   * preferences of users, do not count: each user could keep emptying the caches with them.
   */
  readonly stamp: () => number;
  /**
   * Returns another number after every load. The storage may have been emptied before a load: then
   * a record with a known id and version is another record.
   */
  readonly loads: () => number;
  /**
   * Applies writes that are committed but not read back, because the storage became unavailable.
   * The next changes bring them again.
   */
  readonly applyOwnWrites: (writes: readonly ContentWrite[]) => void;
}

const NOT_LOADED = -1;

export function createResidentSite({
  store,
  onLoad,
}: {
  readonly store: ContentStore;
  /** Called after each load, before anybody sees its content. */
  readonly onLoad: () => void;
}): ResidentSite {
  let defaultCategory: number | undefined;
  const index = createSiteIndex({ defaultCategory: () => defaultCategory });
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
