/** Pages of lists, and their headers: the total, and links to the pages before and after. */

import type { Json, JsonObject } from "../../schema/types.js";
import { RestError } from "./error.js";
import type { RestHeaders } from "./rest-headers.js";
import type { Item, RestRequest, RestResponse } from "./types.js";

/**
 * Builds `x-wp-total`, `x-wp-totalpages` and `link` of a list. `given`: the arguments of the query
 * as they came, which the links repeat.
 *
 * @throws RestError 400 with the code `invalidPage` for a page after the last one, unless the list
 *   is empty
 */
export function pageHeaders({
  values,
  total,
  given,
  url,
  isOpenEnded = false,
  invalidPage = "rest_post_invalid_page_number",
}: {
  readonly values: { readonly [name: string]: Json | undefined };
  readonly total: number;
  readonly given: JsonObject;
  readonly url: string;
  /** True if a page after the last one is empty instead of an error. */
  readonly isOpenEnded?: boolean;
  readonly invalidPage?: string;
}): RestHeaders {
  const page = Number(values["page"] ?? 1);
  const perPage = Number(values["per_page"] ?? 10);
  const pages = Math.ceil(total / perPage);
  if (page > pages && total > 0 && !isOpenEnded) {
    throw new RestError(
      400,
      invalidPage,
      "The page number requested is larger than the number of pages available.",
    );
  }
  const to = (number: number, relation: string): string =>
    `<${url}?${queryText({ ...given, page: String(number) })}>; rel="${relation}"`;
  const links = [
    ...(page > 1 ? [to(Math.min(page - 1, pages), "prev")] : []),
    ...(page < pages ? [to(page + 1, "next")] : []),
  ];
  return {
    "x-wp-total": String(total),
    "x-wp-totalpages": String(pages),
    ...(links.length > 0 ? { link: links.join(", ") } : {}),
  };
}

/** Builds the requested page of a list that is known whole. A page after the last one is empty. */
export function respondWithPage<T>(
  found: readonly T[],
  { values, query, url }: RestRequest,
  { path, itemOf }: { readonly path: string; readonly itemOf: (one: T) => Item },
): RestResponse {
  const perPage = Number(values["per_page"]);
  const start = Math.max(0, Number(values["offset"] ?? (Number(values["page"]) - 1) * perPage));
  return {
    status: 200,
    headers: pageHeaders({ values, total: found.length, given: query, url: url(path), isOpenEnded: true }),
    body: { items: found.slice(start, start + perPage).map(itemOf) },
  };
}

/** Writes a query string that parses back to `values`. */
function queryText(values: JsonObject): string {
  const pairs: string[] = [];
  const add = (name: string, value: Json): void => {
    if (Array.isArray(value)) {
      for (const [at, item] of value.entries()) add(`${name}[${at}]`, item as Json);
    } else if (typeof value === "object" && value !== null) {
      for (const [member, item] of Object.entries(value)) add(`${name}[${member}]`, item);
    } else pairs.push(`${encoded(name)}=${encoded(String(value ?? ""))}`);
  };
  for (const [name, value] of Object.entries(values)) add(name, value);
  return pairs.join("&");
}

/** Half a surrogate pair, which no URL can hold, becomes U+FFFD. */
const encoded = (text: string): string => encodeURIComponent(Buffer.from(text).toString());
