/**
 * Lists of records: their pages, the size of a response, and the number of large lists rendered at
 * once. Knows no record type.
 */

import { createConcurrencyLimit } from "../../core/concurrency-limit.js";
import { nextTurn, TURN_CHARACTERS } from "../../core/next-turn.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { RestError } from "./error.js";
import type { RestHeaders } from "./rest-headers.js";
import type { FieldSelection } from "./serialise.js";
import type { Item, RestRequest, RestResponse } from "./types.js";

/** A larger list needs one of the few places for large lists. */
const LARGE_CHARACTERS = 1_048_576;
const LARGE_AT_ONCE = 3;
const LARGE_WAITING = 100;

/** Seconds. */
const RETRY_AFTER = 2;

/** The list of one response while it is filled. */
export interface ListLimit {
  items: Item[];
  /**
   * Adds an item. Returns a promise if other requests take their turn first.
   *
   * @throws RestError 413 `rest_response_too_large`; 503 `rest_busy`
   */
  add: (item: Item) => void | Promise<void>;
}

export interface ListLimits {
  /**
   * Calls `fill` with an empty list and resolves with the items it added. `selection`: the members
   * of the items that the response shows.
   */
  collect: (
    selection: FieldSelection | undefined,
    fill: (room: ListLimit) => Promise<void>,
  ) => Promise<Item[]>;
  /** @throws RestError 413 `rest_response_too_large` */
  refuseBeyond: (characters: number) => void;
}

/**
 * `maxCharacters`: the characters of the texts in one response, which is about the number of its
 * bytes.
 */
export function createListLimits(maxCharacters: number): ListLimits {
  const places = createConcurrencyLimit({ running: LARGE_AT_ONCE, waiting: LARGE_WAITING });

  const takePlace = (): Promise<() => void> =>
    new Promise((resolve, reject) => {
      const held = places.run(() => new Promise<void>((release) => resolve(release)));
      if (held === undefined) reject(busy());
    });

  const refuseBeyond = (characters: number): void => {
    if (characters > maxCharacters) throw tooLarge(maxCharacters);
  };

  const collect: ListLimits["collect"] = async (selection, fill) => {
    const items: Item[] = [];
    let total = 0;
    let sinceTurn = 0;
    let release: (() => void) | undefined;
    const room: ListLimit = {
      items,
      add(item) {
        const size = sizeOfItem(item, selection);
        total += size;
        sinceTurn += size;
        refuseBeyond(total);
        items.push(item);
        return sinceTurn < TURN_CHARACTERS ? undefined : wait();
      },
    };
    const wait = async (): Promise<void> => {
      sinceTurn = 0;
      if (release === undefined && total > LARGE_CHARACTERS) release = await takePlace();
      await nextTurn();
    };
    try {
      await fill(room);
      return items;
    } finally {
      release?.();
    }
  };
  return { collect, refuseBeyond };
}

const tooLarge = (maxBytes: number): RestError =>
  new RestError(
    413,
    "rest_response_too_large",
    `The response would be larger than ${maxBytes} bytes: lower per_page, or select less with _fields.`,
  );

const busy = (): RestError =>
  new RestError(503, "rest_busy", "Too many large lists are being read; try again in a moment.", {
    retryAfter: RETRY_AFTER,
  });

/** The sizes of whole items, which many lists share. */
const wholeSizes = new WeakMap<Item, number>();

/** Returns the size of the selected members; without a selection, of all. */
function sizeOfItem(item: Item, selection: FieldSelection | undefined): number {
  const found = selection === undefined ? wholeSizes.get(item) : undefined;
  if (found !== undefined) return found;
  let size = 0;
  for (const [name, value] of Object.entries(item.fields)) {
    if (selection === undefined || selection.has(name)) size += estimateSize(value);
  }
  if (selection === undefined) wholeSizes.set(item, size);
  return size;
}

/** The size of a value besides the characters of its texts. */
const OVERHEAD = 16;

/** Estimates the characters of the JSON without writing it. */
export function estimateSize(value: Json): number {
  if (typeof value === "string") return value.length + OVERHEAD;
  if (typeof value !== "object" || value === null) return OVERHEAD;
  let size = OVERHEAD;
  for (const member of Object.values(value)) size += estimateSize(member as Json);
  return size;
}

// Pages of lists, and their headers: the total, and links to the pages before and after.

/**
 * Builds `x-wp-total`, `x-wp-totalpages` and `link` of a list. `query`: the arguments of the query
 * as they came, which the links repeat.
 *
 * @throws RestError 400 with the code `invalidPage` for a page after the last one, unless the list
 *   is empty
 */
export function pageHeaders({
  values,
  total,
  query,
  url,
  isOpenEnded = false,
  invalidPage = "rest_post_invalid_page_number",
}: {
  values: { [name: string]: Json | undefined };
  total: number;
  query: JsonObject;
  url: string;
  /** True if a page after the last one is empty instead of an error. */
  isOpenEnded?: boolean;
  invalidPage?: string;
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
    `<${url}?${queryText({ ...query, page: String(number) })}>; rel="${relation}"`;
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
  found: T[],
  { values, query, url }: RestRequest,
  { path, itemOf }: { path: string; itemOf: (one: T) => Item },
): RestResponse {
  const perPage = Number(values["per_page"]);
  const start = Math.max(0, Number(values["offset"] ?? (Number(values["page"]) - 1) * perPage));
  return {
    status: 200,
    headers: pageHeaders({ values, total: found.length, query, url: url(path), isOpenEnded: true }),
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
