/**
 * Fetches the records that `_embed` asks for, with requests inside the process by the same caller.
 */

import type { Caller } from "../auth/caller.js";
import type { RouteDispatcher } from "./dispatch.js";
import { type FetchEmbedded, fetchOnce } from "./embed-links.js";
import { estimateSize, type ListLimits } from "./list-limits.js";
import { mergeParameters, readQuery } from "./request-input.js";
import { decodeSegments } from "./route-tree.js";
import { toJson } from "./serialise.js";

export type FetchEmbeddedAs = (caller: Caller, baseUrl: string) => FetchEmbedded;

export const createEmbeddedFetcher =
  (
    { find, dispatch }: Pick<RouteDispatcher, "find" | "dispatch">,
    { refuseBeyond }: Pick<ListLimits, "refuseBeyond">,
  ): FetchEmbeddedAs =>
  (caller, baseUrl) => {
    let total = 0;
    return fetchOnce(async (href) => {
      if (!href.startsWith(`${baseUrl}/`)) return undefined;
      const [path = "", search = ""] = href.slice(baseUrl.length).split("?", 2);
      const match = find(decodeSegments(path));
      // Clients expect some links that lead nowhere on this site, such as those to comments.
      if (match === undefined) return undefined;
      const most = match.row.byMethod.get("GET")?.args["per_page"]?.maximum;
      const query = mergeParameters(readQuery(search), {
        context: "embed",
        ...(most === undefined ? {} : { per_page: most }),
      });
      const call = { method: "GET", path, match, query, body: {}, headers: {}, caller, baseUrl };
      const json = toJson((await dispatch(call)).body);
      total += estimateSize(json);
      refuseBeyond(total);
      return json;
    });
  };
