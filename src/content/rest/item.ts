/** A record as it is answered: its fields, its links in the reference's short form, and their bytes. Knows no record type. */

import type { JsonObject } from "../../schema/types.js";
import type { Item, ItemLink, Links } from "./types.js";

const API_RELATIONS = "https://api.w.org/";

const CURIES: readonly ItemLink[] = Object.freeze([
  Object.freeze({ name: "wp", href: `${API_RELATIONS}{rel}`, templated: true }),
]);

/** `https://api.w.org/term` becomes `wp:term`; `curies`, which says so, is added where there is such a relation. */
export function compactLinks(links: Links): Links {
  const compact: Record<string, readonly ItemLink[]> = {};
  let hasShort = false;
  for (const [relation, list] of Object.entries(links)) {
    const isLong = relation.startsWith(API_RELATIONS);
    hasShort ||= isLong || relation.startsWith("wp:");
    compact[isLong ? `wp:${relation.slice(API_RELATIONS.length)}` : relation] = list;
  }
  if (hasShort) compact["curies"] = CURIES;
  return compact;
}

/** `fields` with `links` as their last member `_links`; without it where there are none. */
export function withLinks(fields: JsonObject, links: Links): JsonObject {
  return Object.keys(links).length === 0 ? fields : { ...fields, _links: links };
}

/** `links`: relations in their long or short form; the item has them in the short one. Neither object may be changed afterwards. */
export function createItem(fields: JsonObject, links: Links): Item {
  const compact = compactLinks(links);
  let bytes: Uint8Array | undefined;
  return Object.freeze({
    fields,
    links: compact,
    bytes: () => {
      bytes ??= Buffer.from(JSON.stringify(withLinks(fields, compact)));
      return bytes;
    },
  });
}
