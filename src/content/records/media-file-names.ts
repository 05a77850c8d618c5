/** Lists the stored files of a media item. The only place that knows all of them. Pure. */

import type { MediaFile } from "./records.js";

/**
 * Returns the names of every file that belongs to a record: the one shown, the one uploaded, and
 * smaller versions. Empty if the files are stored elsewhere.
 */
export function listFileNames({ name, original, sizes, elsewhere }: MediaFile): readonly string[] {
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
export const listFileKeys = (media: MediaFile | null): readonly string[] =>
  media === null ? [] : [...new Set(listFileNames(media))].map(toFileKey);
