/** Look-ups in the resident columns, and what changes of one record mean for others. */

import { describe, expect, it } from "vitest";
import { builtInModel } from "../../../src/content/declared-types.js";
import { createSiteIndex, type SiteIndex } from "../../../src/content/query/site-index.js";
import type { PostQuery, TermFilter } from "../../../src/content/query/types.js";
import {
  DAY_MS,
  DEFAULT_CATEGORY,
  indexOf,
  ofPost,
  ofTerm,
  post,
  query,
  removal,
  term,
} from "../../support/query-site.js";

const noTexts = async () => [];
const idsOf = async (index: SiteIndex, fields: Partial<PostQuery> = {}): Promise<readonly number[]> =>
  (await index.find(query(fields), noTexts)).ids;
const inCategory = (id: number): Partial<PostQuery> => ({
  terms: [{ taxonomy: "category", terms: [id], includeChildren: false, operator: "OR" }],
});

describe("records", () => {
  it("are found by id with their version, frozen, until they are removed", async () => {
    const index = await indexOf([ofPost(post({ id: 4, version: 3 })), ofTerm(term({ id: 2, version: 5 }))]);
    index.apply([{ key: "site/1", version: 1, columns: '{"a":1}' }]);
    expect(index.post(4)).toEqual(post({ id: 4, version: 3 }));
    expect(Object.isFrozen(index.post(4))).toBe(true);
    expect(index.term(2)).toEqual(term({ id: 2, version: 5 }));
    expect(index.record("site/1")).toBe('{"a":1}');
    expect(["post/4", "term/2", "site/1", "post/9", "x"].map(index.version)).toEqual([3, 5, 1, 0, 0]);
    index.apply([removal("post/4"), removal("term/2"), removal("site/1"), removal("post/77")]);
    expect([index.post(4), index.term(2), index.record("site/1")]).toEqual([undefined, undefined, undefined]);
    expect(["post/4", "term/2", "site/1"].map(index.version)).toEqual([0, 0, 0]);
    expect(await idsOf(index)).toEqual([]);
  });

  it("are replaced by a load, and answered as before until it is complete", async () => {
    const index = await indexOf([ofPost(post({ id: 1 }))]);
    let goOn = (): void => {};
    const pause = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    async function* batches() {
      yield [ofPost(post({ id: 2 }))];
      await pause;
      yield [ofPost(post({ id: 3 }))];
    }
    const loading = index.load(batches());
    await Promise.resolve();
    expect(await idsOf(index)).toEqual([1]);
    goOn();
    await loading;
    expect(await idsOf(index)).toEqual([3, 2]);
    expect(index.post(1)).toBeUndefined();
  });

  it("are found by parent, slug and target, and no longer once these change", async () => {
    const index = await indexOf([
      ofPost(post({ id: 3, parent: 9, slug: "a" })),
      ofPost(post({ id: 2, parent: 9, slug: "a", status: "trash" })),
      ofPost(post({ id: 5, parent: 9, type: "attachment", slug: "a" })),
      ofPost(post({ id: 6, type: "nav_menu_item", target: "post/3" })),
    ]);
    expect(index.childrenOf(9)).toEqual([2, 3, 5]);
    expect(index.childrenOf(9, "attachment")).toEqual([5]);
    expect(index.withSlug("post", "a")).toEqual([2, 3]);
    expect(index.targeting("post/3")).toEqual([6]);
    index.apply([ofPost(post({ id: 3, parent: 1, slug: "b" })), removal("post/6")]);
    expect(index.childrenOf(9)).toEqual([2, 5]);
    expect(index.withSlug("post", "a")).toEqual([2]);
    expect(index.targeting("post/3")).toEqual([]);
  });
});

describe("the order of a list that the caller gives", () => {
  const posts = () =>
    indexOf([
      ofPost(post({ id: 1, slug: "b" })),
      ofPost(post({ id: 2, slug: "a" })),
      ofPost(post({ id: 3, slug: "b" })),
      ofPost(post({ id: 4, slug: "c" })),
    ]);

  it("is kept for ids, the first place of each counting", async () => {
    const fields = { include: [3, 1, 9, 4, 3, 2], orderBy: "include" } as const;
    expect(await idsOf(await posts(), fields)).toEqual([3, 1, 4, 2]);
  });

  it("is kept for slugs, posts with the same one by their ids", async () => {
    const fields = { slug: ["c", "b", "x", "a", "c"], orderBy: "include_slugs" } as const;
    expect(await idsOf(await posts(), fields)).toEqual([4, 1, 3, 2]);
    expect(await idsOf(await posts(), { ...fields, include: [3, 2, 1, 4] })).toEqual([4, 1, 3, 2]);
  });
});

describe("a range of dates", () => {
  it.each([
    ["asc", "date", [3, 4]],
    ["desc", "date", [4, 3]],
    ["asc", "slug", [3, 4]],
  ] as const)("excludes both its ends: %s by %s", async (order, orderBy, ids) => {
    const index = await indexOf([1, 2, 3, 4, 5, 6, 7].map((id) => ofPost(post({ id }))));
    const range = { after: 2 * DAY_MS, before: 5 * DAY_MS, order, orderBy };
    expect(await idsOf(index, range)).toEqual(ids);
    expect(await idsOf(index, { ...range, after: 9 * DAY_MS })).toEqual([]);
  });
});

describe("terms", () => {
  it("are found by taxonomy, parent and slug", async () => {
    const index = await indexOf([
      ofTerm(term({ id: 3, parent: 2 })),
      ofTerm(term({ id: 2, slug: "b" })),
      ofTerm(term({ id: 5, taxonomy: "post_tag", slug: "b" })),
      ofTerm(term({ id: 4, parent: 3 })),
    ]);
    const ids = (terms: readonly { readonly id: number }[]) => terms.map(({ id }) => id);
    expect(ids(index.terms("category"))).toEqual([2, 3, 4]);
    expect(ids(index.termChildren("category", 2))).toEqual([3]);
    expect(ids(index.termsBySlug("category", "b"))).toEqual([2]);
    expect(ids(index.terms("post_tag"))).toEqual([5]);
    expect([...index.withDescendants("category", [2])]).toEqual([2, 3, 4]);
    index.apply([ofTerm(term({ id: 2, slug: "c", parent: 4 })), removal("term/5")]);
    expect(ids(index.termsBySlug("category", "b"))).toEqual([]);
    expect(ids(index.terms("post_tag"))).toEqual([]);
    expect([...index.withDescendants("category", [2])]).toEqual([2, 3, 4]);
  });

  it("count published posts", async () => {
    const terms = { category: [2], post_tag: [5] };
    const index = await indexOf([
      ofTerm(term({ id: 2 })),
      ofTerm(term({ id: 5, taxonomy: "post_tag" })),
      ofPost(post({ id: 1, terms })),
      ofPost(post({ id: 2, terms, status: "draft" })),
      ofPost(post({ id: 3, terms: { category: [2] } })),
    ]);
    expect([
      index.countOf("category", 2),
      index.countOf("post_tag", 5),
      index.countOf("category", 5),
    ]).toEqual([2, 1, 0]);
    index.apply([ofPost(post({ id: 2, version: 2, terms })), removal("post/1")]);
    expect(index.countOf("category", 2)).toBe(2);
    index.apply([removal("term/2")]);
    expect(index.countOf("category", 2)).toBe(0);
  });

  it("that are deleted leave posts of no other category to the default one, until they come back", async () => {
    const index = await indexOf([
      ofTerm(term({ id: DEFAULT_CATEGORY })),
      ofTerm(term({ id: 2 })),
      ofTerm(term({ id: 3 })),
      ofPost(post({ id: 1, terms: { category: [2] } })),
      ofPost(post({ id: 2, terms: { category: [2, 3] } })),
      ofPost(post({ id: 3, terms: { category: [] } })),
      ofPost(post({ id: 4, terms: { category: [DEFAULT_CATEGORY] } })),
    ]);
    const terms = (id: number) => index.termsOf(index.post(id) ?? post({ id }), "category");
    expect(await idsOf(index, inCategory(DEFAULT_CATEGORY))).toEqual([4]);
    index.apply([removal("term/2")]);
    expect(await idsOf(index, inCategory(DEFAULT_CATEGORY))).toEqual([4, 1]);
    expect(await idsOf(index, inCategory(2))).toEqual([]);
    expect(index.countOf("category", DEFAULT_CATEGORY)).toBe(2);
    expect([1, 2, 3, 4].map(terms)).toEqual([[DEFAULT_CATEGORY], [3], [], [DEFAULT_CATEGORY]]);
    index.apply([ofTerm(term({ id: 2, taxonomy: "post_tag" }))]);
    expect(await idsOf(index, inCategory(DEFAULT_CATEGORY))).toEqual([4, 1]);
    index.apply([ofTerm(term({ id: 2 }))]);
    expect(await idsOf(index, inCategory(DEFAULT_CATEGORY))).toEqual([4]);
    expect(await idsOf(index, inCategory(2))).toEqual([2, 1]);
    index.apply([removal("term/3"), removal("term/2"), ofPost(post({ id: 1, version: 2 }))]);
    expect(await idsOf(index, inCategory(DEFAULT_CATEGORY))).toEqual([4, 2]);
  });

  describe("whose deletion left posts to the default category", () => {
    const category = (id: number, operator: TermFilter["operator"] = "OR"): TermFilter => ({
      taxonomy: "category",
      terms: [id],
      includeChildren: false,
      operator,
    });
    const tag: TermFilter = { ...category(5), taxonomy: "post_tag" };
    const site = () =>
      indexOf([
        ofTerm(term({ id: DEFAULT_CATEGORY })),
        ofTerm(term({ id: 2 })),
        ofTerm(term({ id: 5, taxonomy: "post_tag" })),
        ofPost(post({ id: 1, slug: "left", terms: { category: [99], post_tag: [5] } })),
        ofPost(post({ id: 2, slug: "other", terms: { category: [2], post_tag: [5] } })),
        ofPost(post({ id: 3, slug: "default", terms: { category: [DEFAULT_CATEGORY] } })),
        ofPost(post({ id: 4, slug: "bare", terms: { category: [] } })),
      ]);
    const slug = ["left", "other", "default", "bare"];

    it.each<[string, Partial<PostQuery>, readonly number[]]>([
      ["in the default category", { terms: [category(1)] }, [3, 1]],
      ["in it, found by their slugs", { slug, terms: [category(1)] }, [3, 1]],
      ["in every term of a list of one", { slug, terms: [category(1, "AND")] }, [3, 1]],
      ["in it and in a tag", { slug, terms: [category(1), tag] }, [1]],
      ["in it or in a tag", { terms: [category(1), tag], termRelation: "OR" }, [3, 2, 1]],
      ["not in it", { terms: [category(1, "NOT")] }, [4, 2]],
      ["in a category of their own no longer", { slug, terms: [category(99)] }, []],
    ])("lists them %s", async (_, fields, ids) => {
      expect(await idsOf(await site(), fields)).toEqual(ids);
    });

    it.each([{ type: "page" }, { type: "page", slug: ["a"] }] as const)(
      "lists no page in the default category: %o",
      async (fields) => {
        const index = await indexOf([
          ofTerm(term({ id: DEFAULT_CATEGORY })),
          ofPost(post({ id: 1, type: "page", slug: "a" })),
          ofPost(post({ id: 2, type: "page", slug: "a", terms: { category: [99] } })),
        ]);
        expect(await idsOf(index, { ...fields, terms: [category(DEFAULT_CATEGORY)] })).toEqual([]);
        expect(index.countOf("category", DEFAULT_CATEGORY)).toBe(0);
      },
    );

    it.each([undefined, slug])("lists them in no tag, whatever its id (slugs: %j)", async (named) => {
      const index = await indexOf([
        ofTerm(term({ id: DEFAULT_CATEGORY, taxonomy: "post_tag" })),
        ofPost(post({ id: 1, slug: "left", terms: { category: [99] } })),
      ]);
      const terms = [{ ...tag, terms: [DEFAULT_CATEGORY] }];
      expect(await idsOf(index, named ? { slug: named, terms } : { terms })).toEqual([]);
      expect(
        await idsOf(index, { slug, terms: [{ ...tag, terms: [DEFAULT_CATEGORY], operator: "AND" }] }),
      ).toEqual([]);
    });
  });

  it("of a list give each of their posts once", async () => {
    const index = await indexOf([
      ofTerm(term({ id: 2 })),
      ofTerm(term({ id: 3 })),
      ofPost(post({ id: 1, terms: { category: [2] } })),
      ofPost(post({ id: 2, terms: { category: [3] } })),
      ofPost(post({ id: 3, terms: { category: [2, 3] } })),
      ofPost(post({ id: 4, terms: { category: [3, 99] } })),
    ]);
    const terms = [{ taxonomy: "category", terms: [2, 3], includeChildren: false, operator: "OR" }] as const;
    const { ids, total } = await index.find(query({ terms }), noTexts);
    expect([ids, total]).toEqual([[4, 3, 2, 1], 4]);
  });

  it.each<Partial<PostQuery>>([inCategory(2), { parent: [9] }, { author: [4, 5] }, {}])(
    "show an author only their own drafts, whatever index leads to them: %j",
    async (fields) => {
      const draft = { status: "draft", parent: 9, terms: { category: [2] } } as const;
      const index = await indexOf([
        ofTerm(term({ id: 2 })),
        ofPost(post({ id: 1, author: 4, ...draft })),
        ofPost(post({ id: 2, author: 5, ...draft })),
      ]);
      expect(await idsOf(index, { ...fields, visibility: { draft: { author: 4 } } })).toEqual([1]);
    },
  );

  it("that are deleted with many posts in them, too", async () => {
    const many = Array.from({ length: 100 }, (_, place) =>
      ofPost(post({ id: place + 1, terms: { category: [2] } })),
    );
    const index = await indexOf([ofTerm(term({ id: DEFAULT_CATEGORY })), ofTerm(term({ id: 2 })), ...many]);
    index.apply([removal("term/2")]);
    expect(index.countOf("category", DEFAULT_CATEGORY)).toBe(100);
    expect(await idsOf(index, { ...inCategory(DEFAULT_CATEGORY), limit: 2, offset: 50 })).toEqual([50, 49]);
    expect(index.countOf("category", 2)).toBe(0);
  });
});

describe("media that inherit their status", () => {
  const media = (id: number, parent: number, author = 8) =>
    ofPost(post({ id, type: "attachment", status: "inherit", parent, author }));
  const anonymous = { type: "attachment", visibility: {}, inherited: { publish: "all" } } as const;

  it("are seen while the post they belong to is", async () => {
    const index = await indexOf([
      media(5, 2),
      media(6, 0),
      media(7, 99),
      ofPost(post({ id: 2, status: "draft" })),
    ]);
    expect(await idsOf(index, anonymous)).toEqual([7, 6]);
    index.apply([ofPost(post({ id: 2, version: 2 }))]);
    expect(await idsOf(index, anonymous)).toEqual([7, 6, 5]);
    index.apply([ofPost(post({ id: 2, version: 3, status: "trash" }))]);
    expect(await idsOf(index, anonymous)).toEqual([7, 6]);
    index.apply([removal("post/2")]);
    expect(await idsOf(index, anonymous)).toEqual([7, 6, 5]);
    index.apply([ofPost(post({ id: 99, status: "private" }))]);
    expect(await idsOf(index, anonymous)).toEqual([6, 5]);
  });

  it("are seen by their own author and by that of the post they belong to", async () => {
    const index = await indexOf([media(5, 2), ofPost(post({ id: 2, status: "draft", author: 4 }))]);
    const as = (author: number) =>
      idsOf(index, {
        type: "attachment",
        visibility: { inherit: { author } },
        inherited: { draft: { author } },
      });
    expect([await as(8), await as(4), await as(3)]).toEqual([[5], [5], []]);
    index.apply([ofPost(post({ id: 2, version: 2, status: "draft", author: 3 }))]);
    expect([await as(8), await as(4), await as(3)]).toEqual([[5], [], [5]]);
  });

  it("are all seen by whoever sees every one", async () => {
    const index = await indexOf([media(5, 2), media(6, 6), ofPost(post({ id: 2, status: "trash" }))]);
    expect(await idsOf(index, { type: "attachment", visibility: { inherit: "all" } })).toEqual([6, 5]);
    expect(await idsOf(index, anonymous)).toEqual([]);
  });
});

describe("scheduled posts", () => {
  it("are due at their time, earliest first", async () => {
    const future = (id: number, day: number | null) =>
      post({ id, status: "future", dateGmt: day === null ? null : day * DAY_MS });
    const index = await indexOf(
      [future(1, 30), future(2, 10), future(3, 20), future(4, null), post({ id: 5 })].map(ofPost),
    );
    expect(index.nextDue()).toBe(10 * DAY_MS);
    expect(index.due(10 * DAY_MS - 1)).toEqual([]);
    expect(index.due(20 * DAY_MS)).toEqual([2, 3]);
    index.apply([ofPost(post({ id: 2, version: 2 })), ofPost(future(1, 15))]);
    expect(index.nextDue()).toBe(15 * DAY_MS);
    expect(index.due(1_000 * DAY_MS)).toEqual([1, 3]);
    index.apply([removal("post/1"), removal("post/3")]);
    expect(index.nextDue()).toBeUndefined();
    expect(createSiteIndex({ model: builtInModel }).nextDue()).toBeUndefined();
  });
});

describe("sticky posts", () => {
  const site = () =>
    indexOf([
      ofPost(post({ id: 1, sticky: true })),
      ofPost(post({ id: 2 })),
      ofPost(post({ id: 3, sticky: true })),
      ofPost(post({ id: 4, sticky: true, status: "draft" })),
      ofPost(post({ id: 5 })),
      ofPost(post({ id: 6 })),
    ]);

  it("come first on a page, which grows by those of other pages; totals stay", async () => {
    const index = await site();
    const page = (fields: Partial<PostQuery>) =>
      index.find(query({ stickyFirst: true, limit: 2, ...fields }), noTexts);
    expect(await page({})).toEqual({ ids: [3, 1, 6, 5], total: 5 });
    expect(await page({ limit: 4 })).toEqual({ ids: [3, 1, 6, 5, 2], total: 5 });
    expect(await page({ offset: 3 })).toEqual({ ids: [1, 3, 2], total: 5 });
    expect(await page({ stickyFirst: false })).toEqual({ ids: [6, 5], total: 5 });
    const visibility = { publish: "all", draft: "all" } as const;
    expect(await page({ visibility })).toEqual({ ids: [3, 1, 6, 5], total: 6 });
    expect(await page({ visibility, limit: 3 })).toEqual({ ids: [4, 3, 1, 6, 5], total: 6 });
  });

  it("come first whatever filters, except excluded ones", async () => {
    const index = await site();
    const page = (fields: Partial<PostQuery>) => idsOf(index, { stickyFirst: true, ...fields });
    expect(await page({ exclude: [3] })).toEqual([1, 6, 5, 2]);
    expect(await page({ after: DAY_MS })).toEqual([3, 1, 6, 5, 2]);
    expect(await page({ visibility: { draft: "all" } })).toEqual([4, 3, 1]);
  });
});
