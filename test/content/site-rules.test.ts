/** Small rules of WordPress that clients meet across the types of records, each recorded once. */

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/schema/types.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { callsOf } from "../support/content-call.js";
import { seedsIn } from "../support/content-seeds.js";
import { contentSite, type Role } from "../support/content-site.js";

const open = (options: Parameters<typeof contentSite>[0] = {}) => {
  const site = contentSite(options);
  const call = callsOf(site);
  const write = async (request: string, body: JsonObject, as: Role = "administrator") =>
    (await call(request, { as, body })).body;
  return { site, call, write };
};

describe("the state of a post", () => {
  it("is no longer sticky once it is in the trash", async () => {
    const { call, write } = open();
    const { id } = await write("POST /posts", { title: "a", status: "publish", sticky: true });
    await call(`DELETE /posts/${id}`, { as: "administrator" });
    expect((await write(`PUT /posts/${id}`, { status: "publish" })).sticky).toBe(false);
  });

  it.each(["", "?force=true"])(
    "resets the settings of the front page when it is deleted%s",
    async (query) => {
      const { site, call, write } = open({
        settings: { writable: ["show_on_front", "page_on_front", "page_for_posts"] },
      });
      const front = await write("POST /pages", { title: "front", status: "publish" });
      const list = await write("POST /pages", { title: "list", status: "publish" });
      await write("POST /settings", {
        show_on_front: "page",
        page_on_front: front.id,
        page_for_posts: list.id,
      });
      const remove = (id: number) =>
        site.request({
          method: "DELETE",
          path: `/core/v2/pages/${id}`,
          as: 1,
          query: Object.fromEntries(new URLSearchParams(query)),
        });
      await remove(list.id);
      const settings = async () => (await call("GET /settings", { as: "administrator" })).body;
      expect(await settings()).toMatchObject({ show_on_front: "page", page_for_posts: 0 });
      await remove(front.id);
      expect(await settings()).toMatchObject({ show_on_front: "posts", page_on_front: 0 });
    },
  );

  it("has the default category after an update without one, and terms in the order of their names", async () => {
    const { write } = open();
    const post = await write("POST /posts", { title: "a", status: "publish" });
    const z = await write("POST /categories", { name: "Z" });
    const a = await write("POST /categories", { name: "A" });
    const sorted = await write(`PUT /posts/${post.id}`, { categories: [z.id, a.id] });
    expect(sorted.categories).toEqual([a.id, z.id]);
    expect((await write(`PUT /posts/${post.id}`, { categories: [] })).categories).toEqual([]);
    expect((await write(`PUT /posts/${post.id}`, { slug: "b" })).categories).toEqual(post.categories);
  });
});

describe("texts of users who may not write free HTML", () => {
  it.each<[Role, string]>([
    ["author", "a &amp;bogus; &amp; &copy; &#8212; &amp;#0; b"],
    ["administrator", "a &bogus; & &copy; &#8212; &#0; b"],
  ])("have the unknown entities of an %s in the form of who saves them", async (as, stored) => {
    const { write } = open();
    const text = "a &bogus; & &copy; &#8212; &#0; b";
    const post = await write("POST /posts", { title: text, content: text, excerpt: text }, as);
    expect([post.title.raw, post.content.raw, post.excerpt.raw]).toEqual([stored, stored, stored]);
    const kept = await write(`PUT /posts/${post.id}`, { slug: "b" });
    expect(kept.content.raw).toBe(stored);
  });

  it("are sanitised whole when such a user saves another field", async () => {
    const { write } = open();
    const text = "<script>1</script>&bogus;";
    const post = await write("POST /posts", { title: text, content: text, author: 3 });
    const saved = await write(`PUT /posts/${post.id}`, { slug: "b" }, "author");
    expect([saved.title.raw, saved.content.raw]).toEqual(["1&amp;bogus;", "1&amp;bogus;"]);
  });
});

describe("an address by the id of a file", () => {
  it("is that of a file below a draft, and embeds a published one", async () => {
    const storage = memoryStorage();
    const seeds = seedsIn(storage);
    const draft = await seeds.post("post", { status: "draft" });
    const below = await seeds.post("attachment", { parent: draft });
    const file = await seeds.post("attachment", { title: "A file" });
    const { site, call } = open({ storage });
    const { link } = (await call(`GET /media/${below}`, { as: "administrator" })).body;
    expect(link).toBe(`http://localhost/?attachment_id=${below}`);
    const query = { url: `http://localhost/?attachment_id=${file}` };
    const embed = await site.request({ method: "GET", path: "/oembed/1.0/embed", as: null, query });
    expect(embed).toMatchObject({ status: 200, body: { title: "A file" } });
  });
});
