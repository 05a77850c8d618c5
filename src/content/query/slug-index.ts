/**
 * Indexes slugs within their scope, and finds the lowest free number after a stem (`news-2`,
 * `news-3` …) without trying one after the other. Knows no post and no term.
 */

import { isBuiltInName, type PostColumns, type PostType } from "../records/records.js";
import { hasSlugPerParent } from "../records/unique-names.js";
import { createMultiMap, type MultiMap } from "./multi-map.js";

/** Keys are `<scope>/<slug>`, or only the slug. */
export interface SlugIndex {
  get: MultiMap<string>["get"];
  some: MultiMap<string>["some"];
  add: (key: string, id: number) => void;
  remove: (key: string, id: number) => void;
  /**
   * Returns the lowest number from `from` on, with as many digits as `from`, for which nobody has
   * the key `<stem>-<number>`. Returns the first number with more digits if all are taken.
   */
  nextFree: (stem: string, from: number) => number;
}

/** The numbers of one stem that have the same count of digits. */
interface Numbers {
  /** Every lower number is taken, except {@link holes}. */
  next: number;
  /** The free numbers below {@link next}, ascending. */
  holes: number[];
}

/**
 * Stems whose numbers are remembered: those that were asked for last. Others are counted again, so
 * that the index takes no memory for stems that nobody asks for.
 */
const MAX_STEMS = 1_000;
/** Longer numbers are no suffix: a site would need as many records. */
const SUFFIX = /^[1-9]\d{0,8}$/;

/** Returns the first number with more digits than `number`. */
const getLimit = (number: number): number => 10 ** String(number).length;

/** WordPress begins with 2. */
const getFirst = (limit: number): number => Math.max(limit / 10, 2);

/** Returns the place of the first of the ascending `numbers` that is at least `from`. */
function findPlace(numbers: number[], from: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] as number) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function createSlugIndex(): SlugIndex {
  const ids = createMultiMap<string>();
  /** By `<stem>-<limit>`, the one that was asked for last at the end. */
  const remembered = new Map<string, Numbers>();

  const isTaken = (stem: string, number: number): boolean => ids.some(`${stem}-${number}`, () => true);

  /** Calls `change` if the numbers of this key are remembered. */
  function update(key: string, change: (numbers: Numbers, number: number) => void): void {
    if (remembered.size === 0) return;
    const dash = key.lastIndexOf("-");
    const suffix = key.slice(dash + 1);
    if (dash === -1 || !SUFFIX.test(suffix)) return;
    const number = Number(suffix);
    const numbers = remembered.get(`${key.slice(0, dash)}-${getLimit(number)}`);
    if (numbers !== undefined && number < numbers.next && number >= 2) change(numbers, number);
  }

  function remember(stem: string, limit: number): Numbers {
    const key = `${stem}-${limit}`;
    const numbers = remembered.get(key) ?? { next: getFirst(limit), holes: [] };
    remembered.delete(key);
    remembered.set(key, numbers);
    const [oldest] = remembered.keys();
    if (remembered.size > MAX_STEMS && oldest !== undefined) remembered.delete(oldest);
    return numbers;
  }

  return {
    get: ids.get,
    some: ids.some,
    add(key, id) {
      if (!ids.add(key, id)) return;
      update(key, ({ holes }, number) => {
        const place = findPlace(holes, number);
        if (holes[place] === number) holes.splice(place, 1);
      });
    },
    remove(key, id) {
      if (!ids.remove(key, id)) return;
      update(key, (numbers, number) => {
        const { holes } = numbers;
        holes.splice(findPlace(holes, number), 0, number);
        for (; holes.at(-1) === numbers.next - 1; numbers.next -= 1) holes.pop();
      });
    },
    nextFree(stem, from) {
      const limit = getLimit(from);
      const numbers = remember(stem, limit);
      const hole = numbers.holes[findPlace(numbers.holes, from)];
      if (hole !== undefined) return hole;
      while (numbers.next < limit && isTaken(stem, numbers.next)) numbers.next += 1;
      let number = Math.max(from, numbers.next);
      while (number > numbers.next && number < limit && isTaken(stem, number)) number += 1;
      return number;
    },
  };
}

// The slugs of posts, by what makes the addresses of two posts equal. Pages share one only with
// pages and attachments below the same parent, an attachment with every post that has an address,
// and other types only with posts of their type.

type SluggedPost = PostColumns;
type AddressedPost = PostColumns;

export interface PostSlugs {
  add: (post: SluggedPost) => void;
  remove: (post: SluggedPost) => void;
  /** Returns the ids, ascending, of the posts of the type, and perhaps some of other types. */
  withSlug: (type: PostType, slug: string) => number[];
  /** True if a post that is not ignored has the slug, with the address that `post` would have. */
  isTaken: (post: AddressedPost, slug: string, isIgnored: (id: number) => boolean) => boolean;
  /** As in `SlugIndex`, for the slugs that `post` could have. */
  nextFree: (post: AddressedPost, stem: string, from: number) => number;
}

const ADDRESSED: Set<PostType> = new Set<PostType>(["post", "page", "attachment"]);

/** True if items may have a separate address. */
const isAddressed = (type: PostType): boolean => ADDRESSED.has(type) || !isBuiltInName(type);

/** Begins the keys of posts that can take a slug from each other. */
function getScope({ type, parent }: AddressedPost): string {
  if (type === "attachment") return `page/${parent}/`;
  return hasSlugPerParent(type) ? `${type}/${parent}/` : `${type}/`;
}

/** The key of the posts that must not have the slug of `post`: an attachment looks at all types. */
const toKey = (post: AddressedPost, slug: string): string =>
  post.type === "attachment" ? slug : `${getScope(post)}${slug}`;

export function createPostSlugs(): PostSlugs {
  const slugs = createSlugIndex();

  function listKeys(post: SluggedPost): string[] {
    if (post.slug === "") return [];
    const key = `${getScope(post)}${post.slug}`;
    return isAddressed(post.type) ? [key, post.slug] : [key];
  }

  return {
    add(post) {
      for (const key of listKeys(post)) slugs.add(key, post.id);
    },
    remove(post) {
      for (const key of listKeys(post)) slugs.remove(key, post.id);
    },
    withSlug: (type, slug) =>
      slugs.get(type === "attachment" || hasSlugPerParent(type) ? slug : `${type}/${slug}`),
    isTaken: (post, slug, isIgnored) => slugs.some(toKey(post, slug), (id) => !isIgnored(id)),
    nextFree: (post, stem, from) => slugs.nextFree(toKey(post, stem), from),
  };
}
