import { describe, expect, it } from "vitest";
import type { ContentChanged } from "../../../src/content/records/record-changes.js";
import type { ContentResponse } from "../../../src/content/service.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { contentSite, idOf, type Role } from "../../support/content-site.js";

type Site = ReturnType<typeof contentSite>;
type Body = { readonly [name: string]: unknown };

const NOON = Date.UTC(2026, 10, 21, 12);
const HOUR_MS = 3_600_000;

const ask = (
  site: Site,
  as: Role | null,
  method: string,
  path: string,
  more: object = {},
): Promise<ContentResponse> =>
  site.request({ method, path: `/core/v2${path}`, as: as === null ? null : idOf(as), ...more });

async function create(
  site: Site,
  as: Role,
  body: Body,
  base = "/posts",
): Promise<{ readonly id: number } & Body> {
  const response = await ask(site, as, "POST", base, { body });
  expect(response.status).toBe(201);
  return response.body as never;
}

const bodyOf = (response: ContentResponse): Body => response.body as never;

describe("a scheduled post", () => {
  const scheduled = async () => {
    const clock = manualClock(NOON);
    const changes: ContentChanged[] = [];
    const site = contentSite({ clock, changed: (change) => changes.push(change) });
    const post = await create(site, "editor", {
      title: "Later",
      status: "publish",
      date: "2026-11-21T15:00:00",
    });
    return { clock, changes, site, post };
  };

  it("is hidden from the public until its time", async () => {
    const { clock, site, post } = await scheduled();
    expect(post["status"]).toBe("future");
    await clock.advance(3 * HOUR_MS - 1);
    expect((await ask(site, null, "GET", `/posts/${post.id}`)).status).toBe(401);
    expect((await ask(site, null, "GET", "/posts")).headers["X-WP-Total"]).toBe("0");
  });

  it("is published by the first request after its time, without a timer", async () => {
    const { clock, changes, site, post } = await scheduled();
    await clock.advance(3 * HOUR_MS);
    expect((await ask(site, null, "GET", "/posts")).headers["X-WP-Total"]).toBe("1");
    expect(bodyOf(await ask(site, null, "GET", `/posts/${post.id}`))["date"]).toBe("2026-11-21T15:00:00");
    expect(changes.at(-1)).toMatchObject({ id: post.id, status: { before: "future", after: "publish" } });
  });

  it("is published at its time by a started service, which reports it once", async () => {
    const { clock, changes, site, post } = await scheduled();
    await site.start();
    await clock.advance(4 * HOUR_MS);
    await site.stop();
    const published = changes.filter(({ id, status }) => id === post.id && status.after === "publish");
    expect(published).toHaveLength(1);
  });

  it("is not published once it is a draft again", async () => {
    const { clock, site, post } = await scheduled();
    await ask(site, "editor", "POST", `/posts/${post.id}`, { body: { status: "draft" } });
    await clock.advance(4 * HOUR_MS);
    expect((await ask(site, null, "GET", "/posts")).headers["X-WP-Total"]).toBe("0");
  });
});

describe("dates", () => {
  it("are stored in both time zones", async () => {
    const clock = manualClock(NOON);
    const site = contentSite({
      clock,
      site: { url: "http://localhost", name: "Example", timezone: "Europe/Berlin" },
    });
    const summer = await create(site, "editor", { title: "Summer", date: "2026-07-01T10:00:00" });
    expect(summer).toMatchObject({ date: "2026-07-01T10:00:00", date_gmt: "2026-07-01T08:00:00" });
    const winter = await create(site, "editor", { title: "Winter", date_gmt: "2026-01-01T10:00:00" });
    expect(winter).toMatchObject({ date: "2026-01-01T11:00:00", date_gmt: "2026-01-01T10:00:00" });
    const wins = await create(site, "editor", {
      title: "Both",
      date: "2026-07-01T10:00:00",
      date_gmt: "2020-01-01T00:00:00",
    });
    expect(wins["date_gmt"]).toBe("2026-07-01T08:00:00");
  });

  it("of a draft without a date float until it is published", async () => {
    const clock = manualClock(NOON);
    const site = contentSite({ clock });
    const draft = await create(site, "editor", { title: "Draft" });
    expect(draft["date"]).toBe("2026-11-21T12:00:00");
    await clock.advance(HOUR_MS);
    const published = await ask(site, "editor", "POST", `/posts/${draft.id}`, {
      body: { status: "publish" },
    });
    expect(bodyOf(published)["date"]).toBe("2026-11-21T13:00:00");
    await clock.advance(HOUR_MS);
    const edited = await ask(site, "editor", "POST", `/posts/${draft.id}`, { body: { title: "Edited" } });
    expect(bodyOf(edited)).toMatchObject({ date: "2026-11-21T13:00:00", modified: "2026-11-21T14:00:00" });
  });
});

describe("a role that may write patterns but not assign their categories", () => {
  const site = () =>
    contentSite({
      roles: { keeper: { capabilities: ["read", "publish_posts"] } },
      users: [
        { id: idOf("editor"), slug: "ed", name: "Ed", roles: ["editor"] },
        { id: idOf("author"), slug: "keeper", name: "Keeper", roles: ["keeper"] },
      ],
    });
  const pattern = (categories: readonly number[]) => ({
    body: { title: "Pattern", status: "publish", wp_pattern_category: categories },
  });

  it("must not assign a category that exists", async () => {
    const created = site();
    const { id } = await create(created, "editor", { name: "Hero" }, "/wp_pattern_category");
    const refused = await ask(created, "author", "POST", "/blocks", pattern([999, id]));
    expect([refused.status, bodyOf(refused)["code"]]).toEqual([403, "rest_cannot_assign_term"]);
  });

  it("may name categories that do not exist, which are ignored for everybody", async () => {
    const response = await ask(site(), "author", "POST", "/blocks", pattern([999]));
    expect([response.status, bodyOf(response)["wp_pattern_category"]]).toEqual([201, []]);
  });
});

describe("concurrent writers", () => {
  it("never create the same slug twice", async () => {
    const site = contentSite();
    const posts = await Promise.all(
      Array.from({ length: 20 }, () => create(site, "editor", { title: "Same", status: "publish" })),
    );
    const slugs = posts.map((post) => post["slug"]);
    expect(new Set(slugs).size).toBe(20);
    expect(slugs).toContain("same");
    expect(slugs).toContain("same-20");
  });

  it("of different fields of one post lose nothing", async () => {
    const site = contentSite();
    const { id } = await create(site, "editor", { title: "Shared", status: "publish" });
    const writes = [
      { title: "New title" },
      { content: "New content" },
      { excerpt: "New excerpt" },
      { sticky: true },
      { format: "aside" },
      { comment_status: "closed" },
    ];
    await Promise.all(writes.map((body) => ask(site, "editor", "POST", `/posts/${id}`, { body })));
    const post = bodyOf(await ask(site, "editor", "GET", `/posts/${id}`, { query: { context: "edit" } }));
    expect(post).toMatchObject({
      title: { raw: "New title" },
      content: { raw: "New content" },
      excerpt: { raw: "New excerpt" },
      sticky: true,
      format: "aside",
      comment_status: "closed",
    });
  });

  it("store no cycle of pages", async () => {
    const site = contentSite();
    const a = await create(site, "editor", { title: "A", status: "publish" }, "/pages");
    const b = await create(site, "editor", { title: "B", status: "publish" }, "/pages");
    await Promise.all([
      ask(site, "editor", "POST", `/pages/${a.id}`, { body: { parent: b.id } }),
      ask(site, "editor", "POST", `/pages/${b.id}`, { body: { parent: a.id } }),
    ]);
    const parents = await Promise.all(
      [a, b].map(async ({ id }) => bodyOf(await ask(site, null, "GET", `/pages/${id}`))["parent"]),
    );
    expect(parents.filter((parent) => parent !== 0)).toHaveLength(1);
  });
});

describe("an update", () => {
  it("that fails halfway changes nothing", async () => {
    const site = contentSite();
    const { id } = await create(site, "editor", { title: "Before", status: "publish" });
    const refused = await ask(site, "editor", "POST", `/posts/${id}`, {
      body: { title: "After", meta: { footnotes: 5 } },
    });
    expect(refused.status).toBe(400);
    const post = bodyOf(await ask(site, "editor", "GET", `/posts/${id}`, { query: { context: "edit" } }));
    expect(post["title"]).toMatchObject({ raw: "Before" });
  });

  it("leaves a revision when texts change, up to the limit", async () => {
    const site = contentSite({ limits: { revisions: 3 } });
    const { id } = await create(site, "editor", { title: "One", content: "1" });
    const count = (response: ContentResponse): number => {
      const links = bodyOf(response)["_links"] as {
        readonly [relation: string]: readonly { readonly count: number }[];
      };
      return links["version-history"]?.[0]?.count as number;
    };
    const update = (body: Body) => ask(site, "editor", "POST", `/posts/${id}`, { body });
    expect(count(await update({ content: "2" }))).toBe(1);
    expect(count(await update({ comment_status: "closed" }))).toBe(1);
    for (const content of ["3", "4", "5", "6"]) await update({ content });
    expect(count(await update({ content: "7" }))).toBe(3);
  });

  it("cannot set read-only fields: id, type, guid, modified, link", async () => {
    const site = contentSite();
    const post = await create(site, "editor", { title: "One", status: "publish" });
    const response = await ask(site, "administrator", "POST", `/posts/${post.id}`, {
      body: {
        type: "page",
        guid: "x",
        modified: "2001-01-01T00:00:00",
        link: "https://evil.example/",
        revisions: [1],
      },
    });
    expect(bodyOf(response)).toMatchObject({
      id: post.id,
      type: "post",
      guid: { raw: (post["guid"] as Body)["raw"] },
    });
    expect(bodyOf(response)["modified"]).not.toBe("2001-01-01T00:00:00");
    expect(bodyOf(response)["link"]).toBe(post["link"]);
  });
});

describe("the front page", () => {
  it("has the address of the site while the settings name it, in cached items too", async () => {
    const site = contentSite({ settings: { writable: ["show_on_front", "page_on_front"] } });
    const { id } = await create(site, "editor", { title: "Home", status: "publish" }, "/pages");
    const child = { title: "Below", parent: id, status: "publish" };
    const below = await create(site, "editor", child, "/pages");
    const linkOf = async (page: number) => bodyOf(await ask(site, null, "GET", `/pages/${page}`))["link"];
    const set = async (body: Body) => ask(site, "administrator", "PUT", "/settings", { body });
    expect(await linkOf(id)).toBe("http://localhost/home/");
    await set({ page_on_front: id });
    expect(await linkOf(id)).toBe("http://localhost/home/");
    await set({ show_on_front: "page" });
    expect(await linkOf(id)).toBe("http://localhost/");
    expect(await linkOf(below.id)).toBe("http://localhost/home/below/");
    await set({ show_on_front: "posts" });
    expect(await linkOf(id)).toBe("http://localhost/home/");
  });
});

describe("the classes of a post", () => {
  it("name its format, unless it is the standard one", async () => {
    const site = contentSite();
    const classesOf = async (format: string) =>
      (await create(site, "editor", { title: "a", format }))["class_list"];
    expect(await classesOf("aside")).toContain("post_format-post-format-aside");
    expect(String(await classesOf("standard"))).not.toContain("post_format");
  });
});

describe("the slug of a pending post", () => {
  const slugged = { title: "A title", slug: "wanted", status: "pending" };

  it("is up to those who may publish it", async () => {
    const site = contentSite();
    const own = await create(site, "contributor", slugged);
    expect(own["slug"]).toBe("");
    const path = `/posts/${own.id}`;
    const update = async (as: Role, body: Body) => bodyOf(await ask(site, as, "PUT", path, { body }))["slug"];
    expect(await update("contributor", { slug: "again" })).toBe("");
    expect(await update("editor", { slug: "chosen" })).toBe("chosen");
    // As in WordPress, every change by the contributor drops it.
    expect(await update("contributor", { title: "Another title" })).toBe("");
    expect(await update("contributor", { status: "draft", slug: "kept" })).toBe("kept");
    expect(await update("contributor", { status: "pending" })).toBe("");
    expect(await update("editor", { status: "publish" })).toBe("another-title");
  });

  it.each(["/posts", "/pages", "/blocks"])("is kept for an editor: %s", async (base) => {
    const site = contentSite();
    expect((await create(site, "editor", slugged, base))["slug"]).toBe("wanted");
  });

  it("is dropped for pages, too", async () => {
    const site = contentSite({
      roles: { clerk: { inherits: "contributor", capabilities: ["edit_pages"] } },
      users: [{ id: 1, slug: "clerk", name: "A clerk", roles: ["clerk"] }],
    });
    const body = slugged;
    const { status, body: page } = await site.request({
      method: "POST",
      path: "/core/v2/pages",
      as: 1,
      body,
    });
    expect([status, (page as never as Body)["slug"]]).toEqual([201, ""]);
  });
});

describe("deleting", () => {
  it("a page moves its children up, and removes menu items that point at it", async () => {
    const site = contentSite();
    const root = await create(site, "editor", { title: "Root", status: "publish" }, "/pages");
    const middle = await create(
      site,
      "editor",
      { title: "Middle", status: "publish", parent: root.id },
      "/pages",
    );
    const leaf = await create(
      site,
      "editor",
      { title: "Leaf", status: "publish", parent: middle.id },
      "/pages",
    );
    const item = await create(
      site,
      "administrator",
      { type: "post_type", object: "page", object_id: middle.id },
      "/menu-items",
    );
    await ask(site, "editor", "DELETE", `/pages/${middle.id}`, { query: { force: "true" } });
    expect(bodyOf(await ask(site, null, "GET", `/pages/${leaf.id}`))["parent"]).toBe(root.id);
    expect((await ask(site, "administrator", "GET", `/menu-items/${item.id}`)).status).toBe(404);
  });

  it("leaves nothing that a list, a search or an address finds", async () => {
    const site = contentSite();
    const post = await create(site, "editor", { title: "Gone", content: "unfindable", status: "publish" });
    await ask(site, "editor", "POST", `/posts/${post.id}`, { body: { content: "unfindable still" } });
    await ask(site, "editor", "DELETE", `/posts/${post.id}`, { query: { force: "1" } });
    for (const query of [
      {},
      { search: "unfindable" },
      { slug: "gone" },
      { include: [post.id] },
      { status: "any" },
    ]) {
      const list = await ask(site, "administrator", "GET", "/posts", { query });
      expect(list.headers["X-WP-Total"]).toBe("0");
    }
    expect(await create(site, "editor", { title: "Gone", status: "publish" })).toMatchObject({
      slug: "gone",
    });
  });
});

describe("the hook `changed`", () => {
  it("receives every change once, and cannot break a change by throwing", async () => {
    const seen: string[] = [];
    const site = contentSite({
      changed: ({ action, collection, status }) => {
        seen.push(`${action} ${collection} ${status.before}>${status.after}`);
        throw new Error("the host's own mistake");
      },
    });
    const { id } = await create(site, "editor", { title: "One", status: "draft" });
    await ask(site, "editor", "POST", `/posts/${id}`, { body: { status: "publish" } });
    await ask(site, "editor", "DELETE", `/posts/${id}`);
    await ask(site, "editor", "DELETE", `/posts/${id}`, { query: { force: "true" } });
    expect(seen).toEqual([
      "created posts >draft",
      "updated posts draft>publish",
      "trashed posts publish>trash",
      "deleted posts trash>",
    ]);
  });
});
