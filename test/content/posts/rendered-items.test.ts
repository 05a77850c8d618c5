/**
 * Rendered items are cached. A service that has rendered everything before must return exactly what
 * a service on the same storage returns that renders it for the first time.
 */

import { describe, expect, it } from "vitest";
import type { ContentStorage } from "../../../src/content/store.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { type Call, callsOf } from "../../support/content-call.js";
import { seedsIn } from "../../support/content-seeds.js";
import { contentSite, credentials, idOf, ROLES, type Role } from "../../support/content-site.js";

type Site = ReturnType<typeof contentSite>;
type Options = NonNullable<Parameters<typeof contentSite>[0]>;

const BASES = ["posts", "pages", "media", "menu-items", "blocks", "navigation"] as const;

/** A clerk uses the same methods as an editor, but writes filtered HTML and makes no category. */
const CLERK = [
  "read",
  ...["edit_posts", "edit_others_posts", "edit_published_posts", "edit_private_posts", "publish_posts"],
  ...["delete_posts", "delete_others_posts", "delete_published_posts", "delete_private_posts"],
  ...["edit_pages", "edit_others_pages", "edit_published_pages", "delete_pages", "delete_others_pages"],
  ...["delete_published_pages", "edit_theme_options", "read_private_posts"],
];
/** A clerk who may delete nothing. */
const SCRIBE = CLERK.filter((capability) => !capability.startsWith("delete"));
const OWN_ROLES = { clerk: CLERK, scribe: SCRIBE };
type OwnRole = keyof typeof OWN_ROLES;
const OWN_IDS: { readonly [role in OwnRole]: number } = { clerk: 100, scribe: 101 };
const OWN_NAMES = Object.keys(OWN_ROLES) as readonly OwnRole[];
const isOwnRole = (name: string | undefined): name is OwnRole => OWN_NAMES.includes(name as OwnRole);

const CALLERS = ["administrator", "clerk", "scribe", "author", "contributor"] as const;

function siteOn(storage: ContentStorage, options: Options = {}) {
  return contentSite({
    storage,
    roles: { clerk: { capabilities: CLERK }, scribe: { capabilities: SCRIBE } },
    users: [
      ...ROLES.map((role) => ({ id: idOf(role), slug: role, name: role, roles: [role] })),
      ...OWN_NAMES.map((role) => ({ id: OWN_IDS[role], slug: role, name: role, roles: [role] })),
    ],
    authenticate: ({ headers }) => {
      const { authorization } = headers;
      if (isOwnRole(authorization)) return { id: OWN_IDS[authorization] };
      const role = ROLES.find((one) => credentials(one) === authorization);
      return role === undefined ? null : { id: idOf(role) };
    },
    ...options,
  });
}

async function read(site: Site, path: string, as: Role | OwnRole, baseUrl: string) {
  const [pathname = "", query = ""] = path.split("?");
  const response = await site.handle({
    method: "GET",
    path: `/core/v2/${pathname}`,
    query,
    headers: { authorization: isOwnRole(as) ? as : credentials(as) },
    body: null,
    baseUrl,
  });
  const text = Buffer.from(response?.body as Uint8Array).toString();
  return { as, baseUrl, path, status: response?.status, body: JSON.parse(text) };
}

/** Everything that any caller may see, in each context, at two addresses. */
async function readAll(site: Site) {
  const paths = BASES.flatMap((base) => [
    `${base}?context=edit&per_page=100&_embed=1`,
    `${base}?context=edit&per_page=100&status=${base === "media" ? "inherit" : "draft,publish,private,future,trash"}`,
    `${base}?per_page=100`,
  ]);
  const answers = [];
  for (const baseUrl of ["http://localhost", "https://example.org/api"]) {
    for (const as of CALLERS) for (const path of paths) answers.push(await read(site, path, as, baseUrl));
  }
  return answers;
}

/** A site with a record of each kind that an item may depend on. */
async function seeded() {
  const storage = memoryStorage();
  const seeds = seedsIn(storage);
  const call = callsOf(siteOn(storage));
  const image = await seeds.post("attachment", { author: idOf("author") });
  const category = (await created(call, "/categories", { name: "News" })).id;
  const tag = (await created(call, "/tags", { name: "Urgent" })).id;
  const top = (await created(call, "/pages", { title: "Top", status: "publish" })).id;
  const middle = (await created(call, "/pages", { title: "Middle", parent: top, status: "publish" })).id;
  const page = (await created(call, "/pages", { title: "Low", parent: middle, status: "publish" })).id;
  const post = await created(call, "/posts", {
    title: "Post",
    content: "Text",
    status: "publish",
    author: idOf("author"),
    categories: [category],
    tags: [tag],
    featured_media: image,
  });
  const draft = (await created(call, "/posts", { title: "Draft", author: idOf("contributor") })).id;
  const gone = (await created(call, "/categories", { name: "Gone" })).id;
  await created(call, "/posts", { title: "Orphan", status: "publish", categories: [gone] });
  const removed = await call(`DELETE /categories/${gone}`, { as: "administrator", query: { force: true } });
  expect(removed.status).toBe(200);
  const attached = await seeds.post("attachment", { parent: middle, author: idOf("author") });
  const menuItem = { type: "post_type", object: "page", object_id: page };
  const item = (await created(call, "/menu-items", menuItem)).id;
  await created(call, "/menu-items", { type: "taxonomy", object: "category", object_id: category });
  const block = (await created(call, "/blocks", { title: "B", content: "<b>B</b>", status: "publish" })).id;
  await created(call, "/navigation", { title: "N", content: "x", status: "publish" });
  return {
    storage,
    seeds,
    ids: { image, category, tag, top, middle, page, post: post.id, draft, attached, item, block },
  };
}

async function created(call: Call, path: string, body: object) {
  const answer = await call(`POST ${path}`, { as: "administrator", body: body as never });
  expect(answer.status).toBe(201);
  return answer.body;
}

type Ids = Awaited<ReturnType<typeof seeded>>["ids"];
type Change = (ids: Ids) => readonly [request: string, body?: object];

const put = (path: (ids: Ids) => string, body: object | ((ids: Ids) => object)): Change => {
  return (ids) => [`PUT /${path(ids)}`, typeof body === "function" ? body(ids) : body];
};
const remove =
  (path: (ids: Ids) => string): Change =>
  (ids) => [`DELETE /${path(ids)}`, { force: true }];

/** One change of each thing that an item shows or is addressed by. */
const CHANGES: { readonly [name: string]: Change } = {
  "the title": put(({ post }) => `posts/${post}`, { title: "Other" }),
  "the content": put(({ post }) => `posts/${post}`, { content: "Other" }),
  "the slug": put(({ post }) => `posts/${post}`, { slug: "other" }),
  "the status": put(({ post }) => `posts/${post}`, { status: "draft" }),
  "the author": put(({ post }) => `posts/${post}`, { author: idOf("contributor") }),
  "a password": put(({ post }) => `posts/${post}`, { password: "secret" }),
  stickiness: put(({ post }) => `posts/${post}`, { sticky: true }),
  "meta fields": put(({ post }) => `posts/${post}`, { meta: { footnotes: '[{"id":"a","content":"b"}]' } }),
  "the date": put(({ draft }) => `posts/${draft}`, { date: "2020-01-02T03:04:05", status: "publish" }),
  "the terms": put(({ post }) => `posts/${post}`, { categories: [], tags: [] }),
  "the category's slug": put(({ category }) => `categories/${category}`, { slug: "latest" }),
  "the tag's slug": put(({ tag }) => `tags/${tag}`, { slug: "later" }),
  "the default category's slug": put(() => "categories/1", { slug: "general" }),
  "the removal of the category": remove(({ category }) => `categories/${category}`),
  "the removal of the tag": remove(({ tag }) => `tags/${tag}`),
  "the featured image": put(({ post }) => `posts/${post}`, { featured_media: 0 }),
  "the image's title": put(({ image }) => `media/${image}`, { title: "Other" }),
  "the removal of the image": remove(({ image }) => `media/${image}`),
  "the parent's slug": put(({ middle }) => `pages/${middle}`, { slug: "renamed" }),
  "the grandparent's slug": put(({ top }) => `pages/${top}`, { slug: "renamed" }),
  "the grandparent's status": put(({ top }) => `pages/${top}`, { status: "draft" }),
  "the parent's status, which media inherit": put(({ middle }) => `pages/${middle}`, { status: "private" }),
  "another parent": put(
    ({ page }) => `pages/${page}`,
    ({ top }) => ({ parent: top }),
  ),
  "the removal of the parent": remove(({ middle }) => `pages/${middle}`),
  "the title of a menu item's target": put(({ page }) => `pages/${page}`, { title: "Other", slug: "other" }),
  "the trashing of a menu item's target": ({ page }) => [`DELETE /pages/${page}`],
  "the removal of a menu item's target": remove(({ page }) => `pages/${page}`),
  "a menu item's title": put(({ item }) => `menu-items/${item}`, { title: "Own" }),
  "a pattern": put(({ block }) => `blocks/${block}`, { content: "<i>C</i>" }),
  "an autosave": ({ post }) => [`POST /posts/${post}/autosaves`, { title: "Saved", content: "by itself" }],
};

describe("an item that is cached", () => {
  it.each(Object.entries(CHANGES))("is as a new service renders it, after %s", async (_, change) => {
    const { storage, ids } = await seeded();
    const site = siteOn(storage);
    const before = await readAll(site);
    const [request, body] = change(ids);
    // By another process.
    const answer = await callsOf(siteOn(storage))(request, {
      as: "administrator",
      body: (body ?? {}) as never,
    });
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    const after = await readAll(site);
    expect(after).toEqual(await readAll(siteOn(storage)));
    expect(after).not.toEqual(before);
  });

  it("names its author as he is called now", async () => {
    const { storage, ids } = await seeded();
    const names: { author?: string } = {};
    const users = ROLES.map((role) => ({ id: idOf(role), slug: role, name: role, roles: [role] }));
    const lookUp = async (id: number) => {
      const user = users.find((one) => one.id === id) ?? null;
      return user?.slug === "author" ? { ...user, name: names.author ?? user.name } : user;
    };
    const list = async () => users;
    const site = siteOn(storage, { users: { get: lookUp, list } as never });
    const authorOf = async () => {
      const { body } = await read(
        site,
        `posts/${ids.post}?context=edit&_embed=author`,
        "editor",
        "http://localhost",
      );
      return body._embedded.author[0].name;
    };
    expect(await authorOf()).toBe("author");
    names.author = "Somebody else";
    expect(await authorOf()).toBe("Somebody else");
  });

  it("tells each caller what that caller may do, whoever came before", async () => {
    const { storage, ids } = await seeded();
    const path = `posts/${ids.post}?context=edit`;
    const actions = new Map<string, string>();
    for (const order of [CALLERS, [...CALLERS].reverse()]) {
      const site = siteOn(storage);
      for (const as of order) {
        const { status, body } = await read(site, path, as, "http://localhost");
        const alone = await read(siteOn(storage), path, as, "http://localhost");
        expect(body).toEqual(alone.body);
        if (status === 200)
          actions.set(
            as,
            Object.keys(body._links)
              .filter((name) => /action/.test(name))
              .join(),
          );
      }
    }
    // The clerk may use the same methods.
    expect(actions.get("clerk")).not.toContain("unfiltered-html");
    expect(actions.get("administrator")).toContain("unfiltered-html");
    expect(actions.get("author")).not.toContain("sticky");
    expect(actions.has("contributor")).toBe(false);
  });
});

describe("the link to featured media", () => {
  it.each(["posts", "pages"] as const)("is for callers who may read the media: %s", async (base) => {
    const { storage, ids } = await seeded();
    const id = base === "posts" ? ids.post : ids.page;
    const call = callsOf(siteOn(storage));
    const as = "administrator";
    expect((await call(`PUT /${base}/${id}`, { as, body: { featured_media: ids.attached } })).status).toBe(
      200,
    );
    const seen = async (role?: Role) => {
      const query = { _embed: "wp:featuredmedia" };
      const { body } = await call(`GET /${base}/${id}`, { as: role, query });
      const { body: items } = await call(`GET /${base}`, { as: role, query: { ...query, include: [id] } });
      expect(items).toEqual([body]);
      expect(body.featured_media).toBe(ids.attached);
      return [
        body._links["wp:featuredmedia"]?.length ?? 0,
        body._embedded?.["wp:featuredmedia"]?.[0].id ?? 0,
      ];
    };
    const readers = [undefined, "subscriber", "editor", undefined] as const;
    const all = async () => {
      const found = [];
      for (const role of readers) found.push(await seen(role));
      return found;
    };
    const shown = [1, ids.attached];
    expect(await all()).toEqual([shown, shown, shown, shown]);
    // The media inherit the status of the page that they belong to.
    await call(`PUT /pages/${ids.middle}`, { as, body: { status: "private" } });
    expect(await all()).toEqual([[0, 0], [0, 0], shown, [0, 0]]);
    await call(`PUT /pages/${ids.middle}`, { as, body: { status: "publish" } });
    expect(await all()).toEqual([shown, shown, shown, shown]);
  });
});

describe("a list in the context edit", () => {
  const countRenderings = async () => {
    const { storage, ids } = await seeded();
    let count = 0;
    const render: Options["render"] = (raw, { field }) => {
      if (field === "content") count += 1;
      return raw;
    };
    const site = siteOn(storage, { render });
    const list = async (as: Role, baseUrl = "http://localhost") => {
      count = 0;
      expect((await read(site, "posts?context=edit&status=any", as, baseUrl)).status).toBe(200);
      return count;
    };
    return { site, ids, list };
  };

  it("renders each text once, for all who may do the same", async () => {
    const { list } = await countRenderings();
    expect(await list("editor")).toBe(3);
    expect(await list("editor")).toBe(0);
    expect(await list("administrator")).toBe(0);
  });

  it("renders nothing again but what changed", async () => {
    const { site, ids, list } = await countRenderings();
    await list("editor");
    const call = callsOf(site);
    const body = { title: "Other" };
    expect((await call(`PUT /posts/${ids.post}`, { as: "editor", body })).status).toBe(200);
    expect(await list("editor")).toBe(1);
    expect(await list("editor")).toBe(0);
  });

  it("does not share an item between addresses or with the context view", async () => {
    const { site, ids, list } = await countRenderings();
    await list("editor");
    expect(await list("editor", "https://example.org/api")).toBe(3);
    const { body } = await read(site, `posts/${ids.post}`, "editor", "http://localhost");
    expect(body.content.raw).toBeUndefined();
    expect(body.password).toBeUndefined();
  });

  it("renders again where the cache has no room", async () => {
    const { storage } = await seeded();
    let count = 0;
    const render: Options["render"] = (raw) => {
      count += 1;
      return raw;
    };
    const site = siteOn(storage, { render, limits: { cacheBytes: 400 } });
    for (const round of [1, 2]) {
      await read(site, "posts?context=edit", "editor", "http://localhost");
      expect(count).toBe(6 * round);
    }
  });
});
