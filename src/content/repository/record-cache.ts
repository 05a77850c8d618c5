/** Reads whole records from the store, with a bounded cache of posts in front. */

import { LRUCache } from "lru-cache";
import { nextTurn, yieldBetween } from "../../core/next-turn.js";
import type { SearchText, SiteIndex } from "../query/site-index.js";
import { decodePost, decodeRevision, type StoredRevision } from "../records/record-codec.js";
import type { Post } from "../records/records.js";
import type { ContentRecord, ContentStore } from "../store.js";

/** The most keys in one `read` of the store. */
const READ_KEYS = 1_000;
/** Characters that a cached post counts in addition to its texts. */
const CHARACTERS_PER_POST = 500;

export interface RecordCache {
  /**
   * Returns a post if the cache has its newest version. `undefined` does not mean it is missing.
   */
  readonly cached: (id: number) => Post | undefined;
  /** Resolves with whole posts in the order of `ids`; `undefined` for those that do not exist. */
  readonly posts: (ids: readonly number[]) => Promise<readonly (Post | undefined)[]>;
  /**
   * Resolves with the texts that a search reads. Bypasses the cache, so that a wide search does not
   * evict the posts that clients request often. Gives the event loop a turn before each read.
   */
  readonly texts: (ids: readonly number[]) => Promise<readonly (SearchText | undefined)[]>;
  readonly revisions: (ids: readonly number[]) => Promise<readonly (StoredRevision | undefined)[]>;
  readonly add: (post: Post) => void;
  readonly clear: () => void;
  /** Returns the number of cached posts. */
  readonly size: () => number;
}

export function createRecordCache({
  store,
  index,
  cacheCharacters,
  lookedUp,
}: {
  readonly store: ContentStore;
  /** Tells the newest version of each post. */
  readonly index: Pick<SiteIndex, "post">;
  /** Size of the cache in characters. */
  readonly cacheCharacters: number;
  /** Called with the number of cached and of missing posts of each read. */
  readonly lookedUp?: ((hits: number, misses: number) => void) | undefined;
}): RecordCache {
  const cache = new LRUCache<number, Post>({
    maxSize: cacheCharacters,
    sizeCalculation: ({ content, excerpt, title }) =>
      CHARACTERS_PER_POST + content.length + excerpt.length + title.length,
  });
  /** Grows when the cache is cleared: what was read before must not enter it afterwards. */
  let generation = 0;

  const readPosts = (ids: readonly number[]) => store.read(ids.map((id) => `post/${id}`));

  function cached(id: number): Post | undefined {
    const post = cache.get(id);
    return post !== undefined && post.version === index.post(id)?.version ? post : undefined;
  }

  async function posts(ids: readonly number[]): Promise<readonly (Post | undefined)[]> {
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

  async function revisions(ids: readonly number[]): Promise<readonly (StoredRevision | undefined)[]> {
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
  const { content, excerpt, media, password } = JSON.parse(body) as Pick<
    Post,
    "content" | "excerpt" | "media" | "password"
  >;
  return { content, excerpt, file: media?.name, isProtected: password !== "" };
}
