/**
 * All content as one process sees it: an index of resident columns, a cache of whole records, and
 * changes that are committed as a whole.
 */

import { isPostbellError, PostbellError } from "../../core/errors.js";
import type { SiteIndex } from "../query/site-index.js";
import type { ContentChanged } from "../records/record-changes.js";
import { decodePost } from "../records/record-codec.js";
import type { ContentStore, ContentWrite } from "../store.js";
import { createRecordCache, type RecordCache } from "./record-cache.js";
import { createResidentSite, type ResidentSite } from "./resident-site.js";
import { openTransaction, type Transaction } from "./transaction.js";
import { readUserMeta, type StoredUserMeta } from "./user-meta.js";
import { createWriteQueue } from "./write-queue.js";

export type { StoredRevision } from "../records/record-codec.js";
export type { Transaction } from "./transaction.js";

export interface ContentRepository
  extends Pick<ResidentSite, "current" | "defaultCategory" | "stamp" | "loads">,
    Pick<RecordCache, "cached" | "posts" | "texts" | "revisions"> {
  readonly index: SiteIndex;
  /** Returns the time of the storage's clock in epoch ms. */
  readonly now: () => number;
  /** Returns the number of whole records in memory. */
  readonly held: () => number;
  readonly userMeta: (userId: number) => Promise<StoredUserMeta>;
  /**
   * Runs `decide` on the newest state and commits what it wrote, all or nothing. The changes of one
   * process run one after the other. If another writer commits first, `decide` runs again on the
   * state which that writer left, so it must have no other effect.
   *
   * @throws what `decide` throws; `storage_unavailable` after {@link MAX_ATTEMPTS} conflicts.
   */
  readonly change: <T>(decide: (transaction: Transaction) => Promise<T> | T) => Promise<T>;
}

export interface ContentRepositoryOptions {
  readonly store: ContentStore;
  /**
   * Called for every record that a change of this process wrote, once it is stored. Must not throw.
   */
  readonly changed: (change: ContentChanged) => void;
  /** Characters of whole records that stay in memory. */
  readonly cacheCharacters: number;
  /** Called with the number of cached and of missing records of each read. */
  readonly lookedUp?: ((hits: number, misses: number) => void) | undefined;
}

const MAX_ATTEMPTS = 20;

export function createContentRepository({
  store,
  changed,
  cacheCharacters,
  lookedUp,
}: ContentRepositoryOptions): ContentRepository {
  const site = createResidentSite({ store, onLoad: () => cache.clear() });
  const { index, current, applyOwnWrites, defaultCategory, stamp, loads } = site;
  const cache = createRecordCache({ store, index, cacheCharacters, lookedUp });
  const enqueue = createWriteQueue();

  /**
   * Makes committed writes visible in this process. If the storage is unavailable, the change has
   * succeeded all the same, so its writes are applied without reading them back.
   */
  async function seeOwnWrites(writes: readonly ContentWrite[]): Promise<void> {
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

  async function commitWithRetries<T>(decide: (transaction: Transaction) => Promise<T> | T): Promise<T> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      await current();
      const { transaction, writes, expected, events } = openTransaction(store, index);
      const result = await decide(transaction);
      if (writes.length === 0) return result;
      const committed = await store.commit(writes, [...expected.values()]);
      if (!committed.ok) continue;
      await seeOwnWrites(writes);
      for (const event of events) changed(event);
      return result;
    }
    throw new PostbellError(
      "storage_unavailable",
      `Other writers changed the same records ${MAX_ATTEMPTS} times in a row. Try again later.`,
    );
  }

  const { cached, posts, texts, revisions, size } = cache;
  return {
    index,
    now: () => store.now(),
    ...{ current, defaultCategory, stamp, loads },
    ...{ cached, posts, texts, revisions },
    held: size,
    userMeta: (userId) => readUserMeta(store, userId),
    change: (decide) => enqueue(() => commitWithRetries(decide)),
  };
}
