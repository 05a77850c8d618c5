import { describe, expect, it } from "vitest";
import { contentSite, idOf } from "../../support/content-site.js";

type Site = ReturnType<typeof contentSite>;
interface Excerpted {
  readonly id: number;
  readonly excerpt: { readonly rendered: string };
}

const CONTENT = "one two three four five";
const BASES = ["/posts", "/pages", "/blocks"] as const;

const ask = (site: Site, method: string, path: string, more: object = {}) =>
  site.request({ method, path: `/core/v2${path}`, as: idOf("editor"), ...more });

async function createIn(site: Site, base: string, more: object = {}): Promise<Excerpted> {
  const body = { title: "t", content: CONTENT, status: "publish", ...more };
  return (await ask(site, "POST", base, { body })).body as never;
}

describe.each(BASES)("excerpt_length of %s", (base) => {
  it.each([
    ["2", "<p>one two [&hellip;]</p>\n"],
    ["0", "<p> [&hellip;]</p>\n"],
    ["-3", "<p> [&hellip;]</p>\n"],
    ["5", "<p>one two three four five</p>\n"],
  ])("%s cuts the excerpt of an item and of each item of a list", async (words, rendered) => {
    const site = contentSite();
    const { id } = await createIn(site, base);
    const query = { excerpt_length: words };
    expect((await ask(site, "GET", `${base}/${id}`, { query })).body).toMatchObject({
      excerpt: { rendered },
    });
    expect((await ask(site, "GET", base, { query })).body).toMatchObject([{ excerpt: { rendered } }]);
  });

  it("cuts it in the responses to writes and deletions", async () => {
    const site = contentSite();
    const excerpt = { rendered: "<p>one [&hellip;]</p>\n" };
    const created = await createIn(site, base, { excerpt_length: 1 });
    expect(created).toMatchObject({ excerpt });
    const path = `${base}/${created.id}`;
    const query = { excerpt_length: "1" };
    expect((await ask(site, "PUT", path, { body: { title: "u", excerpt_length: "1" } })).body).toMatchObject({
      excerpt,
    });
    expect((await ask(site, "DELETE", path, { query })).body).toMatchObject({ excerpt, status: "trash" });
    expect((await ask(site, "DELETE", path, { query: { ...query, force: "true" } })).body).toMatchObject({
      previous: { excerpt },
    });
  });

  it("does not touch an excerpt that somebody wrote", async () => {
    const site = contentSite();
    await createIn(site, base, { excerpt: "my own words" });
    const rendered = "<p>my own words</p>\n";
    const response = await ask(site, "GET", base, { query: { excerpt_length: "1" } });
    expect(response.body).toMatchObject([{ excerpt: { rendered } }]);
  });

  it("is checked for one item, and read up to its first other character elsewhere", async () => {
    const site = contentSite();
    const { id } = await createIn(site, base);
    expect((await ask(site, "GET", `${base}/${id}`, { query: { excerpt_length: "2x" } })).status).toBe(400);
    const lists = async (words: string) =>
      (await ask(site, "GET", base, { query: { excerpt_length: words } }))
        .body as never as readonly Excerpted[];
    expect((await lists("2x"))[0]?.excerpt.rendered).toBe("<p>one two [&hellip;]</p>\n");
    expect((await lists("x"))[0]?.excerpt.rendered).toBe("<p> [&hellip;]</p>\n");
    expect((await lists("9".repeat(400)))[0]?.excerpt.rendered).toBe("<p>one two three four five</p>\n");
  });
});

it("excerpt_length is kept by the links to other pages of a list", async () => {
  const site = contentSite();
  for (const title of ["a", "b"]) await createIn(site, "/posts", { title });
  const { headers } = await ask(site, "GET", "/posts", { query: { per_page: "1", excerpt_length: "3" } });
  expect(headers["Link"]).toContain("excerpt_length=3");
});

it("excerpt_length is described for one item alone", async () => {
  const { body } = await ask(contentSite(), "OPTIONS", "/posts");
  expect(JSON.stringify(body)).not.toContain("excerpt_length");
  const item = await ask(contentSite(), "OPTIONS", "/posts/1");
  expect(JSON.stringify(item.body).match(/excerpt_length/g)).toHaveLength(1);
});

it("an excerpt of no words that nobody can leave out is empty", async () => {
  const site = contentSite();
  await createIn(site, "/pages", { content: "" });
  const { body } = await ask(site, "GET", "/pages", { query: { excerpt_length: "0" } });
  expect(body).toMatchObject([{ excerpt: { rendered: "" } }]);
});
