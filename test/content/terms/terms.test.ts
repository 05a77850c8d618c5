import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { memoryStorage } from "../../../storage/memory/index.js";
import { type Call, type CallAnswer, callsOf } from "../../support/content-call.js";
import { contentSite, ROLES, type Role } from "../../support/content-site.js";

let call: Call;

beforeEach(() => {
  call = callsOf(contentSite());
});

const admin = { as: "administrator" } as const;

async function make(path: string, body: Record<string, string | number>): Promise<number> {
  const { status, body: term } = await call(`POST ${path}`, { ...admin, body });
  expect(status).toBe(201);
  return term.id as number;
}

const names = ({ body }: CallAnswer): string[] => body.map(({ name }: { name: string }) => name);
const code = ({ status, body }: CallAnswer): string => `${status} ${body.code}`;

describe("a term", () => {
  it("is answered with the fields, links and address of its taxonomy", async () => {
    const parent = await make("/categories", { name: "World" });
    const { status, headers, body } = await call("POST /categories", {
      ...admin,
      body: { name: "Asia", parent, description: "East <em>and</em> west" },
    });
    expect(status).toBe(201);
    expect(headers["Location"]).toBe(`http://localhost/core/v2/categories/${body.id}`);
    const { _links, ...fields } = body;
    expect(fields).toEqual({
      id: body.id,
      count: 0,
      description: "East <em>and</em> west",
      link: "http://localhost/category/world/asia/",
      name: "Asia",
      slug: "asia",
      taxonomy: "category",
      parent,
      meta: [],
    });
    expect(Object.keys(fields)).toEqual([
      "id",
      "count",
      "description",
      "link",
      "name",
      "slug",
      "taxonomy",
      "parent",
      "meta",
    ]);
    expect(_links.up).toEqual([{ href: `http://localhost/core/v2/categories/${parent}`, embeddable: true }]);
    expect(_links["wp:post_type"]).toEqual([
      { href: `http://localhost/core/v2/posts?categories=${body.id}` },
    ]);
    expect(_links.about).toEqual([{ href: "http://localhost/core/v2/taxonomies/category" }]);
  });

  it.each([
    ["/tags", "id,count,description,link,name,slug,taxonomy,meta", "http://localhost/tag/a/"],
    ["/menus", "id,description,name,slug,meta,locations,auto_add", undefined],
    [
      "/wp_pattern_category",
      "id,count,description,link,name,slug,taxonomy,meta",
      "http://localhost/?taxonomy=wp_pattern_category&term=a",
    ],
  ])("of %s has the fields of its taxonomy", async (path, fields, link) => {
    const id = await make(path, { name: "A" });
    const { body } = await call(`GET ${path}/${id}`, admin);
    const { _links, ...rest } = body;
    expect(Object.keys(rest).join()).toBe(fields);
    expect(rest.link).toBe(link);
    expect(_links.up).toBeUndefined();
  });

  it("shows less where it is embedded", async () => {
    const id = await make("/tags", { name: "A" });
    const { body } = await call(`GET /tags/${id}`, { query: { context: "embed" } });
    expect(Object.keys(body)).toEqual(["id", "link", "name", "slug", "taxonomy", "_links"]);
  });

  it("tells the methods that the caller may use on it", async () => {
    const id = await make("/tags", { name: "A" });
    const allow = async (as?: Role) =>
      (await call(`GET /tags/${id}`, { as })).body._links.self[0].targetHints.allow.join();
    expect(await allow()).toBe("GET");
    expect(await allow("contributor")).toBe("GET");
    expect(await allow("editor")).toBe("GET,POST,PUT,PATCH,DELETE");
  });

  it("is 404 under the path of another taxonomy, and if it does not exist", async () => {
    const id = await make("/tags", { name: "A" });
    for (const path of [`/categories/${id}`, "/tags/999", "/tags/99999999999999999999"]) {
      expect(code(await call(`GET ${path}`))).toBe("404 rest_term_invalid");
      expect(code(await call(`DELETE ${path}`, { ...admin, query: { force: true } }))).toBe(
        "404 rest_term_invalid",
      );
    }
  });

  it("stores a name and a description that nobody's browser runs", async () => {
    const id = await make("/tags", {
      name: "R&D <script>alert(1)</script> 1 < 2 > 0 &amp; more",
      description: '<a href="javascript:alert(1)" onclick="x()">a</a><script>alert(1)</script>',
    });
    const { body } = await call(`GET /tags/${id}`);
    expect(body.name).toBe("R&amp;D 1 &lt; 2 &gt; 0 &amp; more");
    expect(body.description).not.toMatch(/script|onclick/);
    await call(`PUT /tags/${id}`, { ...admin, body: { name: body.name } });
    expect((await call(`GET /tags/${id}`)).body.name).toBe(body.name);
  });

  it("counts the published posts in it", async () => {
    const id = await make("/tags", { name: "A" });
    for (const status of ["publish", "publish", "draft"]) {
      await call("POST /posts", { ...admin, body: { title: "a", tags: [id], status } });
    }
    expect((await call(`GET /tags/${id}`)).body.count).toBe(2);
  });
});

describe("a list of terms", () => {
  it("is by name whatever the case, and says how much there is", async () => {
    for (const name of ["banana", "Apple", "cherry", "Éclair"]) await make("/tags", { name });
    const first = await call("GET /tags", { query: { per_page: 3 } });
    expect(names(first)).toEqual(["Apple", "banana", "cherry"]);
    expect(first.headers).toMatchObject({
      "X-WP-Total": "4",
      "X-WP-TotalPages": "2",
      Link: '<http://localhost/core/v2/tags?per_page=3&page=2>; rel="next"',
    });
    expect(names(await call("GET /tags", { query: { per_page: 3, page: 2 } }))).toEqual(["Éclair"]);
    expect(names(await call("GET /tags", { query: { per_page: 3, page: 9 } }))).toEqual([]);
    expect(names(await call("GET /tags", { query: { offset: 1, per_page: 2 } }))).toEqual([
      "banana",
      "cherry",
    ]);
  });

  it("is ordered and narrowed by its arguments", async () => {
    const b = await make("/tags", { name: "b", slug: "z", description: "2" });
    const a = await make("/tags", { name: "a", slug: "y", description: "3" });
    const c = await make("/tags", { name: "ç", slug: "x", description: "1" });
    await call("POST /posts", { ...admin, body: { title: "t", tags: [c], status: "publish" } });
    const listed = async (query: { [name: string]: string | number | boolean }) =>
      names(await call("GET /tags", { query })).join("");
    expect(await listed({ orderby: "id" })).toBe("baç");
    expect(await listed({ orderby: "id", order: "desc" })).toBe("çab");
    expect(await listed({ orderby: "name", order: "desc" })).toBe("çba");
    expect(await listed({ orderby: "slug" })).toBe("çab");
    expect(await listed({ orderby: "description" })).toBe("çba");
    expect(await listed({ orderby: "count", order: "desc" })).toBe("çba");
    expect(await listed({ orderby: "include", include: `${c},${b}` })).toBe("çb");
    expect(await listed({ orderby: "include_slugs", slug: "y,z,nothing" })).toBe("ab");
    expect(await listed({ orderby: "include", include: `${c},${b}`, order: "desc" })).toBe("bç");
    expect(await listed({ orderby: "include_slugs", slug: "y,z", order: "desc" })).toBe("ba");
    expect(await listed({ orderby: "include", order: "desc" })).toBe(await listed({ order: "desc" }));
    expect(await listed({ orderby: "include_slugs" })).toBe(await listed({}));
    expect(await listed({ include: `${a},999` })).toBe("a");
    expect(await listed({ exclude: `${a}` })).toBe("bç");
    expect(await listed({ search: "C" })).toBe("ç");
    expect(await listed({ search: "Z" })).toBe("b");
    expect(await listed({ slug: "X" })).toBe("ç");
    expect(await listed({ hide_empty: true })).toBe("ç");
  });

  it("keeps an empty category that has a filled one below it", async () => {
    const top = await make("/categories", { name: "top" });
    const low = await make("/categories", { name: "low", parent: top });
    await make("/categories", { name: "bare", parent: top });
    await call("POST /posts", { ...admin, body: { title: "t", categories: [low], status: "publish" } });
    expect(names(await call("GET /categories", { query: { hide_empty: true } }))).toEqual(["low", "top"]);
    expect(names(await call("GET /categories", { query: { parent: top } }))).toEqual(["bare", "low"]);
    expect(names(await call("GET /categories", { query: { parent: 0 } }))).toEqual(["top", "Uncategorized"]);
  });

  it("of a post is for who may read the post", async () => {
    const tag = await make("/tags", { name: "a" });
    await make("/tags", { name: "b" });
    const { body: post } = await call("POST /posts", { ...admin, body: { title: "t", tags: [tag] } });
    const query = { post: post.id };
    expect(names(await call("GET /tags", { as: "editor", query }))).toEqual(["a"]);
    expect(code(await call("GET /tags", { query }))).toBe("401 rest_forbidden_context");
    expect(code(await call("GET /tags", { as: "author", query }))).toBe("403 rest_forbidden_context");
    expect(code(await call("GET /tags", { query: { post: 999 } }))).toBe("400 rest_post_invalid_id");
    await call(`PUT /posts/${post.id}`, { ...admin, body: { status: "publish" } });
    expect(names(await call("GET /tags", { query }))).toEqual(["a"]);
  });

  it.each([{ orderby: "email" }, { per_page: 101 }, { per_page: 0 }, { page: 0 }, { include: "a" }])(
    "refuses %j",
    async (query) => {
      expect((await call("GET /tags", { query })).status).toBe(400);
    },
  );
});

describe("a menu", () => {
  it("has the slug of its name, a name of its own, and keeps auto_add", async () => {
    const menu = await call("POST /menus", { ...admin, body: { name: "Main links", slug: "wanted" } });
    expect(menu.body).toMatchObject({ slug: "main-links", auto_add: false });
    const update = (body: Record<string, string | boolean>) =>
      call(`PUT /menus/${menu.body.id}`, { ...admin, body });
    expect((await update({ slug: "other", auto_add: true })).body).toMatchObject({
      slug: "main-links",
      auto_add: true,
    });
    expect((await update({ name: "Side links" })).body).toMatchObject({ slug: "side-links", auto_add: true });
    const other = await call("POST /menus", { ...admin, body: { name: "Foot" } });
    expect(code(await call("POST /menus", { ...admin, body: { name: "Side links" } }))).toBe(
      "400 menu_exists",
    );
    expect(code(await update({ name: "Foot" }))).toBe("400 menu_exists");
    expect((await update({ auto_add: false })).body.auto_add).toBe(false);
    for (const { body } of [menu, other])
      await call(`DELETE /menus/${body.id}`, { ...admin, query: { force: true } });
  });

  it.each(["/tags", "/menus", "/wp_pattern_category"])(
    "has no parent, as other flat terms: %s",
    async (path) => {
      const flat = { name: `Flat in ${path}`, parent: 1 };
      expect(code(await call(`POST ${path}`, { ...admin, body: flat }))).toBe(
        "400 rest_taxonomy_not_hierarchical",
      );
      const { body } = await call(`POST ${path}`, { ...admin, body: { name: flat.name, parent: null } });
      expect(code(await call(`PUT ${path}/${body.id}`, { ...admin, body: { parent: 0 } }))).toBe(
        "400 rest_taxonomy_not_hierarchical",
      );
    },
  );
});

describe("who may", () => {
  const READ = "administrator editor author contributor";
  const TABLE = [
    // path, reads, creates, edits and deletes
    ["/categories", `anonymous ${READ} subscriber`, "administrator editor", "administrator editor"],
    ["/tags", `anonymous ${READ} subscriber`, READ, "administrator editor"],
    ["/wp_pattern_category", `anonymous ${READ} subscriber`, READ, "administrator editor"],
    ["/menus", READ, "administrator", "administrator"],
  ] as const;

  it.each(TABLE)("read, create and change %s", async (path, readers, creators, editors) => {
    const id = await make(path, { name: "Given" });
    const allowed = async (expected: string, attempt: (as?: Role) => Promise<CallAnswer>): Promise<void> => {
      for (const as of [undefined, ...ROLES]) {
        const isAllowed = expected.split(" ").includes(as ?? "anonymous");
        const refused = as === undefined ? 401 : 403;
        const { status } = await attempt(as);
        expect(status < 300 ? "allowed" : status, as).toBe(isAllowed ? "allowed" : refused);
      }
    };
    await allowed(readers, (as) => call(`GET ${path}`, { as }));
    await allowed(readers, (as) => call(`GET ${path}/${id}`, { as }));
    await allowed(editors, (as) => call(`GET ${path}`, { as, query: { context: "edit" } }));
    await allowed(editors, (as) => call(`GET ${path}/${id}`, { as, query: { context: "edit" } }));
    await allowed(creators, (as) => call(`POST ${path}`, { as, body: { name: `By ${as}` } }));
    await allowed(editors, (as) => call(`PUT ${path}/${id}`, { as, body: { name: `Now ${as}` } }));
    await allowed(editors, async (as) => {
      const one = await make(path, { name: `For ${as}` });
      return call(`DELETE ${path}/${one}`, { as, query: { force: true } });
    });
  });

  it("delete the default category: nobody", async () => {
    const [{ id }] = (await call("GET /categories", { query: { slug: "uncategorized" } })).body;
    expect(code(await call(`DELETE /categories/${id}`, { ...admin, query: { force: true } }))).toBe(
      "403 rest_cannot_delete",
    );
    const renamed = await call(`PUT /categories/${id}`, { ...admin, body: { name: "Anything" } });
    expect(renamed.body).toMatchObject({ name: "Anything", slug: "uncategorized" });
  });
});

describe("writing a term", () => {
  it("refuses a name that another one beside it has, and tells which", async () => {
    const id = await make("/categories", { name: "News" });
    const again = await call("POST /categories", { ...admin, body: { name: "news" } });
    expect(code(again)).toBe("400 term_exists");
    expect(again.body.data).toEqual({ status: 400, term_id: id });

    const top = await make("/categories", { name: "Top" });
    const below = await call("POST /categories", { ...admin, body: { name: "News", parent: top } });
    expect(below.body.slug).toBe("news-top");
    const other = await make("/categories", { name: "Other", parent: top });
    await make("/categories", { name: "Taken", slug: "news-other" });
    const lower = await call("POST /categories", { ...admin, body: { name: "News", parent: other } });
    expect(lower.body.slug).toBe("news-other-top");
    const third = await call("POST /categories", {
      ...admin,
      body: { name: "More", slug: "news", parent: top },
    });
    expect(third.body.slug).toBe("news-top-2");
    const own = await call("POST /categories", { ...admin, body: { name: "News", slug: "own" } });
    expect(own.body.slug).toBe("own");

    const tag = await make("/tags", { name: "News" });
    const twin = await call("POST /tags", { ...admin, body: { name: "NEWS" } });
    expect(twin.body.data.term_id).toBe(tag);
  });

  it("gives every term a slug of its own", async () => {
    await make("/tags", { name: "C" });
    const slugs = [];
    for (const body of [{ name: "C++" }, { name: "C#" }, { name: "D", slug: "c" }, { name: "日本" }]) {
      slugs.push((await call("POST /tags", { ...admin, body })).body.slug);
    }
    expect(slugs).toEqual(["c-2", "c-3", "c-4", "%e6%97%a5%e6%9c%ac"]);
    const signs = await call("POST /tags", { ...admin, body: { name: "!!!" } });
    expect(signs.body.slug).toBe(String(signs.body.id));
  });

  it("lets terms of two taxonomies have one slug", async () => {
    await make("/tags", { name: "Same" });
    const { body } = await call("POST /categories", { ...admin, body: { name: "Same" } });
    expect(body.slug).toBe("same");
  });

  it("keeps what is not given, and refuses a slug that is taken", async () => {
    const id = await make("/tags", { name: "A", description: "d" });
    await make("/tags", { name: "B" });
    const renamed = await call(`PATCH /tags/${id}`, { ...admin, body: { name: "New" } });
    expect(renamed.body).toMatchObject({ name: "New", slug: "a", description: "d" });
    expect(code(await call(`PUT /tags/${id}`, { ...admin, body: { slug: "B" } }))).toBe(
      "400 duplicate_term_slug",
    );
    expect((await call(`PUT /tags/${id}`, { ...admin, body: { slug: "a" } })).body.slug).toBe("a");
    expect((await call(`PUT /tags/${id}`, { ...admin, body: { slug: "" } })).body.slug).toBe("new");
  });

  it.each([
    [{}, "400 rest_missing_callback_param"],
    [{ name: "" }, "400 empty_term_name"],
    [{ name: "<b></b>" }, "400 empty_term_name"],
    [{ name: "x".repeat(201) }, "400 rest_invalid_param"],
    [{ name: ["x"] }, "400 rest_invalid_param"],
    [{ name: "x", parent: 999 }, "400 rest_term_invalid"],
    [{ name: "x", parent: "top" }, "400 rest_invalid_param"],
  ])("refuses %j", async (body, expected) => {
    expect(code(await call("POST /categories", { ...admin, body }))).toBe(expected);
    expect((await call("GET /categories")).headers["X-WP-Total"]).toBe("1");
  });

  it("refuses a parent of another taxonomy, and any parent where there is no tree", async () => {
    const tag = await make("/tags", { name: "T" });
    expect(code(await call("POST /categories", { ...admin, body: { name: "x", parent: tag } }))).toBe(
      "400 rest_term_invalid",
    );
  });

  it("never makes a circle", async () => {
    const top = await make("/categories", { name: "top" });
    const mid = await make("/categories", { name: "mid", parent: top });
    const low = await make("/categories", { name: "low", parent: mid });
    for (const parent of [top, mid, low]) {
      const { body } = await call(`PUT /categories/${top}`, { ...admin, body: { parent } });
      expect(body.parent).toBe(0);
    }
    expect((await call(`PUT /categories/${low}`, { ...admin, body: { parent: top } })).body.parent).toBe(top);
  });

  it("stores one of two equal terms that two processes make at once", async () => {
    const storage = memoryStorage();
    const calls = [callsOf(contentSite({ storage })), callsOf(contentSite({ storage }))];
    await Promise.all(calls.map((one) => one("GET /categories")));
    const body = { name: "Race" };
    const answers = await Promise.all(
      [...calls, ...calls].map((one) => one("POST /categories", { ...admin, body })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ body }) => body.code === "term_exists")).toHaveLength(3);
    for (const one of calls) {
      const found = await one("GET /categories");
      expect(names(found)).toEqual(["Race", "Uncategorized"]);
    }
  });
});

describe("deleting a term", () => {
  it("needs force, answers what was, and moves up what lay below", async () => {
    const top = await make("/categories", { name: "top" });
    const mid = await make("/categories", { name: "mid", parent: top });
    const low = await make("/categories", { name: "low", parent: mid });
    expect(code(await call(`DELETE /categories/${mid}`, admin))).toBe("501 rest_trash_not_supported");
    const { status, body } = await call(`DELETE /categories/${mid}`, { ...admin, query: { force: true } });
    expect(status).toBe(200);
    expect(body).toMatchObject({ deleted: true, previous: { id: mid, name: "mid", parent: top } });
    expect((await call(`GET /categories/${mid}`)).status).toBe(404);
    expect((await call(`GET /categories/${low}`)).body.parent).toBe(top);
  });

  it("leaves posts without it, those without any other category in the default one", async () => {
    const category = await make("/categories", { name: "c" });
    const tag = await make("/tags", { name: "t" });
    const { body: post } = await call("POST /posts", {
      ...admin,
      body: { title: "p", status: "publish", categories: [category], tags: [tag] },
    });
    for (const path of [`/categories/${category}`, `/tags/${tag}`]) {
      await call(`DELETE ${path}`, { ...admin, query: { force: true } });
    }
    const { body } = await call(`GET /posts/${post.id}`);
    const [standard] = (await call("GET /categories", { query: { slug: "uncategorized" } })).body;
    expect(body).toMatchObject({ categories: [standard.id], tags: [] });
    expect(standard.count).toBe(1);
  });

  it("takes a menu's items with it, and the items that led to the term", async () => {
    const menu = await make("/menus", { name: "m" });
    const other = await make("/menus", { name: "o" });
    const tag = await make("/tags", { name: "t" });
    const item = (title: string, menus: number, more = {}) =>
      call("POST /menu-items", {
        ...admin,
        body: { title, menus, url: "https://example.org/", status: "publish", ...more },
      });
    await item("a", menu);
    await item("b", menu, { status: "draft" });
    await item("c", other);
    await item("d", other, { type: "taxonomy", object: "post_tag", object_id: tag });
    const query = { force: true };
    const left = async () => {
      const status = "publish,draft";
      const { body } = await call("GET /menu-items", { ...admin, query: { status, orderby: "title" } });
      return body.map(({ title }: { title: { rendered: string } }) => title.rendered).join("");
    };
    expect(await left()).toBe("abcd");
    await call(`DELETE /menus/${menu}`, { ...admin, query });
    expect(await left()).toBe("cd");
    await call(`DELETE /tags/${tag}`, { ...admin, query });
    expect(await left()).toBe("c");
  });
});

describe("whatever is written", () => {
  it("the tree stays a tree, slugs stay unique, and no answer is a 5xx", async () => {
    const NAMES = ["a", "A", "a b", "b", "%61", "<b>a</b>", "ä", "__proto__", "..", " ", "\u202ea"];
    const write = fc.record(
      {
        name: fc.constantFrom(...NAMES),
        slug: fc.constantFrom(...NAMES, ""),
        parent: fc.nat({ max: 8 }),
      },
      { requiredKeys: [] },
    );
    const step = fc.oneof(
      fc.record({ method: fc.constant("POST"), id: fc.constant(0), body: write }),
      fc.record({
        method: fc.constantFrom("PUT", "DELETE"),
        id: fc.integer({ min: 1, max: 8 }),
        body: write,
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        const on = callsOf(contentSite());
        for (const { method, id, body } of steps) {
          const path = id === 0 ? "/categories" : `/categories/${id}`;
          const options = method === "DELETE" ? { query: { force: true } } : { body };
          expect((await on(`${method} ${path}`, { ...admin, ...options })).status).toBeLessThan(500);
        }
        const { body: terms } = await on("GET /categories", { query: { per_page: 100 } });
        const slugs = terms.map(({ slug }: { slug: string }) => slug);
        expect(new Set(slugs).size).toBe(slugs.length);
        const parents = new Map<number, number>(
          terms.map(({ id, parent }: { id: number; parent: number }) => [id, parent]),
        );
        for (const id of parents.keys()) {
          const seen = new Set<number>();
          for (let at = id; at !== 0; at = parents.get(at) as number) {
            expect(parents.has(at)).toBe(true);
            expect(seen.has(at)).toBe(false);
            seen.add(at);
          }
        }
      }),
      { numRuns: 40 },
    );
  });
});
