/** Finds the posts of this site that an import made, by their identity. */

import type { Post } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { listPostIds } from "./post-ids.js";

export interface ImportedPosts {
  /** Reads the identities of all posts. Needed before the first call of the others. */
  readonly refresh: () => void;
  /** Returns `undefined` for a post that was never imported, or deleted since. */
  readonly getId: (identity: string) => number | undefined;
  readonly add: (identity: string, id: number) => void;
  /** Loads the posts that exist, by identity. */
  readonly load: (identities: readonly string[]) => Promise<ReadonlyMap<string, Post>>;
}

export function createImportedPosts(repository: ContentRepository): ImportedPosts {
  const { index } = repository;
  const ids = new Map<string, number>();

  function getId(identity: string): number | undefined {
    const id = ids.get(identity);
    return id !== undefined && index.post(id)?.importedAs === identity ? id : undefined;
  }

  return {
    refresh() {
      ids.clear();
      for (const id of listPostIds(index)) {
        const identity = index.post(id)?.importedAs;
        if (identity !== undefined) ids.set(identity, id);
      }
    },
    getId,
    add: (identity, id) => ids.set(identity, id),
    async load(identities) {
      const posts = await repository.posts(identities.flatMap((identity) => getId(identity) ?? []));
      return new Map(
        posts.flatMap((post) => (post?.importedAs === undefined ? [] : [[post.importedAs, post] as const])),
      );
    },
  };
}
