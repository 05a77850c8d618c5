import { beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/schema/types.js";
import { contentSite, idOf, type Role } from "../../support/content-site.js";

type Site = ReturnType<typeof contentSite>;
type Query = { readonly [name: string]: string };

const site: Site = contentSite();
/** The ids of records by the names that the tests give them. */
const ids = new Map<string, number>();

async function create(name: string, body: object, base = "/posts"): Promise<number> {
  const response = await site.request({
    method: "POST",
    path: `/core/v2${base}`,
    as: idOf("editor"),
    body: base === "/posts" ? { title: name, status: "publish", ...body } : { name, ...body },
  });
  const { id } = response.body as { readonly id: number };
  ids.set(name, id);
  return id;
}

const id = (name: string): string => String(ids.get(name));

/** Returns the names of the posts in a list, in its order. */
async function list(query: Query, as: Role | null = null): Promise<readonly (string | undefined)[]> {
  const response = await site.request({
    method: "GET",
    path: "/core/v2/posts",
    query,
    as: as === null ? null : idOf(as),
  });
  const names = new Map([...ids].map(([name, known]) => [known, name]));
  return (response.body as readonly { readonly id: number }[]).map((post) => names.get(post.id));
}

beforeAll(async () => {
  const news = await create("news", {}, "/categories");
  await create("old-sticky", { sticky: true, date: "2001-01-01T00:00:00" });
  await create("aside", { format: "aside", date: "2002-01-01T00:00:00" });
  await create("in-news", { categories: [news], date: "2003-01-01T00:00:00" });
  await create("aside-in-news", { format: "aside", categories: [news], date: "2004-01-01T00:00:00" });
  await create("plain", { date: "2005-01-01T00:00:00" });
  await create("hidden-sticky", { status: "private", sticky: true, date: "2006-01-01T00:00:00" });
});

describe("a list with its sticky posts in front", () => {
  const front = (query: Query, as?: Role) => list({ ignore_sticky: "false", per_page: "2", ...query }, as);

  it("has them on the first page, whatever its offset", async () => {
    expect(await front({})).toEqual(["old-sticky", "plain", "aside-in-news"]);
    expect(await front({ offset: "1" })).toEqual(["old-sticky", "aside-in-news", "in-news"]);
    expect(await front({ page: "2" })).toEqual(["in-news", "aside"]);
    expect(await front({ page: "2", offset: "0" })).toEqual(["plain", "aside-in-news"]);
    expect(await front({ ignore_sticky: "true" })).toEqual(["plain", "aside-in-news"]);
  });

  it("has them whatever filters, unless it excludes them", async () => {
    expect(await front({ after: "2004-06-01T00:00:00" })).toEqual(["old-sticky", "plain"]);
    expect(await front({ slug: "plain" })).toEqual(["old-sticky", "plain"]);
    expect(await front({ author: "99" })).toEqual(["old-sticky"]);
    expect(await front({ exclude: id("old-sticky") })).toEqual(["plain", "aside-in-news"]);
    expect(await front({ categories_exclude: id("news") })).toEqual(["old-sticky", "plain", "aside"]);
  });

  it("is not the front page if it is a search, even for nothing, or has terms to be in", async () => {
    expect(await front({ search: "plain" })).toEqual(["plain"]);
    expect(await front({ search: "" })).toEqual(["plain", "aside-in-news"]);
    expect(await front({ categories: id("news") })).toEqual(["aside-in-news", "in-news"]);
  });

  it("is not the front page if a format is its only condition on terms", async () => {
    expect(await front({ format: "aside" })).toEqual(["aside-in-news", "aside"]);
    expect(await front({ format: "aside", tax_relation: "AND" })).toEqual([
      "old-sticky",
      "aside-in-news",
      "aside",
    ]);
    expect(await front({ format: "aside", categories_exclude: id("news") })).toEqual(["old-sticky", "aside"]);
  });

  it("has chosen posts alone", async () => {
    expect(await front({ include: id("plain") })).toEqual(["plain"]);
    expect(await front({ include: `${id("old-sticky")},${id("plain")}` })).toEqual(["plain", "old-sticky"]);
    expect(await front({ sticky: "true" })).toEqual(["old-sticky"]);
    expect(await front({ sticky: "false" })).toEqual(["plain", "aside-in-news"]);
  });

  it("shows sticky posts that are not published to nobody new", async () => {
    expect(await front({ status: "private" }, "editor")).toEqual(["hidden-sticky", "old-sticky"]);
    expect(await front({ status: "draft" }, "author")).toEqual(["old-sticky"]);
  });
});

describe("the permission to make a post sticky", () => {
  const save = (role: Role, method: string, path: string, body: JsonObject) =>
    site.request({ method, path: `/core/v2/posts${path}`, as: idOf(role), body });

  it.each([
    ["author", 201, { sticky: true }],
    ["contributor", 403, { code: "rest_cannot_assign_sticky" }],
  ] as const)("of an %s: %d", async (role, status, body) => {
    const response = await save(role, "POST", "", { title: "mine", sticky: true });
    expect(response).toMatchObject({ status, body });
  });

  it("is the same for an update", async () => {
    for (const [role, status] of [
      ["author", 200],
      ["contributor", 403],
    ] as const) {
      const draft = (await save(role, "POST", "", { title: "mine" })).body as { readonly id: number };
      expect((await save(role, "PUT", `/${draft.id}`, { sticky: true })).status).toBe(status);
      expect((await save(role, "PUT", `/${draft.id}`, { sticky: false })).status).toBe(200);
    }
  });
});

describe("the relation between terms and formats", () => {
  const byDate = { orderby: "date", order: "asc" };

  it("holds for the format too", async () => {
    const both = { ...byDate, format: "aside", categories: id("news") };
    expect(await list(both)).toEqual(["aside-in-news"]);
    expect(await list({ ...both, tax_relation: "AND" })).toEqual(["aside-in-news"]);
    expect(await list({ ...both, tax_relation: "OR" })).toEqual(["aside", "in-news", "aside-in-news"]);
  });

  it("holds for the standard format, several formats and excluded terms", async () => {
    const or = {
      ...byDate,
      tax_relation: "OR",
      categories_exclude: id("news"),
      before: "2005-06-01T00:00:00",
    };
    expect(await list({ ...or, format: "standard" })).toEqual(["old-sticky", "aside", "in-news", "plain"]);
    expect(await list({ ...or, format: "aside,link" })).toEqual([
      "old-sticky",
      "aside",
      "aside-in-news",
      "plain",
    ]);
  });

  it("changes nothing for a format alone", async () => {
    expect(await list({ ...byDate, format: "aside", tax_relation: "OR" })).toEqual([
      "aside",
      "aside-in-news",
    ]);
  });
});
