/**
 * A record as responses show it: fields, links under short names, and bytes. Knows no record type.
 */

import type { JsonObject } from "../../schema/types.js";
import type { Item, ItemLink, Links } from "./types.js";

const API_RELATIONS = "https://api.w.org/";

const CURIES: readonly ItemLink[] = Object.freeze([
  Object.freeze({ name: "wp", href: `${API_RELATIONS}{rel}`, templated: true }),
]);

/**
 * Shortens `https://api.w.org/term` to `wp:term`, and adds `curies`, which explains the short form.
 */
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

/** Returns `fields` with `links` as the last member `_links`, unless there are no links. */
export function withLinks(fields: JsonObject, links: Links): JsonObject {
  return Object.keys(links).length === 0 ? fields : { ...fields, _links: links };
}

/**
 * `links` may have relations in their long or short form. Neither object may be changed afterwards.
 */
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
