/**
 * Lists are what an independent filter, sort and cut makes of the same posts, whatever is asked and
 * whatever changed before.
 */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SearchText, SiteIndex, StoredColumns } from "../../../src/content/query/site-index.js";
import type { PostPage, PostQuery, TermFilter, Visibility } from "../../../src/content/query/types.js";
import type { PostOrder } from "../../../src/content/records/content-model.js";
import type { PostStatus, PostType, Term } from "../../../src/content/records/records.js";
import type { ContentChange } from "../../../src/content/store.js";
import { DEFAULT_CATEGORY, indexOf, ofPost, ofTerm, post, removal, term } from "../../support/query-site.js";

interface Site {
  readonly posts: Map<number, StoredColumns>;
  readonly terms: Map<number, Term>;
  readonly texts: Map<number, SearchText>;
}

const categoriesOf = (site: Site, found: StoredColumns): readonly number[] => {
  const raw = found.terms.category ?? [];
  const left = raw.filter((id) => site.terms.get(id)?.taxonomy === "category");
  return found.type === "post" && raw.length > 0 && left.length === 0 ? [DEFAULT_CATEGORY] : left;
};

const termsOf = (site: Site, found: StoredColumns, { taxonomy }: TermFilter): readonly number[] =>
  taxonomy === "category"
    ? categoriesOf(site, found)
    : (found.terms[taxonomy] ?? []).filter((id) => site.terms.get(id)?.taxonomy === taxonomy);

function fitsTerms(site: Site, found: StoredColumns, filter: TermFilter): boolean {
  const known = [...site.terms.values()].filter(({ taxonomy }) => taxonomy === filter.taxonomy);
  // A hierarchy is within one taxonomy: a parent that belongs to another ends the way up.
  const isBelow = (id: number, top: number, seen: readonly number[] = []): boolean => {
    const parent = known.find((term) => term.id === id)?.parent ?? 0;
    if (parent === top && top !== 0) return true;
    return parent !== 0 && !seen.includes(parent) && isBelow(parent, top, [...seen, parent]);
  };
  const asked = known.filter(
    ({ id }) =>
      filter.terms.includes(id) ||
      (filter.includeChildren &&
        filter.terms.some((top) => known.some((other) => other.id === top) && isBelow(id, top))),
  );
  const own = termsOf(site, found, filter);
  const isMissing = filter.terms.some((id) => !known.some((other) => other.id === id));
  if (filter.operator === "AND") return !isMissing && asked.every(({ id }) => own.includes(id));
  return asked.some(({ id }) => own.includes(id)) === (filter.operator === "OR");
}

function isSeen(site: Site, found: StoredColumns, { visibility, inherited }: PostQuery): boolean {
  const admits = (by: Visibility | undefined, status: PostStatus, author: number): boolean => {
    const sight = by?.[status];
    return sight === "all" || (sight !== undefined && sight.author === author);
  };
  if (admits(visibility, found.status, found.author)) return true;
  if (found.type !== "attachment" || found.status !== "inherit") return false;
  const parent = site.posts.get(found.parent);
  return admits(inherited, parent?.status ?? "publish", parent?.author ?? found.author);
}

const has = <T>(list: readonly T[] | undefined): list is readonly T[] => (list?.length ?? 0) > 0;

function fits(site: Site, found: StoredColumns, asked: PostQuery): boolean {
  const { id, author, parent, slug, date, modified, mimeType } = found;
  const types: readonly PostType[] = [asked.type, ...(asked.alsoTypes ?? [])];
  if (!types.includes(found.type) || !isSeen(site, found, asked)) return false;
  if (has(asked.include) && !asked.include.includes(id)) return false;
  if (asked.sticky === true && !found.sticky) return false;
  if (!has(asked.include) && asked.sticky !== true) {
    if (asked.exclude?.includes(id)) return false;
    if (asked.sticky === false && found.sticky) return false;
  }
  if (has(asked.authorExclude)) {
    if (asked.authorExclude.includes(author)) return false;
  } else if (has(asked.author) && !asked.author.includes(author)) return false;
  if (has(asked.parent)) {
    if (!asked.parent.includes(parent)) return false;
  } else if (asked.parentExclude?.includes(parent)) return false;
  if (asked.menuOrder !== undefined && found.menuOrder !== asked.menuOrder) return false;
  if (has(asked.slug) && !asked.slug.includes(slug)) return false;
  if (
    has(asked.mimeType) &&
    !asked.mimeType.some((type) => type === mimeType || (type.endsWith("/") && mimeType.startsWith(type)))
  ) {
    return false;
  }
  if (date <= (asked.after ?? -Infinity) || date >= (asked.before ?? Infinity)) return false;
  if (modified <= (asked.modifiedAfter ?? -Infinity) || modified >= (asked.modifiedBefore ?? Infinity))
    return false;
  // For WordPress, a format is a term.
  const results = (asked.terms ?? [])
    .filter(({ terms }) => has(terms))
    .map((filter) => fitsTerms(site, found, filter));
  if (has(asked.format)) results.push(asked.format.includes(found.format));
  if (
    results.length > 0 &&
    !(asked.termRelation === "OR" ? results.includes(true) : !results.includes(false))
  )
    return false;
  if (!asked.search) return true;
  if (found.hasPassword && !asked.search.seesProtected) return false;
  // Searches here are single lower-case words; what else a text may ask for has tests of its own.
  const text = site.texts.get(id);
  const editable = asked.search.searchedProtected?.[found.status];
  const isRead = !found.hasPassword || editable === "all" || editable?.author === found.author;
  const columns = {
    title: found.title,
    content: (isRead && text?.content) || "",
    excerpt: (isRead && text?.excerpt) || "",
  };
  const places = asked.search.columns.map((column) => columns[column]);
  if (found.type === "attachment") places.push(text?.file ?? "");
  const word = asked.search.text;
  return places.some((place) => place.toLowerCase().includes(word));
}

function naive(site: Site, asked: PostQuery): PostPage {
  const { orderBy, search } = asked;
  const keys: Partial<Record<PostOrder, (found: StoredColumns) => number | string>> = {
    author: (found) => found.author,
    id: (found) => found.id,
    modified: (found) => found.modified,
    parent: (found) => found.parent,
    slug: (found) => found.slug,
    title: (found) => found.title.toLowerCase(),
    menu_order: (found) => found.menuOrder,
  };
  const sign = asked.order === "asc" ? 1 : -1;
  const byKey = (a: number | string, b: number | string): number => (a < b ? -1 : a > b ? 1 : 0);
  const byDate = (a: StoredColumns, b: StoredColumns): number =>
    sign * (byKey(a.date, b.date) || a.id - b.id);
  const compare = (a: StoredColumns, b: StoredColumns): number => {
    const key = keys[orderBy];
    if (key) return sign * byKey(key(a), key(b)) || a.id - b.id;
    if (orderBy === "include" && has(asked.include))
      return asked.include.indexOf(a.id) - asked.include.indexOf(b.id);
    if (orderBy === "include_slugs" && has(asked.slug)) {
      return asked.slug.indexOf(a.slug) - asked.slug.indexOf(b.slug) || a.id - b.id;
    }
    if (orderBy === "relevance" && search) {
      const rank = (found: StoredColumns): number =>
        found.title.toLowerCase().includes(search.text) ? 0 : 1;
      return rank(a) - rank(b) || byDate(a, b);
    }
    return byDate(a, b);
  };
  const all = [...site.posts.values()].filter((found) => fits(site, found, asked)).sort(compare);
  return { ids: all.slice(asked.offset, asked.offset + asked.limit).map(({ id }) => id), total: all.length };
}

const TYPES: readonly PostType[] = ["post", "page", "attachment"];
const STATUSES: readonly PostStatus[] = ["publish", "draft", "private", "trash", "inherit", "future"];
const TERM_IDS = [1, 2, 3, 4, 5, 6];
const WORDS = ["apple", "Pear", "plum pie", "APPLE PLUM", ""];
const MIME_TYPES = ["image/png", "image/jpeg", "text/plain"];
const POSTS = 14;

const few = fc.nat({ max: 3 });
const ids = fc.array(fc.integer({ min: 1, max: POSTS + 2 }), { maxLength: 5 });
const termIds = fc.array(fc.constantFrom(...TERM_IDS, 99), { minLength: 0, maxLength: 3 });
const text = fc.constantFrom(...WORDS);
const slug = fc.constantFrom("a", "b", "c", "d");
const lists = { author: fc.array(few, { maxLength: 3 }), slug: fc.array(slug, { maxLength: 3 }) };

const aPost: fc.Arbitrary<StoredColumns> = fc
  .record({
    id: fc.integer({ min: 1, max: POSTS }),
    type: fc.constantFrom(...TYPES),
    status: fc.constantFrom(...STATUSES),
    author: few,
    date: few,
    modified: few,
    slug,
    title: text,
    parent: fc.nat({ max: POSTS }),
    menuOrder: few,
    hasPassword: fc.boolean(),
    sticky: fc.boolean(),
    format: fc.constantFrom("standard", "aside", "quote"),
    terms: fc.record({ category: termIds, post_tag: termIds }, { requiredKeys: [] }),
    mimeType: fc.constantFrom(...MIME_TYPES),
  })
  .map(post);

const aTerm: fc.Arbitrary<Term> = fc
  .record({
    id: fc.constantFrom(...TERM_IDS),
    taxonomy: fc.constantFrom("category", "category", "post_tag"),
    parent: fc.constantFrom(0, ...TERM_IDS),
  })
  .map(term);

type Change =
  | { readonly put: StoredColumns }
  | { readonly putTerm: Term }
  | { readonly remove: `post/${number}` | `term/${number}` };

const aChange: fc.Arbitrary<Change> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ put: aPost }) },
  { weight: 2, arbitrary: fc.record({ putTerm: aTerm }) },
  fc.record({ remove: fc.constantFrom(...TERM_IDS).map((id) => `term/${id}` as const) }),
  fc.record({ remove: fc.integer({ min: 1, max: POSTS }).map((id) => `post/${id}` as const) }),
);

const sight = fc.oneof({ weight: 2, arbitrary: fc.constant("all" as const) }, fc.record({ author: few }));
const aVisibility: fc.Arbitrary<Visibility> = fc.record(
  { publish: sight, draft: sight, private: sight, trash: sight, inherit: sight, future: sight },
  { requiredKeys: [] },
);

const aTermFilter: fc.Arbitrary<TermFilter> = fc.record({
  taxonomy: fc.constantFrom("category", "category", "post_tag"),
  terms: termIds,
  includeChildren: fc.boolean(),
  operator: fc.constantFrom("AND", "OR", "OR", "NOT"),
});

const rarely = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const aQuery: fc.Arbitrary<PostQuery> = fc
  .record({
    types: fc.constantFrom<Pick<PostQuery, "type" | "alsoTypes">>(
      { type: "post" },
      { type: "page" },
      { type: "attachment" },
      { type: "post", alsoTypes: ["page"] },
    ),
    visibility: fc.oneof({ weight: 2, arbitrary: fc.constant<Visibility>({ publish: "all" }) }, aVisibility),
    inherited: rarely(aVisibility),
    author: rarely(lists.author),
    authorExclude: rarely(lists.author),
    include: rarely(ids),
    exclude: rarely(ids),
    parent: rarely(ids),
    parentExclude: rarely(ids),
    menuOrder: rarely(few),
    slug: rarely(lists.slug),
    after: rarely(few),
    before: rarely(few),
    modifiedAfter: rarely(few),
    modifiedBefore: rarely(few),
    terms: rarely(fc.array(aTermFilter, { maxLength: 2 })),
    termRelation: rarely(fc.constantFrom("AND", "OR")),
    sticky: rarely(fc.boolean()),
    format: rarely(fc.uniqueArray(fc.constantFrom("standard", "aside", "quote"), { maxLength: 2 })),
    mimeType: rarely(fc.array(fc.constantFrom(...MIME_TYPES, "image/"), { maxLength: 2 })),
    search: rarely(
      fc.record({
        text: fc.constantFrom("apple", "plum"),
        columns: fc.uniqueArray(fc.constantFrom("title", "content", "excerpt"), {
          minLength: 1,
          maxLength: 3,
        }),
        isExact: fc.constant(false),
        seesProtected: fc.boolean(),
        searchedProtected: fc.constantFrom<Visibility>(
          {},
          { publish: "all" },
          { publish: { author: 1 }, draft: "all" },
        ),
      }),
    ),
    orderBy: fc.constantFrom<PostOrder>(
      "date",
      "date",
      "author",
      "id",
      "include",
      "modified",
      "parent",
      "relevance",
      "slug",
      "include_slugs",
      "title",
      "menu_order",
    ),
    order: fc.constantFrom("asc", "desc"),
    offset: fc.constantFrom(0, 0, 1, 3),
    limit: fc.constantFrom(1, 2, 5, 100),
  })
  // An absent filter is absent, not undefined.
  .map(
    ({ types, ...fields }) =>
      Object.fromEntries(
        Object.entries({ ...types, ...fields }).filter(([, value]) => value !== undefined),
      ) as unknown as PostQuery,
  );

function take(site: Site, change: Change): ContentChange {
  if ("put" in change) {
    const version = (site.posts.get(change.put.id)?.version ?? 0) + 1;
    const stored = { ...change.put, version };
    site.posts.set(stored.id, stored);
    return ofPost(stored);
  }
  if ("putTerm" in change) {
    site.terms.set(change.putTerm.id, change.putTerm);
    return ofTerm(change.putTerm);
  }
  const [kind, id] = change.remove.split("/");
  (kind === "post" ? site.posts : site.terms).delete(Number(id));
  return removal(change.remove);
}

const textsOf = (site: Site) => async (wanted: readonly number[]) => wanted.map((id) => site.texts.get(id));

const newSite = (): Site => ({
  posts: new Map(),
  terms: new Map(),
  texts: new Map(
    Array.from({ length: POSTS }, (_, place): [number, SearchText] => [
      place + 1,
      {
        content: WORDS[place % WORDS.length] ?? "",
        excerpt: WORDS[(place + 2) % WORDS.length] ?? "",
        file: place % 3 === 0 ? "2021/01/Apple.png" : "2021/01/none.png",
      },
    ]),
  ),
});

const answers = (index: SiteIndex, site: Site, queries: readonly PostQuery[]): Promise<PostPage[]> =>
  Promise.all(queries.map(async (asked) => index.find(asked, textsOf(site))));

describe("a list", () => {
  it("is what filter, sort and cut make of the same posts, after a load and after changes", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(aChange, { minLength: 10, maxLength: 50, size: "max" }),
        fc.array(fc.array(aChange, { minLength: 1, maxLength: 6 }), { maxLength: 5 }),
        fc.array(aQuery, { minLength: 1, maxLength: 12, size: "max" }),
        async (loaded, commits, queries) => {
          const site = newSite();
          for (const change of loaded) take(site, change);
          // A load has every record once, in any order: posts before their terms and parents too.
          const index = await indexOf(
            [...site.posts.values()].map(ofPost).concat([...site.terms.values()].map(ofTerm)),
          );
          const expected = () => queries.map((asked) => naive(site, asked));
          expect(await answers(index, site, queries)).toEqual(expected());
          for (const commit of commits) {
            const changes = new Map(
              commit.map((change) => take(site, change)).map((change) => [change.key, change]),
            );
            index.apply([...changes.values()]);
            expect(await answers(index, site, queries)).toEqual(expected());
          }
        },
      ),
      { numRuns: 400 },
    );
  });
});
