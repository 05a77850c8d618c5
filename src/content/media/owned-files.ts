/** Which stored files a media item has: the one place that knows all of them. Pure. */

import type { MediaFile } from "../records/records.js";

/** Names of every file that belongs to a record: shown, as it was uploaded, and in smaller versions. None where they are elsewhere. */
export function listFileNames({ name, original, sizes, elsewhere }: MediaFile): readonly string[] {
  if (elsewhere !== undefined) return [];
  const all = [name, original?.name ?? "", ...Object.values(sizes).map((size) => size.name)];
  return all.filter((owned) => owned !== "");
}
