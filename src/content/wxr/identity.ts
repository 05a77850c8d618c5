/**
 * Makes an import repeatable. Each post of a file has an identity, which is the same in every file
 * of that site, and a digest of its state; a term has a slug and a name. Pure.
 */

import { createHash } from "node:crypto";
import { MAX_NAME, termName } from "../terms/write-term.js";
import { toSlug } from "../text/slug.js";
import type { WxrItem, WxrSite } from "./types.js";

const digest = (bytes: number, ...parts: string[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest().subarray(0, bytes).toString("base64url");

/**
 * Returns the slug of the menu that a menu item is in; empty for an item without a menu and for any
 * other item. A file may repeat an id in each menu, so the menu is a part of the identity.
 */
export const getMenu = ({ type, terms }: WxrItem): string =>
  type === "nav_menu_item" ? (terms.find(({ taxonomy }) => taxonomy === "nav_menu")?.slug ?? "") : "";

const inMenu = (menu: string): string[] => (menu === "" ? [] : [menu]);

/**
 * Identity of the post with this id in files of the site at `url`, which must not be empty. `menu`:
 * as {@link getMenu} returns it.
 */
export const toIdentity = (url: string, id: number, menu: string): string =>
  digest(16, "id", url, String(id), ...inMenu(menu));

/**
 * Returns the identity of an item. If the file does not name the URL of its site, ids identify
 * nothing, but guids do. Without either, the item is known by what seldom changes.
 */
export function getIdentity(source: WxrSite, item: WxrItem): string {
  const { url } = source;
  const { id, guid, type, slug, title, date } = item;
  const menu = getMenu(item);
  if (id > 0 && url !== "") return toIdentity(url, id, menu);
  if (guid !== "") return digest(16, "guid", guid, ...inMenu(menu));
  return digest(16, "item", source.title, type, String(id), slug, title, date, ...inMenu(menu));
}

/**
 * Version of the conversion. Increase it when the same item becomes another record, so that the
 * next import updates all records.
 */
const CONVERSION_VERSION = 1;

/** Returns a digest of `entry` and `settings`. The layout of the file does not change it. */
export const getImportState = (entry: { line: number; size: number }, settings: unknown): string =>
  digest(
    12,
    String(CONVERSION_VERSION),
    JSON.stringify({ ...entry, line: 0, size: 0 }),
    JSON.stringify(settings),
  );

// Returns the slug and name under which a term of a file is stored and found again. Pure.

export interface NamedTerm {
  slug: string;
  name: string;
}

/** Returns the name as it is stored; empty for a term with neither name nor slug. */
export const termNameKey = ({ name, slug }: NamedTerm): string =>
  (termName(name) || termName(slug)).slice(0, MAX_NAME);

/**
 * Returns the slug, which is never empty. A name without letters, such as `!!!`, gets the same slug
 * in every import, so that its term is found again.
 */
export const termSlugKey = (term: NamedTerm): string =>
  toSlug(term.slug) ||
  toSlug(term.name) ||
  `term-${createHash("sha256").update(termNameKey(term)).digest("hex").slice(0, 16)}`;
