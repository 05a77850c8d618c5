import { setTimeout as nextMoment } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { MetaOptions } from "../../src/content/index.js";
import type { ContentChanged } from "../../src/content/records/record-changes.js";
import type { Json, JsonObject } from "../../src/schema/types.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { type Call, callsOf } from "../support/content-call.js";
import { exported } from "../support/content-dump.js";
import { contentSite } from "../support/content-site.js";
import { CONTENT_STORAGES } from "../support/content-storages.js";
import { bytesOf } from "../support/wxr-file.js";

const META: MetaOptions = {
  post: {
    subtitle: { single: true, default: "none", revisions: true, schema: { maxLength: 40 } },
    steps: {},
    price: {
      type: "number",
      single: true,
      schema: { minimum: 0 },
      canWrite: "edit_others_posts",
      revisions: true,
    },
    kind: { single: true, schema: { enum: ["soup", "cake"] }, context: ["view", "edit", "embed"] },
    isVegan: { type: "boolean", single: true, default: true },
    origin: {
      type: "object",
      single: true,
      revisions: true,
      schema: {
        properties: { lat: { type: "number" }, names: { type: "array", items: { type: "string" } } },
      },
    },
    sizes: { type: "array", single: true, schema: { items: { type: "integer" } } },
    free: { type: "object", single: true, schema: { additionalProperties: true } },
    notes: { single: true, context: ["edit"] },
    rows: { type: "object", schema: { properties: { a: { type: "integer" } } } },
    _hidden: { single: true },
    own: { single: true, canWrite: ({ user, id, key }) => user.id === 2 && id > 0 && key === "own" },
  },
  attachment: { source: { single: true } },
  nav_menu_item: { icon: { single: true } },
};

const DEFAULTS = {
  subtitle: "none",
  steps: [],
  price: 0,
  kind: null,
  isVegan: true,
  origin: {},
  sizes: [],
  free: {},
  rows: [],
  _hidden: "",
  own: "",
};

const open = (meta: MetaOptions = META, more: Parameters<typeof contentSite>[0] = {}): Call =>
  callsOf(contentSite({ meta, ...more }));

const createPost = async (call: Call, meta: JsonObject = {}, more: JsonObject = {}): Promise<number> => {
  const body = { title: "Soup", content: "one", status: "publish", ...more, meta };
  const answer = await call("POST /posts", { as: "editor", body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body.id;
};

const readMeta = async (call: Call, id: number): Promise<JsonObject> => {
  const { body } = await call(`GET /posts/${id}`, { as: "editor", query: { context: "edit" } });
  const { inline_featured_image: _, footnotes: __, ...own } = body.meta;
  return own;
};

const write = (call: Call, id: number, meta: Json, as: "editor" | "author" | "contributor" = "editor") =>
  call(`POST /posts/${id}`, { as, body: { meta } });

const VALUES = {
  subtitle: "A “soup” & <b>more</b>",
  steps: ["wash", "cut, cook", ""],
  price: 2.5,
  kind: "soup",
  isVegan: false,
  origin: { lat: -0.5, names: ["x", "ü 😀"] },
  sizes: [3, 1, 3],
  free: { a: { b: [null, true, { c: "d" }] } },
  notes: "line\r\nline",
  rows: [{ a: 1 }, { a: 2 }],
};

describe.each(CONTENT_STORAGES.filter(([name]) => name !== "Redis"))("meta fields on %s", (_, storage) => {
  it("shows defaults, writes some keys, and leaves the others", async () => {
    const call = open(META, { storage: storage() });
    const id = await createPost(call);
    expect(await readMeta(call, id)).toEqual({ ...DEFAULTS, notes: "" });
    const { status, body } = await write(call, id, VALUES);
    expect(status).toBe(200);
    expect(body.meta).toMatchObject(VALUES);
    await write(call, id, { price: 3 });
    expect(await readMeta(call, id)).toEqual({ ...DEFAULTS, ...VALUES, price: 3 });
  });

  it("goes back to the default with null, and with an empty list for several values", async () => {
    const call = open(META, { storage: storage() });
    const id = await createPost(call, VALUES);
    const nulls = Object.fromEntries(Object.keys(VALUES).map((name) => [name, null]));
    expect((await write(call, id, { ...nulls, steps: [] })).status).toBe(200);
    expect(await readMeta(call, id)).toEqual({ ...DEFAULTS, notes: "" });
  });
});

describe("meta fields in responses", () => {
  it("are in the contexts of each key", async () => {
    const call = open();
    const id = await createPost(call, VALUES);
    const view = (await call(`GET /posts/${id}`)).body;
    expect(Object.keys(view.meta)).not.toContain("notes");
    expect(view.meta.subtitle).toBe(VALUES.subtitle);
    const embed = (await call(`GET /posts/${id}`, { query: { context: "embed" } })).body;
    expect(embed.meta).toEqual({ kind: "soup" });
  });

  it("are not embedded unless a key says so", async () => {
    const call = open({ post: { subtitle: { single: true } } });
    const id = await createPost(call);
    expect((await call(`GET /posts/${id}`, { query: { context: "embed" } })).body).not.toHaveProperty("meta");
  });

  it("are selected by _fields", async () => {
    const call = open();
    const id = await createPost(call, VALUES);
    const one = await call(`GET /posts/${id}`, { query: { _fields: "id,meta.subtitle" } });
    expect(one.body).toEqual({ id, meta: { subtitle: VALUES.subtitle } });
    const list = await call("GET /posts", { query: { _fields: "meta.origin.lat" } });
    expect(list.body).toEqual([{ meta: { origin: { lat: -0.5 } } }]);
  });

  it("keep what is no longer declared, without showing it", async () => {
    const storage = memoryStorage();
    const id = await createPost(open(META, { storage }), VALUES);
    const without = open({ post: { steps: {} } }, { storage });
    expect(await readMeta(without, id)).toEqual({ steps: VALUES.steps });
    await write(without, id, { steps: ["one"], subtitle: "lost" });
    expect(await readMeta(open(META, { storage }), id)).toMatchObject({
      subtitle: VALUES.subtitle,
      steps: ["one"],
    });
  });

  it("show null for a value that no longer fits, and refuse to forget it", async () => {
    const storage = memoryStorage();
    const id = await createPost(open(META, { storage }), { subtitle: "words", steps: ["a", "b"], price: 5 });
    const call = open(
      {
        post: {
          subtitle: { type: "integer", single: true },
          steps: { single: true },
          price: { type: "number" },
        },
      },
      { storage },
    );
    expect(await readMeta(call, id)).toEqual({ subtitle: null, steps: "a", price: [5] });
    const { status, body } = await write(call, id, { subtitle: null });
    expect([status, body.code]).toEqual([400, "rest_invalid_stored_value"]);
    expect((await write(call, id, { subtitle: 7 })).body.meta.subtitle).toBe(7);
  });

  it("belong to media and menu items too", async () => {
    const call = open();
    const body = { title: "Home", url: "https://www.example.org", meta: { icon: "house" } };
    const item = await call("POST /menu-items", { as: "administrator", body });
    expect([item.status, item.body.meta.icon]).toEqual([201, "house"]);
    const described = await call("OPTIONS /media");
    expect(described.body.schema.properties.meta.properties).toHaveProperty("source");
  });
});

describe("meta fields of a declared type", () => {
  const types = (supports: readonly "title"[] | readonly ["title", "custom-fields"]) => ({
    recipe: { base: "recipes", labels: { name: "Recipes", singular: "Recipe" }, supports },
  });
  const meta: MetaOptions = { recipe: { minutes: { type: "integer", single: true } } };

  it("are served like those of posts", async () => {
    const call = open(meta, { types: types(["title", "custom-fields"]) });
    const body = { title: "Soup", status: "publish", meta: { minutes: 20 } };
    const created = await call("POST /recipes", { as: "administrator", body });
    expect([created.status, created.body.meta]).toEqual([201, { minutes: 20 }]);
    expect((await call("GET /recipes")).body[0].meta).toEqual({ minutes: 20 });
  });

  it("need custom-fields", () => {
    expect(() => open(meta, { types: types(["title"]) })).toThrow(/meta.recipe.*custom-fields/);
  });
});

describe("the description of meta fields", () => {
  it("is in the schema and the arguments of OPTIONS", async () => {
    const { body } = await open()("OPTIONS /posts", { as: "editor" });
    const { properties } = body.schema.properties.meta;
    expect(properties.subtitle).toEqual({
      type: "string",
      default: "none",
      maxLength: 40,
      context: ["view", "edit"],
    });
    expect(properties.steps).toMatchObject({ type: "array", items: { type: "string" }, default: [] });
    expect(properties.origin).toMatchObject({ additionalProperties: false });
    const [, create] = body.endpoints;
    expect(create.args.meta.properties).toHaveProperty("kind.enum", ["soup", "cake"]);
  });

  it("is in the OpenAPI document, for requests and responses", () => {
    const { components, paths } = contentSite({ meta: META }).openApi() as ReturnType<typeof JSON.parse>;
    const { meta } = components.schemas["post.view"].properties;
    expect(meta.required).toContain("subtitle");
    expect(meta.properties.kind).toEqual({
      anyOf: [{ type: "string", enum: ["soup", "cake"] }, { type: "null" }],
    });
    expect(Object.keys(meta.properties)).not.toContain("notes");
    expect(Object.keys(components.schemas["post.embed"].properties.meta.properties)).toEqual(["kind"]);
    const { requestBody } = paths["/core/v2/posts"].post;
    expect(JSON.stringify(requestBody)).toContain(
      '"subtitle":{"default":"none","anyOf":[{"type":"string","maxLength":40},{"type":"null"}]}',
    );
  });
});

describe("an invalid value", () => {
  it.each<[JsonObject, string]>([
    [{ subtitle: ["a"] }, "rest_invalid_type"],
    [{ subtitle: { a: 1 } }, "rest_invalid_type"],
    [{ subtitle: "x".repeat(41) }, "rest_invalid_param"],
    [{ steps: { a: "b" } }, "rest_invalid_type"],
    [{ steps: ["a", null] }, "rest_invalid_type"],
    [{ steps: Array.from({ length: 1_001 }, () => "a") }, "rest_invalid_param"],
    [{ sizes: Array.from({ length: 9_000 }, () => 1) }, "rest_invalid_param"],
    [{ price: -1 }, "rest_out_of_bounds"],
    [{ price: "cheap" }, "rest_invalid_type"],
    [{ kind: "" }, "rest_not_in_enum"],
    [{ origin: { lat: "north" } }, "rest_invalid_type"],
    [{ origin: { lon: 1 } }, "rest_additional_properties_forbidden"],
    [{ origin: JSON.parse('{"__proto__":{"lat":1}}') }, "rest_additional_properties_forbidden"],
    [{ free: JSON.parse('{"a":{"__proto__":{"isAdmin":true}}}') }, "rest_additional_properties_forbidden"],
    [{ free: JSON.parse(`${'{"a":'.repeat(17)}1${"}".repeat(17)}`) }, "rest_nested_too_deep"],
    [{ notes: "x".repeat(1_000_000) }, "rest_too_long"],
    [{ notes: "ü".repeat(32_768) }, "rest_too_long"],
  ])("%# is refused, and nothing is written", async (meta, code) => {
    const call = open();
    const id = await createPost(call, VALUES);
    const body = { title: "Changed", meta: { isVegan: true, ...meta } };
    const answer = await call(`POST /posts/${id}`, { as: "editor", body });
    expect([answer.status, answer.body.code]).toEqual([400, code]);
    expect(answer.body.message).toMatch(/meta/);
    const { title, meta: kept } = (await call(`GET /posts/${id}`)).body;
    expect([title.rendered, kept.isVegan]).toEqual(["Soup", false]);
    expect(({} as { isAdmin?: unknown }).isAdmin).toBeUndefined();
  });

  it("leaves no post behind", async () => {
    const call = open();
    const body = { title: "x", status: "publish", meta: { price: -1 } };
    expect((await call("POST /posts", { as: "editor", body })).status).toBe(400);
    expect((await call("GET /posts")).body).toEqual([]);
  });

  it("does not count for keys that are not declared", async () => {
    const call = open();
    const id = await createPost(call);
    const meta = JSON.parse(
      '{"unknown":{"a":1},"__proto__":{"subtitle":"p"},"constructor":"c","toString":1}',
    );
    expect((await write(call, id, meta)).status).toBe(200);
    expect(await readMeta(call, id)).toEqual({ ...DEFAULTS, notes: "" });
    expect((await write(call, id, "text")).body.code).toBe("rest_invalid_param");
  });

  it("may have names such as constructor in a free object", async () => {
    const call = open();
    const free = { constructor: { prototype: { x: 1 } }, toString: "y" };
    const id = await createPost(call, { free });
    expect((await readMeta(call, id))["free"]).toEqual(free);
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it("is one that makes all values of a post too large", async () => {
    const keys = Array.from({ length: 5 }, (_, index) => [`text${index}`, { single: true }] as const);
    const call = open({ post: Object.fromEntries(keys) });
    const id = await createPost(call);
    const text = "x".repeat(60_000);
    for (const [name] of keys.slice(0, 4)) expect((await write(call, id, { [name]: text })).status).toBe(200);
    const { status, body } = await write(call, id, { text4: text });
    expect([status, body.code]).toEqual([400, "rest_too_long"]);
  });
});

describe("who may write a key", () => {
  const author = async (call: Call): Promise<number> => {
    const body = { title: "Mine", status: "publish", meta: { subtitle: "mine" } };
    return (await call("POST /posts", { as: "author", body })).body.id;
  };

  it("needs the capability", async () => {
    const call = open();
    const id = await author(call);
    const { status, body } = await write(call, id, { subtitle: "new", price: 1 }, "author");
    expect([status, body.code, body.data]).toEqual([
      403,
      "rest_cannot_update",
      { key: "price", status: 403 },
    ]);
    expect(await readMeta(call, id)).toMatchObject({ subtitle: "mine", price: 0 });
    expect((await write(call, id, { price: 1 })).status).toBe(200);
    expect((await write(call, id, { price: null }, "author")).status).toBe(403);
  });

  it("is not asked for a value that stays the same", async () => {
    const call = open();
    const id = await author(call);
    await write(call, id, { price: 4 });
    expect((await write(call, id, { price: 4, subtitle: "sent back" }, "author")).status).toBe(200);
  });

  it("is asked for a default that is not stored, a list and a reset, as in WordPress", async () => {
    const call = open({
      post: {
        price: { type: "number", single: true, default: 1, canWrite: "edit_others_posts" },
        steps: { canWrite: "edit_others_posts" },
      },
    });
    const id = await author(call);
    await write(call, id, { steps: ["a"] });
    const codeOf = async (meta: JsonObject) => (await write(call, id, meta, "author")).body.code;
    expect(await codeOf({ price: 1 })).toBe("rest_cannot_update");
    expect(await codeOf({ steps: ["a"] })).toBe("rest_cannot_update");
    expect(await codeOf({ price: null })).toBe("rest_cannot_delete");
    expect(await codeOf({ steps: [] })).toBe("rest_cannot_delete");
  });

  it("is asked for a new post, an autosave and a batch too", async () => {
    const call = open();
    const id = await author(call);
    const meta = { price: 1 };
    const created = await call("POST /posts", { as: "author", body: { title: "x", meta } });
    const saved = await call(`POST /posts/${id}/autosaves`, { as: "author", body: { content: "y", meta } });
    expect([created.body.code, saved.body.code]).toEqual(["rest_cannot_update", "rest_cannot_update"]);
    const site = contentSite({ meta: META });
    const batch = await site.request({
      method: "POST",
      path: "/batch/v1",
      as: 3,
      body: { requests: [{ method: "POST", path: "/core/v2/posts", body: { title: "x", meta } }] },
    });
    expect((batch.body as ReturnType<typeof JSON.parse>).responses[0].body.code).toBe("rest_cannot_update");
  });

  it("is decided by the function of the host", async () => {
    const call = open();
    const id = await author(call);
    expect((await write(call, id, { own: "x" }, "author")).status).toBe(403);
    expect((await write(call, id, { own: "x" })).status).toBe(200);
  });

  it("is nobody for a key with an underscore, as in WordPress", async () => {
    const call = open();
    expect((await write(call, await author(call), { _hidden: "x" })).body.code).toBe("rest_cannot_update");
  });

  it.each([
    () => {
      throw new Error("broken");
    },
    (async () => true) as never,
    (async () => {
      throw new Error("broken");
    }) as never,
    (() => 1) as never,
  ])("is nobody if the function fails (%#)", async (canWrite: () => boolean) => {
    const call = open({ post: { own: { single: true, canWrite } } }, { logger: false });
    const id = await createPost(call);
    expect((await write(call, id, { own: "x" })).status).toBe(500);
    expect((await readMeta(call, id))["own"]).toBe("");
    await nextMoment(0);
  });

  it("never includes somebody who may not edit the post", async () => {
    const call = open({ post: { own: { single: true, canWrite: () => true } } });
    const id = await createPost(call);
    expect((await write(call, id, { own: "x" }, "contributor")).body.code).toBe("rest_cannot_edit");
    const anonymous = await call(`POST /posts/${id}`, { body: { meta: { own: "x" } } });
    expect(anonymous.status).toBe(401);
  });
});

describe("revisions and autosaves", () => {
  it("hold the keys that say so, and a restored revision brings them back", async () => {
    const site = contentSite({ meta: META });
    const call = callsOf(site);
    const id = await createPost(call);
    await write(call, id, { subtitle: "first", origin: { lat: 1 }, steps: ["a"] });
    await write(call, id, { subtitle: "second", origin: { lat: 2 }, steps: ["b"] });
    const list = await call(`GET /posts/${id}/revisions`, { as: "editor" });
    expect(
      list.body.map(({ meta }: { meta: JsonObject }) => [meta["subtitle"], meta["origin"], meta["steps"]]),
    ).toEqual([
      ["second", { lat: 2 }, []],
      ["first", { lat: 1 }, []],
    ]);
    // The same values in a new object are no change.
    await write(call, id, { subtitle: "second", origin: { lat: 2 } });
    expect((await call(`GET /posts/${id}/revisions`, { as: "editor" })).body).toHaveLength(2);
    await site.restoreRevision({ postId: id, revisionId: list.body[1].id, as: 2 });
    expect(await readMeta(call, id)).toMatchObject({ subtitle: "first", origin: { lat: 1 }, steps: ["b"] });
  });

  it("do not let an author restore a value that he may not write", async () => {
    const site = contentSite({ meta: META });
    const call = callsOf(site);
    const created = await call("POST /posts", { as: "author", body: { title: "x", status: "publish" } });
    const { id } = created.body;
    await write(call, id, { price: 1 });
    await write(call, id, { price: 2 });
    const list = await call(`GET /posts/${id}/revisions`, { as: "author" });
    await expect(site.restoreRevision({ postId: id, revisionId: list.body[1].id, as: 3 })).rejects.toThrow(
      /price custom field/,
    );
    expect((await readMeta(call, id))["price"]).toBe(2);
  });

  it("autosave the keys of revisions beside the post", async () => {
    const call = open();
    const id = await createPost(call, { subtitle: "stored" });
    const saved = await call(`POST /posts/${id}/autosaves`, {
      as: "editor",
      body: { content: "draft", meta: { subtitle: "typed", steps: ["typed"] } },
    });
    expect([saved.status, saved.body.meta.subtitle, saved.body.meta.steps]).toEqual([200, "typed", []]);
    expect((await readMeta(call, id))["subtitle"]).toBe("stored");
  });

  it("autosave no key that the author of a published post may not write", async () => {
    const call = open();
    const body = { title: "x", status: "publish" };
    const { id } = (await call("POST /posts", { as: "author", body })).body;
    const save = (meta: JsonObject) =>
      call(`POST /posts/${id}/autosaves`, { as: "author", body: { content: "y", meta } });
    const refused = await save({ price: 1 });
    expect([refused.status, refused.body.code]).toEqual([403, "rest_cannot_update"]);
    expect((await save({ subtitle: "typed" })).body.meta.subtitle).toBe("typed");
  });
});

describe("several writers and changes", () => {
  it("keeps the keys of everybody who writes at once", async () => {
    const call = open();
    const id = await createPost(call);
    const names = ["subtitle", "notes", "own"];
    await Promise.all(names.map((name) => write(call, id, { [name]: name })));
    expect(await readMeta(call, id)).toMatchObject({ subtitle: "subtitle", notes: "notes", own: "own" });
  });

  it("reports a changed key, and writes through a batch", async () => {
    const changes: ContentChanged[] = [];
    const site = contentSite({ meta: META, changed: (change) => changes.push(change) });
    const id = await createPost(callsOf(site));
    const before = changes.length;
    const { body } = await site.request({
      method: "POST",
      path: "/batch/v1",
      as: 2,
      body: {
        requests: [
          { method: "POST", path: `/core/v2/posts/${id}`, body: { meta: { subtitle: "one" } } },
          { method: "POST", path: `/core/v2/posts/${id}`, body: { meta: { price: -1 } } },
        ],
      },
    });
    const { responses } = body as ReturnType<typeof JSON.parse>;
    expect(responses.map(({ status }: { status: number }) => status)).toEqual([200, 400]);
    expect(changes.slice(before)).toHaveLength(1);
  });
});

describe("WXR files", () => {
  it("bring every value to another site", async () => {
    const site = contentSite({ meta: META });
    const tricky = {
      subtitle: 's:1:"a";',
      steps: ["i:5;", "a:0:{}", "]]>", " blank "],
      free: { "0": "x", list: [], "a b": { n: 1e21, f: 0.1, t: "cr\r\nlf ]]>", nul: null } },
    };
    const id = await createPost(callsOf(site), { ...VALUES, ...tricky });
    await createPost(callsOf(site), {}, { title: "Without" });
    const file = await exported(site);
    expect(file).toContain("<![CDATA[a:2:{");
    expect(file.split("<![CDATA[steps]]>")).toHaveLength(5);
    // A reader of XML takes a carriage return for a line feed.
    expect(file).not.toContain("\r");
    const copy = contentSite({ meta: META });
    const summary = await copy.import(bytesOf(file), { as: 1, trust: true });
    expect(summary.notHeld).toEqual({});
    const [with_] = (await callsOf(copy)("GET /posts", { query: { search: "Soup" } })).body;
    expect(await readMeta(callsOf(copy), with_.id)).toEqual(await readMeta(callsOf(site), id));
    expect(await exported(copy)).toContain("a:2:{");
  });

  it("of WordPress are read by the types of the keys, and unfit values are left out", async () => {
    const site = contentSite({ meta: META });
    const meta = [
      ["subtitle", "From afar"],
      ["steps", "one"],
      ["steps", "two"],
      ["price", "-5"],
      ["isVegan", ""],
      ["sizes", 'a:2:{i:0;s:1:"4";i:1;i:2;}'],
      ["origin", 'a:1:{s:3:"lat";d:1.5;}'],
      ["free", 'a:1:{s:9:"__proto__";a:1:{s:1:"x";i:1;}}'],
      ["rows", 'O:8:"stdClass":0:{}'],
      ["other", "x"],
    ];
    const rows = meta.map(
      ([name, value]) =>
        `<wp:postmeta><wp:meta_key>${name}</wp:meta_key><wp:meta_value><![CDATA[${value}]]></wp:meta_value></wp:postmeta>`,
    );
    const file = (await exported(contentSite())).replace(
      "</channel>",
      `<item><title>Far</title><wp:post_id>7</wp:post_id><wp:post_name>far</wp:post_name><wp:status>publish</wp:status><wp:post_type>post</wp:post_type>${rows.join("")}</item></channel>`,
    );
    const summary = await site.import(bytesOf(file), { as: 1, trust: true });
    const [{ id }] = (await callsOf(site)("GET /posts")).body;
    expect(await readMeta(callsOf(site), id)).toEqual({
      ...DEFAULTS,
      notes: "",
      subtitle: "From afar",
      steps: ["one", "two"],
      isVegan: false,
      sizes: [4, 2],
      origin: { lat: 1.5 },
    });
    expect(Object.keys(summary.notHeld).sort()).toEqual([
      "meta free",
      "meta other",
      "meta price",
      "meta rows",
    ]);
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });
});

describe("the option meta", () => {
  const nested = (levels: number): JsonObject =>
    levels === 0 ? { type: "string" } : { type: "array", items: nested(levels - 1) };
  const cyclic: { [name: string]: unknown } = { type: "object" };
  cyclic["properties"] = { a: cyclic };

  it.each<[unknown, string]>([
    [[], "meta"],
    [{ nothing: {} }, "meta.nothing"],
    [{ category: { a: {} } }, "meta.category"],
    [{ wp_navigation: { a: {} } }, "meta.wp_navigation"],
    [{ post: [] }, "meta.post"],
    [{ post: { a: null } }, "meta.post.a"],
    [{ post: { a: { type: "text" } } }, "meta.post.a.type"],
    [{ post: { a: { singel: true } } }, "meta.post.a.singel"],
    [{ post: { a: { default: 1 } } }, "meta.post.a.default"],
    [{ post: { a: { default: 1n } } }, "meta.post.a.default"],
    [{ post: { a: { context: ["all"] } } }, "meta.post.a.context"],
    [{ post: { a: { canWrite: true } } }, "meta.post.a.canWrite"],
    [{ post: { a: { type: "array" } } }, "meta.post.a.schema.items"],
    [{ post: { a: { type: "object" } } }, "meta.post.a.schema.properties"],
    [{ post: { a: { schema: { type: "integer" } } } }, "meta.post.a.schema.type"],
    [{ post: { a: { schema: { pattern: "(a+)+$" } } } }, "meta.post.a.schema.pattern"],
    [{ post: { a: { schema: { maxLength: -1 } } } }, "meta.post.a.schema.maxLength"],
    [{ post: { a: { schema: { anyOf: [] } } } }, "meta.post.a.schema.anyOf"],
    [{ post: { a: { type: "array", schema: { items: {} } } } }, "meta.post.a.schema.items.type"],
    [{ post: { a: { type: "object", schema: cyclic } } }, "meta.post.a.schema"],
    [{ post: { a: { type: "array", schema: nested(60) } } }, "meta.post.a.schema"],
    [{ post: { footnotes: {} } }, "meta.post.footnotes"],
    [{ post: { constructor: {} } }, "meta.post.constructor"],
    [{ post: JSON.parse('{"__proto__":{}}') }, "meta.post.__proto__"],
    [{ post: { _thumbnail_id: {} } }, "meta.post._thumbnail_id"],
    [{ post: { "a\u0000": {} } }, "meta.post"],
    [{ post: { ["a".repeat(256)]: {} } }, "meta.post"],
    [{ post: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`k${n}`, {}])) }, "meta.post"],
    [{ attachment: { a: { revisions: true } } }, "meta.attachment.a.revisions"],
  ])("refuses %#", (meta, field) => {
    expect(() => contentSite({ meta: meta as MetaOptions })).toThrow(
      expect.objectContaining({ code: "invalid_option", field }),
    );
  });

  it("refuses a schema of too many levels at the level", () => {
    expect(() => open({ post: { a: { type: "array", schema: nested(9) } } })).toThrow(/more than 8 levels/);
  });

  it("takes 100 keys", async () => {
    const keys = Array.from({ length: 100 }, (_, index) => [`key${index}`, { single: true }]);
    const call = open({ post: Object.fromEntries(keys) });
    const id = await createPost(call, Object.fromEntries(keys.map(([name]) => [name as string, "x"])));
    expect(Object.values(await readMeta(call, id))).toEqual(Array.from({ length: 100 }, () => "x"));
  });
});
