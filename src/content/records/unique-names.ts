/** Builds the names that the storage keeps unique: slugs, files and import identities. Pure. */

import {
  isBuiltInName,
  type MediaFile,
  type Post,
  type PostColumns,
  type PostType,
  type Term,
} from "./records.js";

/** WordPress makes the slug of these unique only when they get another status. */
const STATUSES_WITH_ANY_SLUG: Set<string> = new Set(["draft", "pending", "auto-draft"]);

/** True if no other post may have the same slug while this one has this status. */
export const hasUniqueSlug = ({ status, type }: PostColumns): boolean =>
  !STATUSES_WITH_ANY_SLUG.has(status) && type !== "nav_menu_item";

/** True if two items of the type may have the same slug below different parents. */
export const hasSlugPerParent = (type: PostType): boolean => type === "page" || !isBuiltInName(type);

const toSlugName = ({ type, parent, slug }: PostColumns): string =>
  hasSlugPerParent(type) ? `slug/${type}/${parent}/${slug}` : `slug/${type}/${slug}`;

export const listUniqueNamesOfPost = (post: Post): string[] => [
  ...(hasUniqueSlug(post) && post.slug !== "" ? [toSlugName(post)] : []),
  ...listFileKeys(post.media),
  ...(post.importedAs === undefined ? [] : [`import/${post.importedAs}`]),
];

export const listUniqueNamesOfTerm = ({ taxonomy, slug }: Term): string[] => [`slug/${taxonomy}/${slug}`];

/**
 * Returns the names of every file that belongs to a record: the one shown, the one uploaded, and
 * smaller versions. Empty if the files are stored elsewhere.
 */
export function listFileNames({ name, original, sizes, elsewhere }: MediaFile): string[] {
  if (elsewhere !== undefined) return [];
  const all = [name, original?.name ?? "", ...Object.values(sizes).map((size) => size.name)];
  return all.filter((owned) => owned !== "");
}

export const FILE_KEY_PREFIX = "file/";

export const toFileKey = (name: string): string => `${FILE_KEY_PREFIX}${name}`;

/**
 * Returns a unique name for each file of a record. An entry of the orphan journal holds the same
 * name, so the storage lets a file belong to one record or one entry at a time.
 */
export const listFileKeys = (media: MediaFile | null): string[] =>
  media === null ? [] : [...new Set(listFileNames(media))].map(toFileKey);
