/** `/search` over a real socket: what it finds, in which order, and what it keeps to itself. */

import { describe, expect, it } from "vitest";
import { createFormatSearch } from "../../../src/content/search/format-search.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { CALLERS, serveContent } from "../../support/content-socket.js";

const AT = "http://localhost";

/** A site with published, private, protected and unpublished content, all about apples. */
async function orchard() {
  const site = contentSite();
  const inside = callsOf(site);
  const create = async (path: string, body: { readonly [name: string]: string }): Promise<number> =>
    (await inside(`POST ${path}`, { as: "administrator", body })).body.id;
  const ids = {
    old: await create("/posts", {
      title: "Old trees",
      content: "An apple a day",
      status: "publish",
      date: "2024-01-01T00:00:00",
    }),
    apples: await create("/posts", {
      title: "Apple “pie”",
      status: "publish",
      date: "2023-01-01T00:00:00",
      format: "aside",
    }),
    page: await create("/pages", {
      title: "Apple & pear",
      status: "publish",
      date: "2022-01-01T00:00:00",
    }),
    protected: await create("/posts", {
      title: "Guarded",
      content: "apple juice",
      password: "core",
      status: "publish",
      date: "2021-01-01T00:00:00",
    }),
    private: await create("/posts", { title: "Apple secret", status: "private", format: "quote" }),
    draft: await create("/posts", { title: "Apple draft", status: "draft", format: "video" }),
    pattern: await create("/blocks", { title: "Apple pattern", status: "publish" }),
    category: await create("/categories", { name: "Apples" }),
    tag: await create("/tags", { name: "Green apples" }),
    menu: await create("/menus", { name: "Apple menu" }),
    group: await create("/wp_pattern_category", { name: "Apple patterns" }),
  };
  return { ids, ...(await serveContent(site)) };
}

const idsOf = ({ body }: { readonly body: readonly { readonly id: number }[] }) => body.map(({ id }) => id);

describe("a search for posts", () => {
  it("finds published posts and pages as one list: titles first, then the newest", async () => {
    const { call, ids } = await orchard();
    const answer = await call("GET /search?search=apple");
    expect(idsOf(answer)).toEqual([ids.apples, ids.page, ids.old]);
    expect(answer.headers).toMatchObject({ "x-wp-total": "3", "x-wp-totalpages": "1" });
    expect(answer.body[1]).toEqual({
      id: ids.page,
      title: "Apple &#038; pear",
      url: `${AT}/apple-pear/`,
      type: "post",
      subtype: "page",
      _links: {
        self: [{ embeddable: true, href: expect.stringMatching(new RegExp(`/core/v2/pages/${ids.page}$`)) }],
        about: [{ href: expect.stringMatching(/\/core\/v2\/types\/page$/) }],
        collection: [{ href: expect.stringMatching(/\/core\/v2\/search$/) }],
      },
    });
  });

  it("lists everything from the newest on without a text, and `0` is no text", async () => {
    const { call, ids } = await orchard();
    const all = [ids.old, ids.apples, ids.page, ids.protected];
    expect(idsOf(await call("GET /search"))).toEqual(all);
    expect(idsOf(await call("GET /search?search=0"))).toEqual(all);
    expect(idsOf(await call("GET /search?search=%20%20"))).toEqual(all);
  });

  it("shows every caller public things only, and texts behind a password to their editors", async () => {
    const { call, ids } = await orchard();
    for (const as of CALLERS) {
      const found = idsOf(await call("GET /search?search=apple&per_page=100", { as }));
      const isEditor = as === "administrator" || as === "editor";
      const expected = [ids.apples, ids.page, ids.old, ...(isEditor ? [ids.protected] : [])];
      expect(found, as).toEqual(expected);
      const titled = idsOf(await call("GET /search?search=guarded", { as }));
      expect(titled, as).toEqual(as === undefined ? [] : [ids.protected]);
      const { body } = await call("GET /search?per_page=100", { as });
      expect(JSON.stringify(body), as).not.toMatch(/secret|draft|juice|pattern/);
    }
  });

  it("narrows by subtype; `any` overrides others, and those of another type do not count", async () => {
    const { call, ids } = await orchard();
    const posts = [ids.apples, ids.old];
    const search = async (subtype: string) => idsOf(await call(`GET /search?search=apple&${subtype}`));
    expect(await search("subtype=page")).toEqual([ids.page]);
    expect(await search("subtype=post,category")).toEqual(posts);
    expect(await search("subtype[]=post&subtype[]=page")).toEqual([ids.apples, ids.page, ids.old]);
    expect(await search("subtype=page,any")).toEqual([ids.apples, ids.page, ids.old]);
    expect(await search("subtype=category")).toEqual(posts);
  });

  it("takes include before exclude", async () => {
    const { call, ids } = await orchard();
    expect(idsOf(await call(`GET /search?search=apple&exclude=${ids.page}`))).toEqual([ids.apples, ids.old]);
    const both = `include=${ids.old},${ids.private},${ids.pattern}&exclude=${ids.old}`;
    expect(idsOf(await call(`GET /search?${both}`))).toEqual([ids.old]);
  });

  it("has pages with links, and refuses one after the last", async () => {
    const { call, ids, origin } = await orchard();
    const second = await call("GET /search?search=apple&per_page=1&page=2");
    expect(idsOf(second)).toEqual([ids.page]);
    expect(second.headers).toMatchObject({ "x-wp-total": "3", "x-wp-totalpages": "3" });
    const at = `${origin}/core/v2/search?search=apple&per_page=1`;
    expect(second.headers["link"]).toContain(`<${at}&page=1>; rel="prev", <${at}&page=3>; rel="next"`);
    expect(await call("GET /search?search=apple&page=2")).toMatchObject({
      status: 400,
      body: { code: "rest_search_invalid_page_number" },
    });
    expect(await call("GET /search?search=nothing&page=2")).toMatchObject({ status: 200, body: [] });
    const head = await call("HEAD /search?search=apple");
    expect([head.body, head.headers["x-wp-total"]]).toEqual([null, "3"]);
  });

  it("embeds the records themselves, and selects fields", async () => {
    const { call, ids } = await orchard();
    const [first] = (await call("GET /search?search=apple&_embed=self")).body;
    expect(first._embedded.self).toMatchObject([{ id: ids.apples, type: "post", title: {} }]);
    expect((await call("GET /search?search=apple&_fields=id,url&per_page=1")).body).toEqual([
      { id: ids.apples, url: `${AT}/apple-pie/` },
    ]);
  });
});

describe("a search for terms", () => {
  it("finds categories and tags by name or slug, in the order of their names", async () => {
    const { call, ids } = await orchard();
    for (const as of CALLERS) {
      const answer = await call("GET /search?type=term&search=apple", { as });
      expect(idsOf(answer), as).toEqual([ids.category, ids.tag]);
    }
    const { body } = await call("GET /search?type=term&search=green");
    expect(body).toEqual([
      {
        id: ids.tag,
        title: "Green apples",
        url: `${AT}/tag/green-apples/`,
        type: "post_tag",
        _links: {
          self: [{ embeddable: true, href: expect.stringMatching(new RegExp(`/core/v2/tags/${ids.tag}$`)) }],
          about: [{ href: expect.stringMatching(/\/core\/v2\/taxonomies\/post_tag$/) }],
          collection: [{ href: expect.stringMatching(/\/core\/v2\/search$/) }],
        },
      },
    ]);
  });

  it("never finds menus or pattern categories, whatever the subtype", async () => {
    const { call, ids } = await orchard();
    const search = async (query: string) => idsOf(await call(`GET /search?type=term&search=apple&${query}`));
    expect(await search("subtype=post_tag")).toEqual([ids.tag]);
    expect(await search("subtype=post")).toEqual([ids.category, ids.tag]);
    expect(await search(`include=${ids.menu},${ids.group},${ids.tag}&exclude=${ids.tag}`)).toEqual([ids.tag]);
    expect((await call("GET /search?type=term&subtype=nav_menu", { as: "administrator" })).status).toBe(400);
  });

  it("has pages", async () => {
    const { call, ids } = await orchard();
    const second = await call("GET /search?type=term&search=apple&per_page=1&page=2");
    expect(idsOf(second)).toEqual([ids.tag]);
    expect(second.headers).toMatchObject({ "x-wp-total": "2", "x-wp-totalpages": "2" });
  });
});

describe("a search for post formats", () => {
  it("finds those of published posts, until the last one is gone", async () => {
    const { call, ids } = await orchard();
    for (const as of CALLERS) {
      expect((await call("GET /search?type=post-format", { as })).body, as).toEqual([
        {
          id: "aside",
          title: "Aside",
          url: `${AT}/type/aside/`,
          type: "post-format",
          _links: { collection: [{ href: expect.stringMatching(/\/core\/v2\/search$/) }] },
        },
      ]);
    }
    expect((await call("GET /search?type=post-format&search=ASI")).body).toHaveLength(1);
    expect((await call("GET /search?type=post-format&search=quote")).body).toEqual([]);
    await call(`DELETE /posts/${ids.apples}`, { as: "administrator" });
    expect((await call("GET /search?type=post-format")).body).toEqual([]);
  });
});

describe("a search for post formats of a large site", () => {
  it("lets others take their turn between the formats, and looks for each once", async () => {
    let turn = 0;
    let next = setImmediate(function count() {
      turn += 1;
      next = setImmediate(count);
    });
    const turns: number[] = [];
    const find = async () => {
      turns.push(turn);
      return { ids: [], total: 1 };
    };
    const search = createFormatSearch({
      repository: { index: { find }, stamp: () => 0 } as never,
      site: { termLink: () => "" },
    });
    const query = { text: "", subtypes: [], include: [], exclude: [], offset: 0, limit: 10 } as never;
    const found = await Promise.all([search.find(query), search.find(query), search.find(query)]);
    clearImmediate(next);
    expect(found.map(({ total }) => total)).toEqual([9, 9, 9]);
    expect(new Set(turns).size).toBe(9);
    expect(turns).toHaveLength(9);
  });
});

describe("the arguments of a search", () => {
  it("are checked like those of any list", async () => {
    const { call } = await orchard();
    for (const [query, name] of [
      ["type=user", "type"],
      ["subtype=attachment", "subtype"],
      ["context=edit", "context"],
      ["per_page=101", "per_page"],
      ["page=0", "page"],
      [`search=${"a".repeat(1_601)}`, "search"],
      ["include=x", "include"],
    ]) {
      const { status, body } = await call(`GET /search?${query}`);
      expect([status, body.code, Object.keys(body.data.params)]).toEqual([400, "rest_invalid_param", [name]]);
    }
    expect((await call("POST /search", { as: "administrator", body: {} })).status).toBe(404);
  });

  it("are described to clients", async () => {
    const { call } = await orchard();
    const { body } = await call("OPTIONS /search");
    const { args } = body.endpoints[0];
    expect(Object.keys(args)).toEqual("context page per_page search type subtype exclude include".split(" "));
    expect(args).toMatchObject({
      context: { enum: ["view", "embed"], default: "view" },
      type: { enum: ["post", "term", "post-format"], default: "post" },
      subtype: { items: { enum: ["post", "page", "category", "post_tag", "any"] }, default: "any" },
    });
    expect(body.schema.title).toBe("search-result");
    expect(Object.keys(body.schema.properties)).toEqual(["id", "title", "url", "type", "subtype"]);
  });
});

describe("the searches of a link dialog", () => {
  it("are answered together", async () => {
    const { call, ids } = await orchard();
    const answers = await Promise.all(
      [
        "type=post&subtype=post",
        "type=post&subtype=page",
        "type=term&subtype=category",
        "type=post-format",
      ].map((query) => call(`GET /search?search=apple&per_page=20&${query}`, { as: "author" })),
    );
    expect(answers.map(idsOf)).toEqual([[ids.apples, ids.old], [ids.page], [ids.category], []]);
    expect((await call("GET /media?search=apple&per_page=20", { as: "author" })).body).toEqual([]);
  });
});
