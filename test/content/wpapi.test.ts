import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WPAPI, { type Collections, type WPRequest } from "wpapi";
import { nodeAdapter } from "../../adapters/node.js";
import type { RunningHost } from "../contracts/adapter.js";
import { contentSite, idOf, login, type Role } from "../support/content-site.js";
import { listen } from "../support/hosts.js";

/** A website whose every page says where its interface is. */
async function startWebsite(namespace: string): Promise<RunningHost> {
  const serve = nodeAdapter(contentSite({ namespace }), { prefix: "/wp-json" });
  return listen(
    createServer((request, response) => {
      serve(request, response, () => {
        response.setHeader("Link", `<http://${request.headers.host}/wp-json/>; rel="https://api.w.org/"`);
        response.end("<h1>A page</h1>");
      });
    }),
  );
}

describe.each(["core", "wp"])("the client wpapi on a site with the namespace %s", (namespace) => {
  let website: RunningHost;
  /** Of an anonymous visitor. */
  let visitor: Collections;
  beforeAll(async () => {
    website = await startWebsite(namespace);
    visitor = (await WPAPI.discover(website.origin)).namespace(`${namespace}/v2`);
  });
  afterAll(() => website.close());

  /** The routes as the client builds them from the index, with somebody's credentials. */
  async function as(role: Role): Promise<Collections> {
    return (await WPAPI.discover(website.origin)).auth(login(role)).namespace(`${namespace}/v2`);
  }
  const of = (collections: Collections, name: string): WPRequest => {
    const make = collections[name];
    if (make === undefined) throw new Error(`the index has no ${name}`);
    return make.call(collections);
  };
  const slugs = async (request: WPRequest): Promise<string[]> =>
    ((await request.get()) as { slug: string }[]).map(({ slug }) => slug);

  it("discovers it through the Link header of a page, and finds its collections in the index", () => {
    for (const name of ["posts", "pages", "menu-items", "blocks", "categories", "tags", "users"]) {
      expect(visitor[name], name).toBeTypeOf("function");
    }
  });

  it("lists with filters, totals and pages", async () => {
    const editor = await as("editor");
    const news = await of(editor, "categories").create({ name: "News" });
    const sea = await of(editor, "tags").create({ name: "Sea" });
    for (const [index, author] of (["editor", "author", "author", "editor", "author"] as const).entries()) {
      await of(editor, "posts").create({
        title: `Number ${index}`,
        slug: `number-${index}`,
        content: index === 3 ? "About a lighthouse" : "About nothing",
        status: "publish",
        author: idOf(author),
        date_gmt: `2026-01-0${index + 1}T12:00:00`,
        categories: index < 2 ? [news.id] : [],
        tags: index % 2 === 0 ? [sea.id] : [],
      });
    }
    const posts = (): WPRequest => of(visitor, "posts");

    const first = await posts().perPage(2);
    expect(first._paging).toMatchObject({ total: 5, totalPages: 3 });
    expect(first._paging.prev).toBeUndefined();
    const found: string[] = [];
    for (let page = first; page !== undefined; page = await page._paging.next?.get()) {
      found.push(...page.map(({ slug }: { slug: string }) => slug));
    }
    expect(found).toEqual(["number-4", "number-3", "number-2", "number-1", "number-0"]);
    expect(await posts().perPage(2).page(3).headers()).toMatchObject({
      "x-wp-total": "5",
      "x-wp-totalpages": "3",
    });

    expect(await slugs(posts().categories(news.id))).toEqual(["number-1", "number-0"]);
    expect(await slugs(posts().tags(sea.id))).toEqual(["number-4", "number-2", "number-0"]);
    expect(await slugs(posts().author(idOf("editor")))).toEqual(["number-3", "number-0"]);
    expect(await slugs(posts().slug("number-2"))).toEqual(["number-2"]);
    expect(await slugs(posts().search("lighthouse"))).toEqual(["number-3"]);
    expect(await slugs(posts().after("2026-01-01T12:00:00Z").before("2026-01-04T12:00:00Z"))).toEqual([
      "number-2",
      "number-1",
    ]);
    expect(
      await slugs(posts().categories(news.id).tags(sea.id).param("order", "asc").param("orderby", "title")),
    ).toEqual(["number-0"]);
  });

  it("embeds author and terms", async () => {
    const editor = await as("editor");
    const { id: term } = await of(editor, "categories").create({ name: "Embedded" });
    const { id } = await of(editor, "posts").create({ title: "X", status: "publish", categories: [term] });
    const plain = await of(visitor, "posts").id(id);
    expect(plain).not.toHaveProperty("_embedded");
    const { _embedded: embedded } = await of(visitor, "posts").id(id).embed();
    expect(embedded.author).toMatchObject([{ id: idOf("editor"), name: "The editor" }]);
    expect(embedded["wp:term"].flat()).toMatchObject([{ id: term, name: "Embedded" }]);
  });

  it("creates, updates, trashes and deletes", async () => {
    const editor = await as("editor");
    const created = await of(editor, "posts").create({ title: "A draft", content: "First" });
    expect(created).toMatchObject({ status: "draft", title: { raw: "A draft" }, content: { raw: "First" } });
    await expect(of(visitor, "posts").id(created.id).get()).rejects.toMatchObject({
      code: "rest_forbidden",
      data: { status: 401 },
    });

    const updated = await of(editor, "posts")
      .id(created.id)
      .update({ status: "publish", slug: "not-a-draft" });
    expect(updated).toMatchObject({ id: created.id, status: "publish", slug: "not-a-draft" });
    expect(await of(visitor, "posts").id(created.id)).toMatchObject({ title: { rendered: "A draft" } });

    expect(await of(editor, "posts").id(created.id).delete()).toMatchObject({ status: "trash" });
    expect(await slugs(of(visitor, "posts").slug("not-a-draft"))).toEqual([]);
    expect(await of(editor, "posts").id(created.id).delete({ force: true })).toMatchObject({
      deleted: true,
      previous: { id: created.id },
    });
    await expect(of(editor, "posts").id(created.id).get()).rejects.toMatchObject({
      code: "rest_post_invalid_id",
    });
  });

  it("tells refusals as errors of the interface", async () => {
    await expect(of(visitor, "posts").create({ title: "X" })).rejects.toMatchObject({
      code: "rest_cannot_create",
      data: { status: 401 },
    });
    const subscriber = await as("subscriber");
    await expect(of(subscriber, "posts").create({ title: "X" })).rejects.toMatchObject({
      code: "rest_cannot_create",
      data: { status: 403 },
    });
    await expect(of(visitor, "posts").perPage(101).get()).rejects.toMatchObject({
      code: "rest_invalid_param",
      data: { params: { per_page: expect.any(String) } },
    });
  });
});

describe("the client wpapi with its built-in routes of WordPress, on a site with the namespace wp", () => {
  it("works without discovery", async () => {
    const website = await startWebsite("wp");
    const site = new WPAPI({ endpoint: `${website.origin}/wp-json`, ...login("administrator") });
    const { id } = await site.posts().create({ title: "Hello", status: "publish" });
    const posts = await new WPAPI({ endpoint: `${website.origin}/wp-json` }).posts();
    expect([...posts]).toMatchObject([{ id, title: { rendered: "Hello" } }]);
    await website.close();
  });
});
