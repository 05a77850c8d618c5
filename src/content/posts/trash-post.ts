/** Moves a post to the trash. */

import type { Post } from "../records/records.js";
import { cutSlug } from "../text/slug.js";
import { findFreeSlug } from "./post-slug.js";
import type { WriteContext } from "./write-context.js";

const SUFFIX = "__trashed";
/** A slug has at most 200 characters. */
const MAX_BASE = 191;

/** Returns the record in the trash. It gives up its slug, so that other posts can have it. */
export function trashPost(post: Post, { site, index, now }: WriteContext): Post {
  const isMarked = post.slug.endsWith(SUFFIX) || post.slug === "";
  const slug = isMarked ? post.slug : `${cutSlug(post.slug, MAX_BASE)}${SUFFIX}`;
  const trashed: Post = {
    ...post,
    status: "trash",
    beforeTrash: { status: post.status, slug: post.slug },
    modified: site.zone.toLocal(now),
    modifiedGmt: now,
  };
  return { ...trashed, slug: slug === "" ? "" : findFreeSlug(trashed, slug, index) };
}
