/** Builds the names that the storage keeps unique: slugs, files and import identities. Pure. */

import { listFileKeys } from "./media-file-names.js";
import type { Post, PostColumns, Term } from "./records.js";

/** WordPress makes the slug of these unique only when they get another status. */
const STATUSES_WITH_ANY_SLUG: ReadonlySet<string> = new Set(["draft", "pending", "auto-draft"]);

/** True if no other post may have the same slug while this one has this status. */
export const hasUniqueSlug = ({ status, type }: PostColumns): boolean =>
  !STATUSES_WITH_ANY_SLUG.has(status) && type !== "nav_menu_item";

/** Pages share slugs only with pages of other parents; other types have one set of slugs each. */
const toSlugName = ({ type, parent, slug }: PostColumns): string =>
  type === "page" ? `slug/page/${parent}/${slug}` : `slug/${type}/${slug}`;

export const listUniqueNamesOfPost = (post: Post): readonly string[] => [
  ...(hasUniqueSlug(post) && post.slug !== "" ? [toSlugName(post)] : []),
  ...listFileKeys(post.media),
  ...(post.importedAs === undefined ? [] : [`import/${post.importedAs}`]),
];

export const listUniqueNamesOfTerm = ({
  taxonomy,
  slug,
}: Pick<Term, "taxonomy" | "slug">): readonly string[] => [`slug/${taxonomy}/${slug}`];
