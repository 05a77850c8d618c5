/** How search texts are parsed, and which posts match them. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createSearchMatch,
  type PostSearch,
  parseSearch,
  type SearchText,
} from "../../../src/content/query/search.js";
import type { StoredColumns } from "../../../src/content/query/site-index.js";
import type { PostQuery } from "../../../src/content/query/types.js";
import { expectLinear } from "../../support/cpu-time.js";
import { indexOf, ofPost, post, query } from "../../support/query-site.js";

const termsOf = (text: string): string[] =>
  parseSearch(text).terms.map(({ text: term, isExcluded }) => (isExcluded ? `not ${term}` : term));

describe("a search text", () => {
  it.each([
    ["red apple", ["red", "apple"]],
    ["  red\tapple, pear+plum ", ["red", "apple", "pear", "plum"]],
    ['"red apple" pear', ["red apple", "pear"]],
    ['"red apple', ["red apple"]],
    ['" red "', [" red "]],
    ["apple -pear", ["apple", "not pear"]],
    ['apple -"sour pear"', ["apple", "sour pear"]],
    ["the apple of my eye a", ["apple", "my", "eye"]],
    ["Äpfel CAFÉ Straße", ["apfel", "cafe", "strasse"]],
    ["x 7 0 -", ["7"]],
    ["é X thé The \u00df", ["e", "the", "ss"]],
    ["the", ["the"]],
    ["", [""]],
    ["aa bb cc dd ee ff gg hh ii jj", ["aa bb cc dd ee ff gg hh ii jj"]],
    ["aa bb cc dd ee ff gg hh ii", ["aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii"]],
  ])("%j asks for %j", (text, terms) => {
    expect(termsOf(text)).toEqual(terms);
  });

  it("is read in linear time, whatever it holds", async () => {
    const alphabet = fc.constantFrom('"', " ", "-", "a", "bc", ",", "+", "\n", "'");
    fc.assert(
      fc.property(fc.array(alphabet, { maxLength: 60 }), (parts) => {
        expect(parseSearch(parts.join("")).terms.length).toBeLessThan(10);
      }),
    );
    for (const part of ['"', "- ", ' "', "'\" ", "a,"]) {
      await expectLinear(200_000, (size) => parseSearch(part.repeat(size)));
    }
  });
});

const search = (text: string, fields: Partial<PostSearch> = {}): PostSearch => ({
  text,
  columns: ["title", "content", "excerpt"],
  isExact: false,
  seesProtected: true,
  searchedProtected: {},
  ...fields,
});

describe("a post fits", () => {
  const fits = (
    asked: PostSearch,
    title: string,
    text: Partial<SearchText> = {},
    hasFiles = false,
  ): boolean => {
    const match = createSearchMatch(asked, { hasFiles, isRanked: false });
    const whole = { content: "", excerpt: "", ...text };
    const folded = title.toLowerCase();
    const byText = match.byText(folded, whole);
    // If the title decides alone, it decides as the whole text does.
    expect([undefined, byText]).toContain(match.byTitle(folded));
    return byText;
  };

  it("where every word is somewhere in it", () => {
    expect(fits(search("red apple"), "Red", { content: "an Apple" })).toBe(true);
    expect(fits(search("red apple"), "Red", { content: "a pear" })).toBe(false);
    expect(fits(search("apple"), "", { excerpt: "pineapples" })).toBe(true);
  });

  it("where a phrase stands as it is", () => {
    expect(fits(search('"red apple"'), "a red apple")).toBe(true);
    expect(fits(search('"red apple"'), "an apple, red")).toBe(false);
  });

  it("where nothing excluded is anywhere in it", () => {
    expect(fits(search("apple -pear"), "apple")).toBe(true);
    expect(fits(search("apple -pear"), "apple", { content: "and pears" })).toBe(false);
    expect(fits(search("apple -pear"), "apple pear")).toBe(false);
  });

  it("in the columns that are searched only, and in the file name of media whatever they are", () => {
    expect(fits(search("apple", { columns: ["content"] }), "apple")).toBe(false);
    expect(fits(search("apple", { columns: ["title"] }), "apple")).toBe(true);
    expect(fits(search("apple", { columns: ["content"] }), "", { file: "2021/apple.png" }, true)).toBe(true);
    expect(fits(search("apple", { columns: [] }), "", { excerpt: "apple" })).toBe(true);
  });

  it("where the first 250 characters of a long phrase stand in it", () => {
    const phrase = "red apples ".repeat(40);
    expect(fits(search(`"${phrase}"`), "", { content: phrase.slice(0, 250) })).toBe(true);
    expect(fits(search(`"${phrase}"`), "", { content: phrase.slice(0, 249) })).toBe(false);
    expect(fits(search(`"${phrase}"`, { isExact: true }), "", { content: phrase.slice(0, 250) })).toBe(false);
  });

  it("where a column is each word, for an exact search", () => {
    const exact = (text: string) => search(text, { isExact: true });
    expect(fits(exact("apple"), "Apple")).toBe(true);
    expect(fits(exact("apple"), "Apples")).toBe(false);
    expect(fits(exact("red apple"), "red apple")).toBe(false);
    expect(fits(exact('"red apple"'), "Red Apple")).toBe(true);
  });
});

describe("a searched list", () => {
  const find = async (
    posts: readonly StoredColumns[],
    asked: PostQuery,
    texts: Record<number, SearchText> = {},
  ) => {
    const asks: (readonly number[])[] = [];
    const index = await indexOf(posts.map(ofPost));
    const found = index.find(asked, async (ids) => {
      asks.push(ids);
      return ids.map((id) => texts[id]);
    });
    return { asks, isAtOnce: !(found instanceof Promise), page: await found };
  };

  it("stands in the order asked for; by relevance, the whole text in the title comes first, then all words, some, the excerpt, the content", async () => {
    const texts = {
      1: { content: "red apple", excerpt: "" },
      2: { content: "red apple", excerpt: "a red apple" },
      3: { content: "apple", excerpt: "" },
      4: { content: "", excerpt: "" },
      5: { content: "", excerpt: "" },
      6: { content: "red", excerpt: "apple" },
    };
    const titles = ["x", "x", "red", "apple, red", "red apple", "x"];
    const posts = titles.map((title, place) => post({ id: place + 1, title }));
    const asked = query({ search: search("red apple") });
    expect((await find(posts, asked, texts)).page).toEqual({ ids: [6, 5, 4, 3, 2, 1], total: 6 });
    const ranked = { ...asked, orderBy: "relevance" } as const;
    expect((await find(posts, ranked, texts)).page.ids).toEqual([5, 4, 3, 2, 1, 6]);
    const one = query({ search: search("apple"), orderBy: "relevance", order: "asc" });
    expect((await find(posts, one, texts)).page.ids).toEqual([4, 5, 1, 2, 3, 6]);
  });

  it("reads texts in batches, and only of posts that all other filters leave and the title does not settle", async () => {
    const posts = Array.from({ length: 1_205 }, (_, place) =>
      post({ id: place + 1, title: place < 3 ? "apple" : "x", author: place < 1_203 ? 1 : 2 }),
    );
    const texts = { 600: { content: "an apple", excerpt: "" } };
    const { asks, page } = await find(posts, query({ author: [1], search: search("apple") }), texts);
    expect(page).toEqual({ ids: [600, 3, 2, 1], total: 4 });
    expect(asks.map(({ length }) => length)).toEqual([500, 500, 200]);
    expect(asks.flat()).not.toContain(1);
  });

  it("lets other work run between posts with long texts", async () => {
    const posts = Array.from({ length: 8 }, (_, place) => post({ id: place + 1, title: "x" }));
    const long = { content: `${"x".repeat(300_000)} apple`, excerpt: "" };
    const texts = Object.fromEntries(posts.map(({ id }) => [id, long]));
    const searched = find(posts, query({ search: search("apple") }), texts);
    let turns = 0;
    let isDone = false;
    const count = (): void => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    expect((await searched).page.total).toBe(8);
    isDone = true;
    expect(turns).toBeGreaterThanOrEqual(7);
  });

  it("is answered at once where the titles tell all", async () => {
    const posts = [post({ id: 1, title: "Äpfel" }), post({ id: 2, title: "Birnen" })];
    const titles = await find(posts, query({ search: search("apfel", { columns: ["title"] }) }));
    expect(titles).toMatchObject({ isAtOnce: true, asks: [], page: { ids: [1], total: 1 } });
    expect((await find(posts, query())).isAtOnce).toBe(true);
  });

  it("holds no post with a password for those who may not see into it, and none that is gone meanwhile", async () => {
    const posts = [
      post({ id: 1, title: "apple", hasPassword: true }),
      post({ id: 2, title: "apple" }),
      post({ id: 3 }),
    ];
    const seen = (seesProtected: boolean) =>
      find(posts, query({ search: search("apple", { seesProtected }) }));
    expect((await seen(false)).page).toEqual({ ids: [2], total: 1 });
    expect((await seen(true)).page).toEqual({ ids: [2, 1], total: 2 });
  });

  it("with nothing but blanks to search for is the list without a search", async () => {
    const posts = [post({ id: 1, hasPassword: true })];
    expect((await find(posts, query({ search: search("  ", { seesProtected: false }) }))).page.total).toBe(1);
  });
});
