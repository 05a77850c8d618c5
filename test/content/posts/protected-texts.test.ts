/** Filters, counts and orders of lists reveal nothing about texts that a password protects. */

import { describe, expect, it } from "vitest";
import type { ContentStorage } from "../../../src/content/store.js";
import { type Call, callsOf } from "../../support/content-call.js";
import { contentSite, type Role } from "../../support/content-site.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";

const SECRET = "xylophone";
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/**
 * Each word occurs in "Locked". Above a number of words, a search ranks only the phrase as a whole.
 */
const PARTS = "lo loc lock locke ock cke ked ocke";

/** Creates two protected posts that differ only in their texts, and one that everybody may read. */
async function siteWith(storage: ContentStorage, base = "/posts") {
  const site = contentSite({ storage });
  const call = callsOf(site);
  const create = async (title: string, text: string, as: Role, password: string): Promise<number> => {
    const body = { title, content: `The ${text} plays`, excerpt: text, status: "publish", password };
    const response = await call(`POST ${base}`, { as, body });
    expect(response.status).toBe(201);
    return response.body.id as number;
  };
  const writer = base === "/posts" ? "author" : "editor";
  const secret = await create("Locked door", SECRET, writer, "sesame");
  const other = await create("Locked gate", PARTS, writer, "sesame");
  const open = await create("Open door", SECRET, "editor", "");
  return { site, call, secret, other, open };
}

/** Lists posts, and returns what the caller learns. */
const ask =
  (call: Call, as: Role | undefined, base = "/posts") =>
  async (query: { readonly [name: string]: string | readonly string[] }) => {
    const { status, headers, body } = await call(`GET ${base}`, { as, query: { _fields: "id", ...query } });
    expect(status).toBe(200);
    return { total: headers["X-WP-Total"], ids: (body as { id: number }[]).map(({ id }) => id) };
  };

describe.each(CONTENT_STORAGES)("a search, on %s", (_, open) => {
  it.each(["subscriber", "contributor"] as const)(
    "does not let a %s read a protected text letter by letter",
    async (role) => {
      const { call, secret, other } = await siteWith(open());
      const list = ask(call, role);
      const told = new Set<string>();
      for (const letter of LETTERS) {
        const found = await list({ search: `${SECRET.slice(0, 3)}${letter}`, include: `${secret},${other}` });
        told.add(JSON.stringify(found));
      }
      expect([...told]).toEqual([JSON.stringify({ total: "0", ids: [] })]);
    },
  );

  it("finds nothing in a protected text for other callers, whatever the arguments", async () => {
    const { call, secret, other, open: readable } = await siteWith(open());
    const list = ask(call, "subscriber");
    for (const more of [
      {},
      { search_columns: "post_content" },
      { search_columns: "post_excerpt" },
      { orderby: "relevance" },
      { password: "sesame" },
      { status: "publish" },
      { slug: "locked-door,open-door" },
    ]) {
      expect([more, await list({ search: SECRET, ...more })]).toEqual([
        more,
        { total: "1", ids: [readable] },
      ]);
    }
    expect(await list({ search: SECRET, search_semantics: "exact" })).toEqual({
      total: "1",
      ids: [readable],
    });
    // An excluded word in the hidden text does not exclude the post either.
    expect((await list({ search: `Locked -${SECRET}`, orderby: "id", order: "asc" })).ids).toEqual([
      secret,
      other,
    ]);
  });

  it("finds a protected post by its title, and ranks it by the title alone", async () => {
    const { call, secret, other } = await siteWith(open());
    const list = ask(call, "subscriber");
    expect((await list({ search: "Locked", orderby: "id", order: "asc" })).ids).toEqual([secret, other]);
    const ranked = { search: PARTS, orderby: "relevance", order: "asc" };
    expect((await list(ranked)).ids).toEqual([secret, other]);
    expect((await ask(call, "editor")(ranked)).ids).toEqual([other, secret]);
  });

  it("searches protected texts for callers who may edit the post", async () => {
    const { call, secret, open: readable } = await siteWith(open());
    for (const role of ["author", "editor", "administrator"] as const) {
      const found = await ask(call, role)({ search: SECRET, orderby: "id", order: "asc" });
      expect([role, found.ids]).toEqual([role, [secret, readable]]);
    }
    const pages = await siteWith(open(), "/pages");
    expect((await ask(pages.call, "author", "/pages")({ search: SECRET })).ids).toEqual([pages.open]);
    expect((await ask(pages.call, "editor", "/pages")({ search: SECRET })).total).toBe("2");
  });
});

describe("a search during which a post gets its password", () => {
  it("judges the version whose text it read", async () => {
    const [, open] = CONTENT_STORAGES[0] as (typeof CONTENT_STORAGES)[number];
    const storage = open();
    const pause: { meanwhile?: (() => Promise<unknown>) | undefined } = {};
    const paused: ContentStorage = {
      ...storage,
      content(context) {
        const store = storage.content(context);
        return {
          ...store,
          async read(keys) {
            const { meanwhile } = pause;
            pause.meanwhile = undefined;
            await meanwhile?.();
            return store.read(keys);
          },
        };
      },
    };
    const { call, open: id } = await siteWith(storage);
    const reader = callsOf(contentSite({ storage: paused }));
    await ask(reader, "subscriber")({});
    pause.meanwhile = () =>
      call(`POST /posts/${id}`, { as: "editor", body: { content: "A marimba", password: "late" } });
    const found = await ask(reader, "subscriber")({ search: "marimba" });
    expect(found).toEqual({ total: "0", ids: [] });
  });
});
