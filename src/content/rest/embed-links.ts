/**
 * The `_embed` parameter: adds the records that a response links to. Knows neither records nor
 * routes.
 */

import type { Json, JsonObject } from "../../schema/types.js";
import { toFieldList } from "./field-selection.js";
import type { ItemLink, Links } from "./types.js";

/** `"all"`, or the requested relations. */
export type EmbedSelection = "all" | ReadonlySet<string>;

/** Returns the JSON at the URL of a link, or `undefined` if the link leads elsewhere. */
export type FetchEmbedded = (href: string) => Promise<Json | undefined>;

/** Each costs a request inside the service. Further links are not embedded. */
const MAX_EMBEDDED = 500;

/**
 * Parses `_embed`: `1`, `true` or empty embed everything, `author,wp:term` those relations. Returns
 * `undefined` without the parameter.
 */
export function parseEmbed(given: Json | undefined): EmbedSelection | undefined {
  if (given === undefined || given === null) return undefined;
  if (given === "true" || given === "1" || given === true || given === 1) return "all";
  const relations = toFieldList(given);
  return relations.length === 0 ? "all" : new Set(relations);
}

/** Fetches every URL once, and no more than 500 of them. */
export function fetchOnce(fetch: FetchEmbedded): FetchEmbedded {
  const fetched = new Map<string, Promise<Json | undefined>>();
  return (href) => {
    let found = fetched.get(href);
    if (found === undefined) {
      if (fetched.size >= MAX_EMBEDDED) return Promise.resolve(undefined);
      found = fetch(href);
      fetched.set(href, found);
    }
    return found;
  };
}

/**
 * Returns `_embedded` for one record with these links, or `undefined` if nothing was found.
 *
 * Each relation has a list in the order of its links, with an empty list for a link that cannot be
 * embedded. Relations without any record are left out.
 */
export async function embeddedFor(
  links: Links,
  selection: EmbedSelection,
  fetch: FetchEmbedded,
): Promise<JsonObject | undefined> {
  const embedded: Record<string, Json> = {};
  for (const [relation, list] of Object.entries(links)) {
    if (selection !== "all" && !selection.has(relation)) continue;
    if (!list.some(isEmbeddable)) continue;
    const found: Json[] = [];
    for (const link of list) found.push((isEmbeddable(link) ? await fetch(link.href) : undefined) ?? []);
    if (found.some((value) => !Array.isArray(value) || value.length > 0)) embedded[relation] = found;
  }
  return Object.keys(embedded).length === 0 ? undefined : embedded;
}

const isEmbeddable = (link: ItemLink): boolean => link["embeddable"] === true;
