/**
 * All content as one process sees it: an index of resident columns, a cache of whole records, and
 * changes that are committed as a whole.
 */

import { AsyncResource } from "node:async_hooks";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { nextTurn } from "../../core/next-turn.js";
import type { SiteIndex } from "../query/site-index.js";
import type { ContentModel } from "../records/content-model.js";
import type { ContentChanged } from "../records/record-changes.js";
import { decodePost } from "../records/record-codec.js";
import type { ContentStore, ContentWrite } from "../store.js";
import {
  createRecordCache,
  createResidentSite,
  type RecordCache,
  type ResidentSite,
} from "./resident-site.js";
import { readUserMeta, type StoredUserMeta } from "./small-records.js";
import { countCompatible, type OpenTransaction, openTransaction, type Transaction } from "./transaction.js";

export type { StoredRevision } from "../records/record-codec.js";
export type { Transaction } from "./transaction.js";

export interface ContentRepository
  extends Pick<ResidentSite, "current" | "defaultCategory" | "stamp" | "loads">,
    Pick<RecordCache, "cached" | "posts" | "texts" | "revisions"> {
  index: SiteIndex;
  /** Returns the time of the storage's clock in epoch ms. */
  now: () => number;
  /** Returns the number of whole records in memory. */
  held: () => number;
  userMeta: (userId: number) => Promise<StoredUserMeta>;
  /**
   * Runs `decide` on the newest state and commits what it wrote, all or nothing. The changes of one
   * process run one after the other. If another writer commits first, `decide` runs again on the
   * state which that writer left, so it must have no other effect.
   *
   * @throws what `decide` throws; `storage_unavailable` after {@link MAX_ATTEMPTS} conflicts.
   */
  change: <T>(decide: Decide<T>) => Promise<T>;
  /**
   * Does the same, but waiting changes of this kind are decided on the same state and committed
   * together. For a `decide` that relies only on the records that it writes or expects unchanged,
   * and on free slugs. One that conflicts with an earlier one is decided again after it.
   */
  changeTogether: <T>(decide: Decide<T>) => Promise<T>;
}

type Decide<T> = (transaction: Transaction) => Promise<T> | T;

const MAX_ATTEMPTS = 20;
/** More rows would make the indexes sort whole lists again. */
const MAX_TOGETHER = 16;

/** Settles the changes in order. `error`: those that wrote something were not stored. */
function settleAll(decided: DecidedChange[], error?: unknown): void {
  for (const { change, writes, settle } of decided) {
    if (error !== undefined && writes.length > 0) change.reject(error);
    else settle();
  }
}

/** A change that waits for its turn. */
interface WaitingChange {
  decide: Decide<unknown>;
  isTogether: boolean;
  /** Runs a function in the async context of the caller. */
  inContext: <T>(run: () => T) => T;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
  conflicts: number;
}

/** A change with what it wrote and its result. After an error nothing of it is stored. */
interface DecidedChange extends OpenTransaction {
  change: WaitingChange;
  settle: () => void;
}

/** Allocates the ids that several changes need at the same time in one call. */
function allocateTogether(store: ContentStore): ContentStore["allocate"] {
  const open = new Map<string, { count: number; first: Promise<number> }>();
  return async (kind, count) => {
    const found = open.get(kind) ?? { count: 0, first: Promise.resolve().then(() => allocate(kind)) };
    const before = found.count;
    found.count += count;
    open.set(kind, found);
    return (await found.first) + before;
  };

  function allocate(kind: string): Promise<number> {
    const count = open.get(kind)?.count ?? 0;
    open.delete(kind);
    return store.allocate(kind, count);
  }
}

export function createContentRepository({
  store,
  model,
  changed,
  cacheCharacters,
  lookedUp,
}: {
  store: ContentStore;
  model: ContentModel;
  /**
   * Called for every record that a change of this process wrote, once it is stored. Must not throw.
   */
  changed: (change: ContentChanged) => void;
  /** Characters of whole records that stay in memory. */
  cacheCharacters: number;
  /** Called with the number of cached and of missing records of each read. */
  lookedUp?: ((hits: number, misses: number) => void) | undefined;
}): ContentRepository {
  const site = createResidentSite({ store, model, onLoad: () => cache.clear() });
  const { index, current, applyOwnWrites, defaultCategory, stamp, loads } = site;
  const cache = createRecordCache({ store, index, cacheCharacters, lookedUp });
  const waiting: WaitingChange[] = [];
  let isCommitting = false;
  let maxTogether = MAX_TOGETHER;

  /**
   * Makes committed writes visible in this process. If the storage is unavailable, the change has
   * succeeded all the same, so its writes are applied without reading them back.
   */
  async function seeOwnWrites(writes: ContentWrite[]): Promise<void> {
    for (const { key, expectedVersion, record } of writes) {
      if (record === null || !key.startsWith("post/")) continue;
      cache.add(decodePost({ ...record, key, version: expectedVersion + 1 }));
    }
    try {
      await current();
    } catch (error) {
      if (!isPostbellError(error, "storage_unavailable")) throw error;
      applyOwnWrites(writes);
    }
  }

  async function decideChange(
    change: WaitingChange,
    allocate: ContentStore["allocate"],
  ): Promise<DecidedChange> {
    const opened = openTransaction({ allocate, now: () => store.now() }, index);
    try {
      const result = await change.inContext(() => change.decide(opened.transaction));
      const settle = (): void => {
        for (const event of opened.events) change.inContext(() => changed(event));
        change.resolve(result);
      };
      return { ...opened, change, settle };
    } catch (error) {
      const settle = (): void => change.reject(error);
      return { ...opened, change, settle, writes: [], expected: new Map(), slugs: [], events: [] };
    }
  }

  /** Puts changes back to the front, to be decided again: the first alone, then more at a time. */
  function retryAlone(decided: DecidedChange[]): void {
    waiting.unshift(...decided.map(({ change }) => change));
    maxTogether = 1;
  }

  function retryAfterConflict(decided: DecidedChange[]): void {
    const [{ change }] = decided as [DecidedChange];
    if (decided.length === 1) change.conflicts += 1;
    if (change.conflicts < MAX_ATTEMPTS) retryAlone(decided);
    else change.reject(tooManyConflicts());
  }

  /** Commits the decided changes and settles each, in order. */
  async function commitDecided(decided: DecidedChange[]): Promise<void> {
    const writes = decided.flatMap((one) => one.writes);
    const expected = new Map(decided.flatMap((one) => [...one.expected]));
    try {
      if (writes.length > 0) {
        const { ok } = await store.commit(writes, [...expected.values()]);
        if (!ok) return retryAfterConflict(decided);
      }
    } catch (error) {
      // Nothing was stored unless the storage is unavailable: it may have refused one record only.
      if (decided.length > 1 && !isPostbellError(error, "storage_unavailable")) return retryAlone(decided);
      return settleAll(decided, error);
    }
    try {
      if (writes.length > 0) await seeOwnWrites(writes);
      settleAll(decided);
    } catch (error) {
      settleAll(decided, error);
    }
  }

  /** Never rejects: the changes do. */
  async function runChanges(changes: WaitingChange[]): Promise<void> {
    try {
      await current();
    } catch (error) {
      for (const { reject } of changes) reject(error);
      return;
    }
    const allocate = allocateTogether(store);
    const decided = await Promise.all(changes.map((change) => decideChange(change, allocate)));
    const count = countCompatible(decided);
    waiting.unshift(...changes.slice(count));
    maxTogether = count < changes.length ? count : Math.min(2 * maxTogether, MAX_TOGETHER);
    await commitDecided(decided.slice(0, count));
  }

  async function runWaiting(): Promise<void> {
    isCommitting = true;
    while (waiting.length > 0) {
      // Requests that arrived at the same time have reached this queue by then.
      if (waiting[0]?.isTogether) await nextTurn();
      const alone = waiting.findIndex(({ isTogether }) => !isTogether);
      const count = Math.min(maxTogether, alone === -1 ? waiting.length : alone);
      await runChanges(waiting.splice(0, Math.max(count, 1)));
    }
    isCommitting = false;
  }

  const enqueue = <T>(decide: Decide<T>, isTogether: boolean): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const resource = new AsyncResource("ContentChange");
      const inContext: WaitingChange["inContext"] = (run) => resource.runInAsyncScope(run);
      const settle = { resolve: resolve as WaitingChange["resolve"], reject };
      waiting.push({ decide, isTogether, inContext, ...settle, conflicts: 0 });
      if (!isCommitting) void runWaiting();
    });

  const { cached, posts, texts, revisions, size } = cache;
  return {
    now: () => store.now(),
    index,
    current,
    defaultCategory,
    stamp,
    loads,
    cached,
    posts,
    texts,
    revisions,
    held: size,
    userMeta: (userId) => readUserMeta(store, userId),
    change: (decide) => enqueue(decide, false),
    changeTogether: (decide) => enqueue(decide, true),
  };
}

const tooManyConflicts = (): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    `Other writers changed the same records ${MAX_ATTEMPTS} times in a row. Try again later.`,
  );
