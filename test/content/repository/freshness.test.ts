import { describe, expect, it } from "vitest";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type Call, callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { countTurns } from "../../support/count-turns.js";
import { expectLinear } from "../../support/cpu-time.js";

const create = async (call: Call, path: string, body: object): Promise<number> => {
  const answer = await call(`POST ${path}`, { as: "administrator", body: body as never });
  expect(answer.status).toBe(201);
  return answer.body.id;
};

const update = (call: Call, path: string, body: object) =>
  call(`PUT ${path}`, { as: "administrator", body: body as never });

describe("an answer that is kept", () => {
  it("shows a menu item where the page that it points at has moved to", async () => {
    const call = callsOf(contentSite());
    const above = await create(call, "/pages", { title: "Top", status: "publish" });
    const page = await create(call, "/pages", { title: "Kid", status: "publish", parent: above });
    const item = await create(call, "/menu-items", { type: "post_type", object: "page", object_id: page });
    const urlOf = async () => (await call(`GET /menu-items/${item}`, { as: "editor" })).body.url;
    expect(await urlOf()).toBe("http://localhost/top/kid/");
    await update(call, `/pages/${above}`, { slug: "renamed" });
    expect(await urlOf()).toBe("http://localhost/renamed/kid/");
    expect((await call(`GET /pages/${page}`)).body.link).toBe(await urlOf());
  });

  it("shows a menu item where the category that it points at has moved to", async () => {
    const call = callsOf(contentSite());
    const above = await create(call, "/categories", { name: "One" });
    const below = await create(call, "/categories", { name: "Two", parent: above });
    const item = await create(call, "/menu-items", {
      type: "taxonomy",
      object: "category",
      object_id: below,
    });
    const urlOf = async () => (await call(`GET /menu-items/${item}`, { as: "editor" })).body.url;
    expect(await urlOf()).toBe((await call(`GET /categories/${below}`)).body.link);
    await update(call, `/categories/${above}`, { slug: "renamed" });
    expect(await urlOf()).toBe("http://localhost/category/renamed/two/");
  });

  it("names the classes of a post's terms as they are now, the default category's too", async () => {
    const call = callsOf(contentSite());
    const category = await create(call, "/categories", { name: "News" });
    const post = await create(call, "/posts", { title: "Post", status: "publish", categories: [category] });
    const classes = async (): Promise<readonly string[]> =>
      (await call(`GET /posts/${post}`)).body.class_list;
    expect(await classes()).toContain("category-news");
    await update(call, `/categories/${category}`, { slug: "latest" });
    expect(await classes()).toContain("category-latest");
    await call(`DELETE /categories/${category}`, { as: "administrator", query: { force: true } });
    expect(await classes()).toContain("category-uncategorized");
    await update(call, "/categories/1", { slug: "general" });
    expect(await classes()).toContain("category-general");
  });

  it("tells the offset of the site's zone after the clocks have changed", async () => {
    const clock = manualClock(Date.UTC(2026, 9, 24));
    const site = contentSite({
      clock,
      site: { url: "http://localhost", name: "", timezone: "Europe/Berlin" },
    });
    const offset = async () => {
      const answer = await site.handle({
        method: "GET",
        path: "/",
        query: "",
        headers: {},
        body: null,
        baseUrl: "http://localhost",
      });
      return JSON.parse(Buffer.from(answer?.body as Uint8Array).toString()).gmt_offset;
    };
    expect(await offset()).toBe("2");
    await clock.advance(2 * 86_400_000);
    expect(await offset()).toBe("1");
  });
});

describe("the limit of passwords", () => {
  const get = (site: ReturnType<typeof contentSite>, path: string, query: string) =>
    site.handle({ method: "GET", path, query, headers: {}, body: null, baseUrl: "http://localhost" });

  it("holds after somebody else has opened the post", async () => {
    const site = contentSite({ limits: { passwordsPerMinute: 3 } });
    const call = callsOf(site);
    const id = await create(call, "/posts", {
      title: "P",
      content: "hidden",
      status: "publish",
      password: "right",
    });
    const path = `/core/v2/posts/${id}`;
    expect((await get(site, path, "password=right"))?.status).toBe(200);
    const guesses = [];
    for (const guess of ["a", "b", "c", "d"])
      guesses.push((await get(site, path, `password=${guess}`))?.status);
    expect(guesses).toEqual([403, 403, 403, 429]);
    const late = await get(site, path, "password=right");
    expect(late?.status).toBe(429);
    const seconds = Number(late?.headers["retry-after"]);
    expect(seconds).toBeGreaterThan(0);
    expect(JSON.parse(Buffer.from(late?.body as Uint8Array).toString()).message).toContain(
      `wait ${seconds} s`,
    );
  });

  it("is not used up by right ones, neither for one post nor for lists", async () => {
    const site = contentSite({ limits: { passwordsPerMinute: 3 } });
    const call = callsOf(site);
    const id = await create(call, "/posts", {
      title: "P",
      content: "hidden",
      status: "publish",
      password: "right",
    });
    for (const path of [`/core/v2/posts/${id}`, "/core/v2/posts"]) {
      for (let time = 0; time < 6; time++)
        expect((await get(site, path, "password=right"))?.status).toBe(200);
    }
  });
});

describe("media", () => {
  it("are attached only to posts that their author may edit, and tell nobody the address of another", async () => {
    const call = callsOf(contentSite());
    const secret = await create(call, "/pages", { title: "Secret merger", status: "private" });
    const refused = await call("POST /media", { as: "author", query: { post: secret } });
    expect(refused.status).toBe(403);
  });
});

/** A site that counts how often it renders a content. */
function countRenderings() {
  let count = 0;
  const site = contentSite({
    render: (raw, { field }) => {
      if (field === "content") count += 1;
      return raw;
    },
  });
  return { call: callsOf(site), rendered: () => count };
}

describe("what costs time", () => {
  it("is not multiplied by naming a category with children many times", async () => {
    const call = callsOf(contentSite());
    const root = await create(call, "/categories", { name: "Root" });
    for (let at = 0; at < 60; at++) await create(call, "/categories", { name: `Below ${at}`, parent: root });
    await create(call, "/posts", { title: "P", status: "publish" });
    await expectLinear(20_000, (times) =>
      call("GET /posts", {
        query: { categories: { terms: Array(times).fill(root), include_children: true } },
      }),
    );
  });

  it("is not the rendering of a text for each length of its excerpt", async () => {
    const { call, rendered } = countRenderings();
    const id = await create(call, "/posts", { title: "P", content: "one two three four", status: "publish" });
    const before = rendered();
    for (const length of [1, 2, 3]) {
      const { body } = await call(`GET /posts/${id}`, { query: { excerpt_length: length } });
      expect(body.excerpt.rendered.startsWith("one two three".split(" ").slice(0, length).join(" "))).toBe(
        true,
      );
    }
    expect(rendered() - before).toBe(1);
  });

  it("is one rendering of a long text for all who ask for it at the same time", async () => {
    const { call, rendered } = countRenderings();
    const content = "word ".repeat(10_000);
    const id = await create(call, "/posts", { title: "P", content, status: "publish" });
    const before = rendered();
    const responses = await Promise.all(Array.from({ length: 10 }, () => call(`GET /posts/${id}`)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(rendered() - before).toBe(1);
  });
});

describe("a search", () => {
  /** Returns the turns that the event loop has during a search of this many posts. */
  const countTurnsOfSearch = async (posts: number): Promise<number> => {
    const call = callsOf(contentSite());
    const content = `needle${" hay".repeat(1_000)}`;
    for (let at = 0; at < posts; at++) {
      await create(call, "/posts", { title: `Post ${at}`, content, status: "publish" });
    }
    return countTurns(async () => {
      const { headers } = await call("GET /posts", { query: { search: "needle" } });
      expect(headers["X-WP-Total"]).toBe(String(posts));
    });
  };

  it("that has many texts to look into lets others go on meanwhile", async () => {
    const [few, many] = [await countTurnsOfSearch(20), await countTurnsOfSearch(600)];
    expect(many).toBeGreaterThan(few + 2);
  });
});

describe("a renderer of the host", () => {
  it("that throws leaves the text empty, and the answer whole", async () => {
    const site = contentSite({
      render: () => {
        throw new Error("the host's own mistake");
      },
    });
    const call = callsOf(site);
    const id = await create(call, "/posts", { title: "P", content: "text", status: "publish" });
    const { status, body } = await call(`GET /posts/${id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ title: { rendered: "" }, content: { rendered: "" } });
  });
});
