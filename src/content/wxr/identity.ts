/** What makes an import repeatable: a name for each post of a file that is the same in every file of that site, and a digest of its state. Pure. */

import { createHash } from "node:crypto";
import type { WxrItem } from "./types.js";

const digest = (bytes: number, ...parts: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest().subarray(0, bytes).toString("base64url");

/** Of the post with this id in the files of the site at `url`, which must not be empty: ids are those of one site. */
export const toIdentity = (url: string, id: number): string => digest(16, "id", url, String(id));

/** `url` is empty where the file does not name its site: ids tell nothing then. `undefined` for an item that nothing in the file tells apart from others. */
export function getIdentity(url: string, { id, guid }: Pick<WxrItem, "id" | "guid">): string | undefined {
  if (id > 0 && url !== "") return toIdentity(url, id);
  return guid === "" ? undefined : digest(16, "guid", guid);
}

/** Grows when what is made of the same file changes, so that the next import does it anew. */
const FORM = 1;

/** The same for the same `entry` under the same `settings`, however the file is laid out. */
export const getImportState = (
  entry: { readonly line: number; readonly size: number },
  settings: unknown,
): string =>
  digest(12, String(FORM), JSON.stringify({ ...entry, line: 0, size: 0 }), JSON.stringify(settings));
