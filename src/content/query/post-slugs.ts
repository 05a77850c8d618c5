/**
 * The slugs of posts, by what makes the addresses of two posts equal. Pages share one only with
 * pages and attachments below the same parent, an attachment with every post that has an address,
 * and other types only with posts of their type.
 */

import type { PostColumns, PostType } from "../records/records.js";
import { createSlugIndex } from "./slug-index.js";

type SluggedPost = Pick<PostColumns, "id" | "type" | "slug" | "parent">;
type AddressedPost = Pick<PostColumns, "type" | "parent">;

export interface PostSlugs {
  readonly add: (post: SluggedPost) => void;
  readonly remove: (post: SluggedPost) => void;
  /** Returns the ids, ascending, of the posts of the type, and perhaps some of other types. */
  readonly withSlug: (type: PostType, slug: string) => readonly number[];
  /** True if a post that is not ignored has the slug, with the address that `post` would have. */
  readonly isTaken: (post: AddressedPost, slug: string, isIgnored: (id: number) => boolean) => boolean;
  /** As in `SlugIndex`, for the slugs that `post` could have. */
  readonly nextFree: (post: AddressedPost, stem: string, from: number) => number;
}

/** Types with an address of their own. */
const ADDRESSED: ReadonlySet<PostType> = new Set<PostType>(["post", "page", "attachment"]);

/** Begins the keys of posts that can take a slug from each other. */
const getScope = ({ type, parent }: AddressedPost): string =>
  type === "page" || type === "attachment" ? `page/${parent}/` : `${type}/`;

/** The key of the posts that must not have the slug of `post`: an attachment looks at all types. */
const toKey = (post: AddressedPost, slug: string): string =>
  post.type === "attachment" ? slug : `${getScope(post)}${slug}`;

export function createPostSlugs(): PostSlugs {
  const slugs = createSlugIndex();

  function listKeys(post: SluggedPost): readonly string[] {
    if (post.slug === "") return [];
    const own = `${getScope(post)}${post.slug}`;
    return ADDRESSED.has(post.type) ? [own, post.slug] : [own];
  }

  return {
    add(post) {
      for (const key of listKeys(post)) slugs.add(key, post.id);
    },
    remove(post) {
      for (const key of listKeys(post)) slugs.remove(key, post.id);
    },
    withSlug: (type, slug) => slugs.get(type === "page" || type === "attachment" ? slug : `${type}/${slug}`),
    isTaken: (post, slug, isIgnored) => slugs.some(toKey(post, slug), (id) => !isIgnored(id)),
    nextFree: (post, stem, from) => slugs.nextFree(toKey(post, stem), from),
  };
}
