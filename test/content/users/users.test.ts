import { describe, expect, it } from "vitest";
import type { User } from "../../../src/content/records/records.js";
import { createUsers, type UsersOption } from "../../../src/content/users/users.js";
import { isPostbellError } from "../../../src/core/errors.js";
import { type Logger, silentLogger } from "../../../src/core/logger.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite, idOf, ROLES } from "../../support/content-site.js";

const people: readonly User[] = ROLES.map((role, at) => ({
  id: at + 1,
  slug: `${role}-slug`,
  name: `The ${role}`,
  roles: [role],
  email: `${role}@example.org`,
  url: `https://example.org/${role}`,
  description: `About the ${role}`,
}));

const code = ({ status, body }: { status: number; body: { code?: string } }): string =>
  `${status} ${body.code}`;
const ids = ({ body }: { body: { id: number }[] }): number[] => body.map(({ id }) => id);
const [administrator, editor, author, contributor, subscriber] = ROLES.map(idOf) as [
  number,
  number,
  number,
  number,
  number,
];

/**
 * A site on which the author has published a post, the editor a page, and the contributor has
 * written a draft.
 */
async function published(users: UsersOption = people) {
  const site = contentSite({ users });
  const call = callsOf(site);
  await call("POST /posts", { as: "author", body: { title: "a", status: "publish" } });
  await call("POST /pages", { as: "editor", body: { title: "a", status: "publish" } });
  await call("POST /posts", { as: "contributor", body: { title: "a" } });
  return call;
}

describe("users", () => {
  it("are shown to strangers when they have published something, and without anything private", async () => {
    const call = await published();
    for (const as of [undefined, "subscriber", "author", "editor"] as const) {
      const list = await call("GET /users", { as });
      expect(ids(list), String(as)).toEqual([author, editor]);
      expect(JSON.stringify(list)).not.toMatch(/@example|roles|capabilities|username/);
      expect((await call(`GET /users/${author}`, { as })).status).toBe(200);
    }
    const { body } = await call(`GET /users/${author}`);
    const { _links, ...fields } = body;
    expect(fields).toEqual({
      id: author,
      name: "The author",
      avatar_urls: {},
      url: "https://example.org/author",
      description: "About the author",
      link: "http://localhost/author/author-slug/",
      slug: "author-slug",
      meta: [],
    });
    expect(_links.collection).toEqual([{ href: "http://localhost/core/v2/users" }]);
  });

  it("appear and disappear with what they have published", async () => {
    const call = await published();
    const { body: post } = await call("POST /posts", {
      as: "administrator",
      body: { title: "b", status: "publish" },
    });
    expect(ids(await call("GET /users"))).toContain(administrator);
    await call(`PUT /posts/${post.id}`, { as: "administrator", body: { status: "private" } });
    expect(ids(await call("GET /users"))).not.toContain(administrator);
  });

  it("who have published nothing look like nobody to strangers", async () => {
    const call = await published();
    for (const as of [undefined, "subscriber", "editor"] as const) {
      const [hidden, unknown] = await Promise.all([
        call(`GET /users/${contributor}`, { as }),
        call("GET /users/999", { as }),
      ]);
      expect(hidden).toEqual(unknown);
      expect(code(hidden)).toBe("404 rest_user_invalid_id");
    }
    expect((await call(`GET /users/${contributor}`, { as: "contributor" })).status).toBe(200);
    expect((await call(`GET /users/${contributor}`, { as: "administrator" })).status).toBe(200);
  });

  it("are all listed to who manages users", async () => {
    const call = await published();
    const as = "administrator";
    const all = await call("GET /users", { as, query: { orderby: "id" } });
    expect(ids(all)).toEqual([1, 2, 3, 4, 5]);
    expect(all.headers).toMatchObject({ "X-WP-Total": "5", "X-WP-TotalPages": "1" });
    const { body } = await call("GET /users", { as, query: { context: "edit", search: "Editor" } });
    expect(body).toHaveLength(1);
    expect(body[0]).toMatchObject({
      email: "editor@example.org",
      roles: ["editor"],
      capabilities: { edit_others_posts: true, editor: true },
      extra_capabilities: { editor: true },
    });
    expect(body[0].capabilities).not.toHaveProperty("edit_theme_options");
  });

  it("are narrowed and ordered by the arguments of the list", async () => {
    const call = await published();
    const listed = async (query: { [name: string]: string | number }) =>
      ids(await call("GET /users", { as: "administrator", query })).join("");
    expect(await listed({})).toBe("13425");
    expect(await listed({ order: "desc" })).toBe("52431");
    expect(await listed({ orderby: "slug", per_page: 2, page: 2 })).toBe("42");
    expect(await listed({ offset: 3 })).toBe("25");
    expect(await listed({ include: "5,2", orderby: "include" })).toBe("52");
    expect(await listed({ slug: "editor-slug,author-slug", orderby: "include_slugs" })).toBe("23");
    expect(await listed({ include: "5,2", orderby: "include", order: "desc" })).toBe("25");
    expect(await listed({ orderby: "include", order: "desc" })).toBe(
      await listed({ orderby: "slug", order: "desc" }),
    );
    expect(await listed({ exclude: "1,2,3" })).toBe("45");
    expect(await listed({ roles: "editor,author" })).toBe("32");
    expect(await listed({ search: "AUTHOR" })).toBe("3");
    expect(await listed({ capabilities: "edit_pages" })).toBe("12");
    expect(await listed({ capabilities: "upload_files,edit_theme_options" })).toBe("132");
    expect(await listed({ capabilities: "subscriber" })).toBe("5");
    expect(await listed({ capabilities: "nobody_has_this" })).toBe("");
    expect(await listed({ has_published_posts: "true" })).toBe("32");
    expect(await listed({ has_published_posts: "page" })).toBe("2");
    expect(await listed({ has_published_posts: "page,post" })).toBe("32");
    expect(await listed({ has_published_posts: "wp_block" })).toBe("");
    expect(await listed({ has_published_posts: "false" })).toBe("13425");
    expect(await listed({ orderby: "email", order: "desc" })).toBe("52431");
    expect(await listed({ orderby: "url" })).toBe("13425");
    expect(await listed({ orderby: "registered_date", order: "desc" })).toBe("54321");
    expect(await listed({ search: "author@", search_columns: "email" })).toBe("3");
    expect(await listed({ search: "4", search_columns: "id,name" })).toBe("4");
    expect(await listed({ search: "the", search_columns: "slug" })).toBe("");
  });

  it("are filtered by nothing that is not served, and by nothing that tells strangers more", async () => {
    const call = await published();
    for (const query of [
      { has_published_posts: "x" },
      { has_published_posts: ["post", "x"] },
      { search_columns: "username" },
      { orderby: "nope" },
      { capabilities: Array.from({ length: 101 }, () => "read") },
    ]) {
      const { status, body } = await call("GET /users", { as: "administrator", query });
      expect([status, body.code, Object.keys(body.data.params)]).toEqual([
        400,
        "rest_invalid_param",
        Object.keys(query),
      ]);
    }
    for (const orderby of ["email", "registered_date"]) {
      expect(code(await call("GET /users", { query: { orderby } }))).toBe("401 rest_forbidden_orderby");
      expect(code(await call("GET /users", { as: "editor", query: { orderby } }))).toBe(
        "403 rest_forbidden_orderby",
      );
    }
    expect(code(await call("GET /users", { query: { capabilities: "read" } }))).toBe(
      "401 rest_user_cannot_view",
    );
    const query = { search: "@example.org", search_columns: "email" };
    expect(ids(await call("GET /users", { as: "editor", query }))).toEqual([]);
    expect(ids(await call("GET /users", { query: { has_published_posts: "page", orderby: "url" } }))).toEqual(
      [editor],
    );
  });

  it("are never found, ordered or told apart by what is private", async () => {
    const call = await published();
    const as = "administrator";
    expect(ids(await call("GET /users", { as, query: { search: "@example.org" } }))).toEqual([]);
    expect(code(await call("GET /users", { query: { roles: "editor" } }))).toBe("401 rest_user_cannot_view");
    expect(code(await call("GET /users", { as: "editor", query: { context: "edit" } }))).toBe(
      "403 rest_forbidden_context",
    );
    expect(code(await call(`GET /users/${author}`, { as: "editor", query: { context: "edit" } }))).toBe(
      "403 rest_forbidden_context",
    );
    expect(code(await call(`GET /users/${author}`, { query: { context: "edit" } }))).toBe(
      "401 rest_forbidden_context",
    );
  });

  it("who could be authors are listed to who writes", async () => {
    const call = await published();
    const query = { who: "authors" };
    expect(ids(await call("GET /users", { as: "editor", query }))).toEqual([
      administrator,
      author,
      contributor,
      editor,
    ]);
    expect(code(await call("GET /users", { as: "subscriber", query }))).toBe("403 rest_forbidden_who");
    expect(code(await call("GET /users", { query }))).toBe("401 rest_forbidden_who");
  });

  it("cannot be created, changed or deleted", async () => {
    const call = await published();
    const body = { name: "Mallory", roles: ["administrator"] };
    for (const request of ["POST /users", `DELETE /users/${subscriber}`]) {
      expect(code(await call(request, { as: "administrator", body }))).toBe("404 rest_no_route");
    }
    const change = await call(`PUT /users/${subscriber}`, { as: "administrator", body });
    expect(code(change)).toBe("403 rest_cannot_edit");
  });
});

describe("/users/me", () => {
  it("is the caller, with what only he may see in the context edit", async () => {
    const call = await published();
    const { body } = await call("GET /users/me", { as: "subscriber" });
    expect(body).toMatchObject({ id: subscriber, slug: "subscriber-slug" });
    expect(body).not.toHaveProperty("email");
    const own = await call("GET /users/me", { as: "subscriber", query: { context: "edit" } });
    expect(own.body).toMatchObject({ email: "subscriber@example.org", capabilities: { read: true } });
    expect(
      (await call(`GET /users/${subscriber}`, { as: "subscriber", query: { context: "edit" } })).body,
    ).toEqual(own.body);
  });

  it("is nobody for anonymous callers", async () => {
    const call = await published();
    const refused = await call("GET /users/me");
    expect(code(refused)).toBe("401 rest_not_logged_in");
    expect(refused.headers["Allow"]).toBe("GET");
    expect(code(await call("PUT /users/me", { body: { meta: {} } }))).toBe("401 rest_not_logged_in");
  });
});

describe("users from functions of the host", () => {
  const clock = manualClock(0);
  const make = (users: unknown, logger: Logger = silentLogger) =>
    createUsers({ users: users as UsersOption, clock, logger });

  it("serve like a list", async () => {
    const call = await published({
      get: async (id) => people.find((user) => user.id === id),
      list: async ({ page, perPage }) => ({
        users: people.slice((page - 1) * perPage, page * perPage),
        total: people.length,
      }),
    });
    expect(ids(await call("GET /users"))).toEqual([author, editor]);
    expect(ids(await call("GET /users", { as: "administrator" }))).toHaveLength(5);
  });

  it("are read page by page, at most every ten seconds however often they are asked for", async () => {
    const pages: number[] = [];
    const many = Array.from({ length: 250 }, (_, at) => ({ ...(people[0] as User), id: at + 1 }));
    const users = make({
      get: () => null,
      list: ({ page, perPage }: { page: number; perPage: number }) => {
        pages.push(page);
        return { users: many.slice((page - 1) * perPage, page * perPage), total: many.length };
      },
    });
    const before = users.stamp();
    const [one, two] = await Promise.all([users.all(), users.all()]);
    expect(one.map(({ id }) => id)).toEqual(many.map(({ id }) => id));
    expect(two).toBe(one);
    expect(await users.all()).toBe(one);
    expect(pages).toEqual([1, 2, 3]);
    await clock.advance(10_000);
    await users.all();
    expect(pages).toEqual([1, 2, 3, 1, 2, 3]);
    expect(users.stamp()).toBeGreaterThan(before);
  });

  it("end where the host's pages never do", async () => {
    const users = make({
      get: () => null,
      list: ({ page }: { page: number }) => ({
        users: Array.from({ length: 100 }, (_, at) => ({ ...(people[0] as User), id: page * 100 + at })),
        total: Number.POSITIVE_INFINITY,
      }),
    });
    expect(await users.all()).toHaveLength(10_000);
    const empty = make({ get: () => null, list: () => ({ users: [], total: 1e9 }) });
    expect(await empty.all()).toEqual([]);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("secret of the host");
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("secret of the host");
      },
    ],
    ["answers no user", () => ({ id: 3, name: "x" })],
    ["answers another user", () => people[0]],
    ["answers a user without a list of roles", () => ({ ...people[2], roles: "administrator" })],
    ["answers a user with roles that are no names", () => ({ ...people[2], roles: [1] })],
  ])("are 503 and logged when get %s", async (_, get) => {
    const logged: string[] = [];
    const users = make(
      { get, list: get },
      { ...silentLogger, warn: (_fields, message) => logged.push(message) },
    );
    const error = await (async () => users.get(author))().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 503, code: "rest_users_unavailable" });
    expect(String(error)).not.toContain("secret");
    expect(logged).toHaveLength(1);
    await expect((async () => users.all())()).rejects.toMatchObject({ status: 503 });
  });

  it("are 503 when the host does not answer within five seconds, and retried the next time", async () => {
    let isAway = true;
    const users = make({
      get: () => (isAway ? new Promise(() => {}) : people[2]),
      list: () => (isAway ? new Promise(() => {}) : { users: people, total: 5 }),
    });
    const answers = Promise.allSettled([users.get(author), users.all()]);
    await clock.advance(5_000);
    for (const answer of await answers) {
      expect(answer).toMatchObject({ status: "rejected", reason: { status: 503 } });
    }
    isAway = false;
    expect(await users.get(author)).toMatchObject({ slug: "author-slug" });
    expect(await users.all()).toHaveLength(5);
  });

  it("answer at once where the host does, and cannot be changed afterwards", () => {
    const given = { ...(people[2] as User), roles: ["author"] };
    const users = make({ get: () => given, list: () => ({ users: [given], total: 1 }) });
    const user = users.get(author) as User;
    given.roles.push("administrator");
    expect(user.roles).toEqual(["author"]);
    expect(() => (user.roles as string[]).push("administrator")).toThrow(TypeError);
  });

  it.each([
    ["neither a list nor functions", { get: () => null }, "users"],
    ["an entry without roles", [{ id: 1, slug: "a", name: "A" }], "users[0]"],
    ["the id 0", [{ id: 0, slug: "a", name: "A", roles: [] }], "users[0]"],
    ["a slug with a lone surrogate", [{ id: 1, slug: "a\ud800", name: "A", roles: [] }], "users[0]"],
    ["an id twice", [people[0], { ...people[1], id: 1 }], "users[1]"],
    ["a slug twice", [people[0], { ...people[1], slug: people[0]?.slug }], "users[1]"],
  ])("are refused at construction: %s", (_, users, field) => {
    let thrown: unknown;
    try {
      make(users);
    } catch (error) {
      thrown = error;
    }
    expect(isPostbellError(thrown) && { code: thrown.code, field: thrown.field }).toEqual({
      code: "invalid_option",
      field,
    });
  });
});
