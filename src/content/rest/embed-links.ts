/** The `_embed` parameter: puts the records that an answer links to into it. Knows neither records nor how they are fetched. */

import type { Json, JsonObject } from "../../schema/types.js";
import { toFieldList } from "./field-selection.js";
import type { ItemLink, Links } from "./types.js";

/** `"all"`, or the relations that are asked for. */
export type EmbedSelection = "all" | ReadonlySet<string>;

/** What stands at a link's address, `undefined` where it leads elsewhere. */
export type FetchEmbedded = (href: string) => Promise<Json | undefined>;

/** Each costs a request inside the service; what is linked beyond them is not embedded. */
const MAX_EMBEDDED = 500;

/** `_embed`, `_embed=1` and `_embed=true` ask for everything, `_embed=author,wp:term` for these; `undefined` where it is not given. */
export function parseEmbed(given: Json | undefined): EmbedSelection | undefined {
  if (given === undefined || given === null) return undefined;
  if (given === "true" || given === "1" || given === true || given === 1) return "all";
  const relations = toFieldList(given);
  return relations.length === 0 ? "all" : new Set(relations);
}

/** Fetches every address once, and no more than 500 of them. */
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
 * What `_embedded` holds for one record with these links: for each relation a list in the order of its links, an empty list in the place of one that is not
 * embeddable; no relation of which nothing was found. `undefined` where there is none.
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
