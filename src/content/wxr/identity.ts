/**
 * Makes an import repeatable. Each post of a file has an identity, which is the same in every file
 * of that site, and a digest of its state. Pure.
 */

import { createHash } from "node:crypto";
import type { WxrItem } from "./types.js";

const digest = (bytes: number, ...parts: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest().subarray(0, bytes).toString("base64url");

/** Identity of the post with this id in files of the site at `url`, which must not be empty. */
export const toIdentity = (url: string, id: number): string => digest(16, "id", url, String(id));

/**
 * Returns the identity of an item, or `undefined` if nothing tells it apart from others. `url` is
 * empty if the file does not name its site; its ids then identify nothing.
 */
export function getIdentity(url: string, { id, guid }: Pick<WxrItem, "id" | "guid">): string | undefined {
  if (id > 0 && url !== "") return toIdentity(url, id);
  return guid === "" ? undefined : digest(16, "guid", guid);
}

/**
 * Version of the conversion. Increase it when the same item becomes another record, so that the
 * next import updates all records.
 */
const CONVERSION_VERSION = 1;

/** Returns a digest of `entry` and `settings`. The layout of the file does not change it. */
export const getImportState = (
  entry: { readonly line: number; readonly size: number },
  settings: unknown,
): string =>
  digest(
    12,
    String(CONVERSION_VERSION),
    JSON.stringify({ ...entry, line: 0, size: 0 }),
    JSON.stringify(settings),
  );
