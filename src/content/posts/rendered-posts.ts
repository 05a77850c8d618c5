/** The cache of rendered posts. An entry is valid until a record that it depends on changes. */

import { LRUCache } from "lru-cache";
import { listAncestors } from "../query/page-tree.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post } from "../records/records.js";
import type { Item } from "../rest/types.js";
import type { PostTypeHandler } from "./post-type-handler.js";

/** The versions of records by their keys. */
type Versions = ReadonlyMap<string, number | undefined>;

interface RenderedPost {
  readonly item: Item;
  /** Of the records whose fields went into the item. */
  readonly versions: Versions;
}

export interface RenderedPosts {
  readonly get: (key: string) => Item | undefined;
  /** Returns the versions of the records that an item depends on. Call it before rendering. */
  readonly readVersions: (post: Post, type: PostTypeHandler) => Versions;
  /**
   * Renders an item and keeps it. Requests that arrive meanwhile get the same item, unless a record
   * that it depends on has changed.
   */
  readonly shareRendering: (key: string, versions: Versions, render: () => Promise<Item>) => Promise<Item>;
}

/** Bytes that an entry takes beside its item. */
const OVERHEAD_BYTES = 200;

export function createRenderedPosts(index: SiteIndex, maxBytes: number): RenderedPosts {
  const cache = new LRUCache<string, RenderedPost>({
    maxSize: maxBytes,
    sizeCalculation: ({ item }) => OVERHEAD_BYTES + item.bytes().length,
  });
  const inProgress = new Map<string, { readonly item: Promise<Item>; readonly versions: Versions }>();
  const areCurrent = (versions: Versions): boolean => {
    for (const [record, version] of versions) {
      if (index.version(record) !== version) return false;
    }
    return true;
  };
  return {
    get(key) {
      const found = cache.get(key);
      return found !== undefined && areCurrent(found.versions) ? found.item : undefined;
    },
    readVersions: (post, type) =>
      new Map(listDependencies(post, type, index).map((record) => [record, index.version(record)])),
    async shareRendering(key, versions, render) {
      const other = inProgress.get(key);
      if (other !== undefined && areCurrent(other.versions)) return other.item;
      const own = { item: render(), versions };
      inProgress.set(key, own);
      try {
        const item = await own.item;
        cache.set(key, { item, versions });
        return item;
      } finally {
        if (inProgress.get(key) === own) inProgress.delete(key);
      }
    },
  };
}

/** Keys of the post and of the records that its addresses and classes are made of. */
function listDependencies(post: Post, type: PostTypeHandler, index: SiteIndex): readonly string[] {
  return [
    ...[post.id, ...listAncestors(post, index)].map((id) => `post/${id}`),
    ...type.collection.taxonomies.flatMap((taxonomy) =>
      [...(post.terms[taxonomy] ?? []), ...index.termsOf(post, taxonomy)].map((id) => `term/${id}`),
    ),
    ...(post.featuredMedia > 0 ? [`post/${post.featuredMedia}`] : []),
    ...(type.listDependencies?.(post, index) ?? []),
  ];
}
