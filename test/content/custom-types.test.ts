import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import WPAPI, { type Collections, type WPRequest } from "wpapi";
import { nodeAdapter } from "../../adapters/node.js";
import type { ContentOptions } from "../../src/content/content-options.js";
import type { ContentChanged } from "../../src/content/records/record-changes.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { type CallOptions, callsOf } from "../support/content-call.js";
import { exported } from "../support/content-dump.js";
import { contentSite, idOf, login, type Role } from "../support/content-site.js";
import { CONTENT_STORAGES } from "../support/content-storages.js";
import { listen } from "../support/hosts.js";

const RECIPES: Pick<ContentOptions, "types" | "taxonomies"> = {
  types: {
    recipe: {
      base: "recipes",
      labels: { name: "Recipes", singular: "Recipe" },
      description: "Things to cook.",
      supports: ["title", "editor", "excerpt", "author", "thumbnail", "revisions", "page-attributes"],
      taxonomies: ["cuisine", "category"],
      hierarchical: true,
    },
    note: { labels: { name: "Notes", singular: "Note" }, supports: ["title"], public: false },
  },
  taxonomies: {
    cuisine: { base: "cuisines", labels: { name: "Cuisines", singular: "Cuisine" }, types: ["post"] },
  },
};

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

const VALID = { labels: { name: "Things", singular: "Thing" } };

/** Calls a site with recipes, and expects the status before it returns the body. */
function recipeSite(options: Partial<ContentOptions> = {}) {
  const site = contentSite({ ...RECIPES, ...options });
  const call = callsOf(site);
  const get = async (request: string, status = 200, more: CallOptions = {}) => {
    const answer = await call(request, more);
    expect(answer.status, `${request} ${JSON.stringify(answer.body)}`).toBe(status);
    return answer.body;
  };
  const create = (path: string, body: NonNullable<CallOptions["body"]>, as: Role = "editor") =>
    get(`POST ${path}`, 201, { as, body });
  return { site, call, get, create };
}

describe.each(CONTENT_STORAGES)("a declared type on %s", (_, open) => {
  it("lives from a draft to its removal, with terms, revisions and events", async () => {
    const changes: ContentChanged[] = [];
    const { get, create } = recipeSite({ storage: open(), changed: (change) => changes.push(change) });
    const { id: thai } = await create("/cuisines", { name: "Thai" });
    const draft = { title: "Soup", content: "Hot", cuisines: [thai] };
    const { id, status } = await create("/recipes", draft, "author");
    expect(status).toBe("draft");
    await get(`GET /recipes/${id}`, 401);
    expect(await get("GET /recipes")).toEqual([]);
    const body = { status: "publish", excerpt: "Good" };
    const published = await get(`PUT /recipes/${id}`, 200, { as: "author", body });
    expect(published).toMatchObject({ link: "http://localhost/recipe/soup/", cuisines: [thai] });
    await get(`PUT /recipes/${id}`, 403, { as: "contributor", body: { title: "Mine" } });
    expect(await get("GET /recipes", 200, { query: { cuisines: [thai] } })).toMatchObject([{ id }]);
    expect(await get("GET /recipes", 200, { query: { cuisines_exclude: [thai] } })).toEqual([]);
    expect(await get(`GET /cuisines/${thai}`)).toMatchObject({ count: 1, taxonomy: "cuisine" });
    await get(`POST /recipes/${id}/autosaves`, 200, { as: "editor", body: { title: "Soup?" } });
    const revisions = await get(`GET /recipes/${id}/revisions`, 200, { as: "author" });
    expect(revisions).toHaveLength(2);
    await get(`DELETE /recipes/${id}`, 200, { as: "author" });
    await get(`GET /recipes/${id}`, 401);
    await get(`DELETE /recipes/${id}`, 200, { as: "author", query: { force: true } });
    await get(`GET /recipes/${id}`, 404);
    expect(changes.map(({ action, collection }) => `${action} ${collection}`)).toEqual([
      "created cuisines",
      "created recipes",
      "updated recipes",
      "trashed recipes",
      "deleted recipes",
    ]);
  });

  it("keeps its records while it is not declared", async () => {
    const storage = open();
    const declared = recipeSite({ storage });
    const { id: thai } = await declared.create("/cuisines", { name: "Thai" });
    const { id } = await declared.create("/recipes", { title: "Soup", status: "publish", cuisines: [thai] });
    const { id: post } = await declared.create("/posts", {
      title: "News",
      status: "publish",
      cuisines: [thai],
    });
    const target = { type: "post_type", object: "recipe", object_id: id, title: "Soup" };
    const { id: item } = await declared.create("/menu-items", target, "administrator");

    const without = recipeSite({ storage, types: {}, taxonomies: {} });
    await without.get("GET /recipes", 404);
    expect(await without.get("GET /search")).toMatchObject([{ id: post }]);
    const admin = { as: "administrator" } as const;
    expect(await without.get(`GET /menu-items/${item}`, 200, admin)).toMatchObject({ invalid: true });
    await without.get(`PUT /posts/${post}`, 200, { as: "editor", body: { title: "Old news" } });
    expect(await exported(without.site)).not.toContain("Soup</title>");
    await expect(
      without.site.restoreRevision({ postId: id, revisionId: id, as: idOf("editor") }),
    ).rejects.toThrow(/Invalid post/);

    const again = recipeSite({ storage });
    expect(await again.get(`GET /recipes/${id}`)).toMatchObject({ slug: "soup", cuisines: [thai] });
    expect(await again.get(`GET /posts/${post}`)).toMatchObject({ cuisines: [thai] });
    expect(await again.get(`GET /menu-items/${item}`, 200, admin)).toMatchObject({ invalid: false });
  });
});

describe("a declared type", () => {
  it("has the fields, arguments and links of its features", async () => {
    const { get } = recipeSite();
    const fields = async (path: string) => Object.keys((await get(`OPTIONS ${path}`)).schema.properties);
    expect(await fields("/recipes")).toEqual(expect.arrayContaining(["parent", "menu_order", "cuisines"]));
    expect(await fields("/recipes")).toContain("categories");
    for (const name of ["comment_status", "format", "meta", "sticky", "tags"]) {
      expect(await fields("/recipes")).not.toContain(name);
    }
    expect(await fields("/note")).toEqual([
      ...["id", "date", "date_gmt", "guid", "modified", "modified_gmt", "password", "slug", "status"],
      ...["type", "link", "title", "template"],
    ]);
    expect((await fields("/posts")).slice(-2)).toEqual(["cuisines", "class_list"]);
    const { args } = (await get("OPTIONS /recipes")).endpoints[0];
    expect(args.orderby.enum).toContain("menu_order");
    expect(Object.keys(args)).toEqual(expect.arrayContaining(["author", "parent", "cuisines_exclude"]));
    expect(Object.keys(args)).not.toContain("sticky");
  });

  it("has addresses below its parents, each with slugs of its own", async () => {
    const { create, get } = recipeSite();
    const made = (title: string, parent = 0) => create("/recipes", { title, parent, status: "publish" });
    const [cold, hot] = [await made("Cold"), await made("Hot")];
    const [one, two] = [await made("Soup", cold.id), await made("Soup", hot.id)];
    expect([one.link, two.link]).toEqual([
      "http://localhost/recipe/cold/soup/",
      "http://localhost/recipe/hot/soup/",
    ]);
    expect((await made("Soup", hot.id)).slug).toBe("soup-2");
    expect(two.permalink_template).toBe("http://localhost/recipe/hot/%pagename%/");
    const loop = await get(`PUT /recipes/${hot.id}`, 200, { as: "editor", body: { parent: two.id } });
    expect(loop.parent).toBe(0);
    await get(`DELETE /recipes/${hot.id}`, 200, { as: "editor", query: { force: true } });
    expect(await get(`GET /recipes/${two.id}`)).toMatchObject({ parent: 0, slug: "soup" });
  });

  it("is described to the block editor, found by searches, embedded, and in OpenAPI and batches", async () => {
    const { site, get, create } = recipeSite();
    const edit = { as: "author", query: { context: "edit" } } as const;
    expect(await get("GET /types/recipe", 200, edit)).toMatchObject({
      ...{ rest_base: "recipes", taxonomies: ["cuisine", "category"], hierarchical: true, viewable: true },
      supports: { editor: true, autosave: true, revisions: true },
      capabilities: { edit_posts: "edit_posts" },
      _links: { "wp:items": [{ href: "http://localhost/core/v2/recipes" }] },
    });
    expect(await get("GET /taxonomies", 200, { query: { type: "recipe" } })).toMatchObject({
      cuisine: { types: ["post", "recipe"] },
      category: { types: ["post", "recipe"] },
    });
    const { id: thai } = await create("/cuisines", { name: "Thai" });
    const { id } = await create("/recipes", { title: "Soup", status: "publish", cuisines: [thai] });
    await get(`GET /recipes/${id}`, 403, edit);
    const whole = await get(`GET /recipes/${id}`, 200, {
      as: "editor",
      query: { context: "edit", _embed: "1" },
    });
    expect(whole._embedded["wp:term"]).toMatchObject([[{ id: thai }], []]);
    const found = await get("GET /search", 200, { query: { subtype: ["recipe"], _embed: "1" } });
    expect(found).toMatchObject([{ id, subtype: "recipe", _embedded: { self: [{ id }] } }]);
    const terms = await get("GET /search", 200, { query: { type: "term", subtype: ["cuisine"] } });
    expect(terms).toMatchObject([{ id: thai, url: "http://localhost/cuisine/thai/" }]);
    const item = { title: "", type: "taxonomy", object: "cuisine", object_id: thai };
    expect(await create("/menu-items", item, "administrator")).toMatchObject({
      ...{ type_label: "Cuisine", url: "http://localhost/cuisine/thai/", title: { rendered: "Thai" } },
    });
    const requests = [{ method: "POST", path: "/core/v2/recipes", body: { title: "Pie" } }];
    const batch = await site.request({
      ...{ method: "POST", path: "/batch/v1", as: idOf("editor"), body: { requests } },
    });
    expect(batch.body).toMatchObject({ responses: [{ status: 201, body: { type: "recipe" } }] });
    const { paths } = site.openApi() as { paths: object };
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining([
        "/core/v2/recipes/{id}",
        "/core/v2/cuisines",
        "/core/v2/recipes/{id}/autosaves",
      ]),
    );
    const users = await get("GET /users");
    expect(users).toMatchObject([{ id: idOf("editor") }]);
    const listed = { query: { has_published_posts: ["recipe"] } };
    expect(await get("GET /users", 200, listed)).toMatchObject([{ id: idOf("editor") }]);
  });

  it("hides items that are not public from everybody who may not edit them", async () => {
    const { get, create } = recipeSite();
    const { id } = await create("/note", { title: "Hidden", status: "publish" });
    await get(`GET /note/${id}`, 401);
    await get(`GET /note/${id}`, 403, { as: "subscriber" });
    expect(await get("GET /note")).toEqual([]);
    expect(await get("GET /search")).toEqual([]);
    await get("GET /search", 400, { query: { subtype: ["note"] } });
    expect(await get("GET /users")).toEqual([]);
    expect(await get(`GET /note/${id}`, 200, { as: "contributor" })).toMatchObject({
      link: `http://localhost/?post_type=note&p=${id}`,
    });
  });

  it("can have capabilities of its own, which only the host's roles have", async () => {
    const { get } = recipeSite({
      types: { dish: { base: "dishes", ...VALID, capabilityType: ["dish", "dishes"], taxonomies: ["kind"] } },
      taxonomies: { kind: { ...VALID, base: "kinds", capabilities: { assign_terms: "edit_dishes" } } },
      roles: { chef: { capabilities: ["read", "edit_dishes", "publish_dishes", "edit_published_dishes"] } },
      users: [
        { id: idOf("administrator"), slug: "a", name: "A", roles: ["administrator"] },
        { id: idOf("author"), slug: "b", name: "B", roles: ["chef"] },
      ],
    });
    const body = { title: "Stew", status: "publish" };
    await get("POST /dishes", 403, { as: "administrator", body });
    const { id } = await get("POST /dishes", 201, { as: "author", body });
    await get(`PUT /dishes/${id}`, 403, { as: "administrator", body });
    await get(`DELETE /dishes/${id}`, 403, { as: "author" });
    await get("POST /posts", 403, { as: "author", body });
    await get("POST /kinds", 201, { as: "author", body: { name: "Main" } });
    // Whoever edits anything sees the statuses.
    expect(Object.keys(await get("GET /statuses", 200, { as: "author" }))).toContain("draft");
    const types = await get("GET /types", 200, { as: "author", query: { context: "edit" } });
    expect(Object.keys(types)).toEqual(["dish"]);
  });
});

describe("an export with declared types", () => {
  it("makes an equal site when it is imported, and again after a declaration came later", async () => {
    const first = recipeSite();
    const { id: thai } = await first.create("/cuisines", { name: "Thai", description: "Hot" });
    const { id: parent } = await first.create("/recipes", { title: "Hot", status: "publish" });
    const soup = { title: "Soup", content: "Boil", excerpt: "Good", parent, menu_order: 3, cuisines: [thai] };
    await first.create("/recipes", { ...soup, status: "publish" });
    await first.create("/recipes", { title: "Draft" });
    await first.create("/posts", { title: "News", status: "publish", cuisines: [thai] });
    const file = await exported(first.site);

    const fields = "slug,status,link,title,content,excerpt,menu_order,class_list";
    const list = async ({ get }: typeof first) => {
      const query = { _fields: fields, status: "any", orderby: "slug", order: "asc" };
      const recipes = await get("GET /recipes", 200, { as: "editor", query });
      const cuisines = await get("GET /cuisines", 200, { query: { _fields: "slug,name,description,count" } });
      return JSON.stringify([recipes, cuisines]).replaceAll(/(post-|p=)\d+/g, "$1");
    };
    const second = recipeSite();
    const summary = await second.site.import(bytesOf(file), { as: idOf("editor") });
    expect(summary).toMatchObject({
      notHeld: {},
      kinds: { recipes: { created: 3 }, cuisines: { created: 1 } },
    });
    expect(await list(second)).toBe(await list(first));

    const storage = memoryStorage();
    const bare = recipeSite({ storage, types: {}, taxonomies: {} });
    const partly = await bare.site.import(bytesOf(file), { as: idOf("editor") });
    expect(partly.notHeld).toMatchObject({ "type recipe": 3, "taxonomy cuisine": expect.any(Number) });
    const later = recipeSite({ storage });
    await later.site.import(bytesOf(file), { as: idOf("editor") });
    expect(await list(later)).toContain("/recipe/hot/soup/");
  });
});

describe("the client wpapi", () => {
  it("lists and creates recipes by the index", async () => {
    const serve = nodeAdapter(contentSite(RECIPES), { prefix: "/wp-json" });
    const website = await listen(
      createServer((request, response) => {
        serve(request, response, () => {
          response.setHeader("Link", `<http://${request.headers.host}/wp-json/>; rel="https://api.w.org/"`);
          response.end("<h1>A page</h1>");
        });
      }),
    );
    const visitor = (await WPAPI.discover(website.origin)).namespace("core/v2");
    const editor = (await WPAPI.discover(website.origin)).auth(login("editor")).namespace("core/v2");
    const recipesOf = (collections: Collections): WPRequest => {
      const make = collections["recipes"];
      if (make === undefined) throw new Error("the index has no recipes");
      return make.call(collections);
    };
    const { id } = await recipesOf(editor).create({ title: "Soup", status: "publish" });
    const listed = await recipesOf(visitor).search("soup").get();
    expect([...listed]).toMatchObject([{ id, link: "http://localhost/recipe/soup/" }]);
    await website.close();
  });
});

describe("the options types and taxonomies", () => {
  const many = Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`t${n}`, VALID]));
  const own = (name: string) => JSON.parse(`{ "${name}": ${JSON.stringify(VALID)} }`);

  it.each<[field: string, options: object]>([
    ["types", { types: [] }],
    ["types", { types: many }],
    ["types", { types: { Recipe: VALID } }],
    ["types", { types: { "": VALID } }],
    ["types", { types: { "a/b": VALID } }],
    ["types", { types: { ["x".repeat(21)]: VALID } }],
    ["types.__proto__", { types: own("__proto__") }],
    ["types.constructor", { types: own("constructor") }],
    ["taxonomies.constructor", { taxonomies: own("constructor") }],
    ["types.post", { types: { post: VALID } }],
    ["types.revision", { types: { revision: VALID } }],
    ["types.wp_template", { types: { wp_template: VALID } }],
    ["taxonomies.author", { taxonomies: { author: VALID } }],
    ["taxonomies.orphan", { taxonomies: { orphan: VALID } }],
    ["taxonomies.thing", { types: { thing: VALID }, taxonomies: { thing: { ...VALID, base: "kinds" } } }],
    ["types.thing", { types: { thing: null } }],
    ["types.thing.labels.name", { types: { thing: {} } }],
    ["types.thing.labels.singular", { types: { thing: { labels: { name: "Things" } } } }],
    ["types.thing.labels.name", { types: { thing: { labels: { name: "x".repeat(101), singular: "x" } } } }],
    ["types.thing.colour", { types: { thing: { ...VALID, colour: "red" } } }],
    ["types.thing.base", { types: { thing: { ...VALID, base: "posts" } } }],
    ["types.thing.base", { types: { thing: { ...VALID, base: "users" } } }],
    ["types.thing.base", { types: { thing: { ...VALID, base: "a/b" } } }],
    ["types.thing.base", { types: { thing: { ...VALID, base: "x".repeat(33) } } }],
    ["types.thing.base", { types: { thing: { ...VALID, base: "__proto__" } } }],
    ["types.other.base", { types: { thing: VALID, other: { ...VALID, base: "thing" } } }],
    ["taxonomies.kind.base", { types: { thing: VALID }, taxonomies: { kind: { ...VALID, base: "thing" } } }],
    ["taxonomies.kind.base", { taxonomies: { kind: { ...VALID, base: "title" } } }],
    ["taxonomies.kind.base", { taxonomies: { kind: { ...VALID, base: "tags_exclude" } } }],
    ["types.thing.supports", { types: { thing: { ...VALID, supports: ["magic"] } } }],
    ["types.thing.supports", { types: { thing: { ...VALID, supports: ["title", "title"] } } }],
    ["types.thing.taxonomies", { types: { thing: { ...VALID, taxonomies: ["nav_menu"] } } }],
    ["types.thing.taxonomies", { types: { thing: { ...VALID, taxonomies: ["kind"] } } }],
    ["taxonomies.kind.types", { taxonomies: { kind: { ...VALID, types: ["attachment"] } } }],
    [
      "taxonomies.kind.capabilities.edit_terms",
      { taxonomies: { kind: { ...VALID, capabilities: { edit_terms: "A" } } } },
    ],
    ["types.thing.hierarchical", { types: { thing: { ...VALID, hierarchical: "yes" } } }],
    ["types.thing.capabilityType", { types: { thing: { ...VALID, capabilityType: ["a"] } } }],
    ["types.thing.path", { types: { thing: { ...VALID, path: "/thing/" } } }],
    ["types.thing.path", { types: { thing: { ...VALID, path: "../up" } } }],
  ])("refuse %s of %j", (field, options) => {
    expect(() => contentSite(options)).toThrow(expect.objectContaining({ code: "invalid_option", field }));
  });

  it("refuse every segment, field and argument that the interface already has", async () => {
    const { get, site } = recipeSite({ types: {}, taxonomies: {} });
    const { routes } = (await site.request({ method: "GET", path: "/", as: null })).body as {
      routes: object;
    };
    const segments = Object.keys(routes).map((path) => path.split("/").at(path.startsWith("/core") ? 3 : 1));
    const { schema, endpoints } = await get("OPTIONS /posts");
    const attachments = await get("OPTIONS /media");
    const args = [...endpoints, ...attachments.endpoints].flatMap(({ args }) => Object.keys(args));
    const names = new Set([...segments, ...Object.keys(schema.properties), ...args]);
    expect(names.size).toBeGreaterThan(60);
    const isFree = (base: string) => {
      try {
        contentSite({ taxonomies: { kind: { ...VALID, base } } });
        return true;
      } catch {
        return false;
      }
    };
    // Fields of media alone are no names of posts.
    const ofMedia = new Set([
      "alt_text",
      "caption",
      "description",
      "post",
      "generate_sub_sizes",
      "convert_format",
    ]);
    const known = [...names].filter((name) => name !== undefined && /^[a-z0-9_-]+$/.test(name));
    expect(known.filter((name) => name && !ofMedia.has(name) && isFree(name))).toEqual([]);
  });

  it("have no effect after the site was made", async () => {
    const supports: ("title" | "editor")[] = ["title"];
    const { get } = recipeSite({ types: { thing: { ...VALID, supports } }, taxonomies: {} });
    supports.push("editor");
    const { properties } = (await get("OPTIONS /thing")).schema;
    expect(Object.keys(properties)).not.toContain("content");
  });
});

describe("hostile names in requests", () => {
  it.each(["__proto__", "constructor", "toString", "recipes", "%00", "recipe%2f.."])(
    "find nothing: %s",
    async (name) => {
      const { call, get } = recipeSite();
      for (const path of [
        `/types/${name}`,
        `/taxonomies/${name}`,
        `/${name === "recipes" ? "recipe" : name}`,
      ]) {
        expect((await call(`GET ${path}`)).status, path).toBe(404);
      }
      await get("GET /search", 400, { query: { subtype: [name] } });
      await get("GET /users", 400, { query: { has_published_posts: [name] } });
      expect(await get("GET /taxonomies", 200, { query: { type: name } })).toEqual({});
      const body = { title: "x", type: "post_type_archive", object: name };
      await get("POST /menu-items", 400, { as: "administrator", body });
    },
  );
});
