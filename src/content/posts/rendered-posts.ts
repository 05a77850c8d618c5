/** The cache of rendered posts. An entry is valid until a record that it depends on changes. */

import { LRUCache } from "lru-cache";
import { listAncestors } from "../query/page-tree.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post } from "../records/records.js";
import type { Item } from "../rest/types.js";
import type { PostTypeHandler } from "./post-type-handler.js";

interface RenderedPost {
  readonly item: Item;
  /** The versions of the records whose fields went into the item, by their keys. */
  readonly versions: ReadonlyMap<string, number | undefined>;
}

export interface RenderedPosts {
  readonly get: (key: string) => Item | undefined;
  readonly set: (key: string, item: Item, post: Post, type: PostTypeHandler) => void;
}

/** Bytes that an entry takes beside its item. */
const OVERHEAD_BYTES = 200;

export function createRenderedPosts(index: SiteIndex, maxBytes: number): RenderedPosts {
  const cache = new LRUCache<string, RenderedPost>({
    maxSize: maxBytes,
    sizeCalculation: ({ item }) => OVERHEAD_BYTES + item.bytes().length,
  });
  return {
    get(key) {
      const found = cache.get(key);
      if (found === undefined) return undefined;
      for (const [record, version] of found.versions) {
        if (index.version(record) !== version) return undefined;
      }
      return found.item;
    },
    set(key, item, post, type) {
      const keys = listDependencies(post, type, index);
      cache.set(key, { item, versions: new Map(keys.map((record) => [record, index.version(record)])) });
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
