/**
 * Bounds the size of lists and the number of large lists rendered at once. Knows no record type.
 */

import { createConcurrencyLimit } from "../../core/concurrency-limit.js";
import { nextTurn, TURN_CHARACTERS } from "../../core/next-turn.js";
import type { Json } from "../../schema/types.js";
import { RestError } from "./error.js";
import type { FieldSelection } from "./field-selection.js";
import type { Item } from "./types.js";

/** A larger list needs one of the few places for large lists. */
const LARGE_CHARACTERS = 1_048_576;
const LARGE_AT_ONCE = 3;
const LARGE_WAITING = 100;

/** Seconds. */
const RETRY_AFTER = 2;

/** The list of one response while it is filled. */
export interface ListLimit {
  readonly items: readonly Item[];
  /**
   * Adds an item. Returns a promise if other requests take their turn first.
   *
   * @throws RestError 413 `rest_response_too_large`; 503 `rest_busy`
   */
  readonly add: (item: Item) => void | Promise<void>;
}

export interface ListLimits {
  /**
   * Calls `fill` with an empty list and resolves with the items it added. `selection`: the members
   * of the items that the response shows.
   */
  readonly collect: (
    selection: FieldSelection | undefined,
    fill: (room: ListLimit) => Promise<void>,
  ) => Promise<readonly Item[]>;
  /** @throws RestError 413 `rest_response_too_large` */
  readonly refuseBeyond: (characters: number) => void;
}

/** `most`: the characters of the texts in one response, which is about the number of its bytes. */
export function createListLimits(most: number): ListLimits {
  const places = createConcurrencyLimit({ running: LARGE_AT_ONCE, waiting: LARGE_WAITING });

  const takePlace = (): Promise<() => void> =>
    new Promise((resolve, reject) => {
      const held = places.run(() => new Promise<void>((release) => resolve(release)));
      if (held === undefined) reject(busy());
    });

  const refuseBeyond = (characters: number): void => {
    if (characters > most) throw tooLarge(most);
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

const tooLarge = (most: number): RestError =>
  new RestError(
    413,
    "rest_response_too_large",
    `The response would be larger than ${most} bytes: lower per_page, or select less with _fields.`,
  );

const busy = (): RestError =>
  new RestError(503, "rest_busy", "Too many large lists are being read; try again in a moment.", {
    retryAfter: RETRY_AFTER,
  });

/** The sizes of whole items, which many lists share. */
const wholeSizes = new WeakMap<Item, number>();

/** Returns the size of the selected members; without a selection, of all. */
function sizeOfItem(item: Item, selection: FieldSelection | undefined): number {
  const known = selection === undefined ? wholeSizes.get(item) : undefined;
  if (known !== undefined) return known;
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
