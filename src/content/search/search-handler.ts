/** The interface of a kind of things that `/search` finds: posts, terms, post formats. */

import type { JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";

export interface SearchQuery {
  /** Empty: finds everything. */
  readonly text: string;
  /** Those of the handler's subtypes that the client asked for; empty if it asked for none. */
  readonly subtypes: readonly string[];
  /** Ids; empty: no such limit. `include` overrides `exclude`. */
  readonly include: readonly number[];
  readonly exclude: readonly number[];
  readonly offset: number;
  readonly limit: number;
  readonly caller: Caller;
}

export interface SearchResult {
  readonly fields: JsonObject;
  /** The path of the record below the namespace, such as `/posts/3`. Absent: it has no route. */
  readonly self?: string;
  /** The path that describes its type, such as `/types/post`. */
  readonly about?: string;
}

export interface SearchResults {
  /** Those of the requested page. */
  readonly results: readonly SearchResult[];
  /** Of all pages. */
  readonly total: number;
}

/** Finds what everybody may see of one kind; the results are the same for every caller. */
export interface SearchHandler {
  /** The value of the argument `type`. */
  readonly type: "post" | "term" | "post-format";
  /** The values of the argument `subtype` that belong to this type. */
  readonly subtypes: readonly string[];
  readonly find: (query: SearchQuery) => SearchResults | Promise<SearchResults>;
}
