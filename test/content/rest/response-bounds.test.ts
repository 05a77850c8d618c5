/**
 * The bounds of one response and one text: lists have a budget, long work lets other requests run,
 * and a text is checked before it is sanitised.
 */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createListLimits, type ListLimits } from "../../../src/content/rest/lists.js";
import { createItem, toBytes, toJson, toJsonText } from "../../../src/content/rest/serialise.js";
import { nextTurn } from "../../../src/core/next-turn.js";
import type { Json, JsonObject } from "../../../src/schema/types.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { contentSite, idOf } from "../../support/content-site.js";
import { countTurns } from "../../support/count-turns.js";
import { bytesOf, wxrFile } from "../../support/wxr-file.js";

const MEBIBYTE = 1_048_576;
const BUDGET = 65_536;
const admin = idOf("administrator");

/** A site with 20 posts of 10 000 characters, and how often a content was rendered. */
async function longPosts() {
  const rendered: number[] = [];
  const site = contentSite({
    limits: { responseBytes: BUDGET, cacheBytes: 0 },
    render: (raw, { field, post }) => {
      if (field === "content") rendered.push(post.id);
      return raw;
    },
  });
  const body = { content: "x".repeat(10_000), status: "publish" };
  for (let at = 0; at < 20; at += 1) {
    await site.request({
      method: "POST",
      path: "/core/v2/posts",
      body: { ...body, title: `${at}` },
      as: admin,
    });
  }
  rendered.length = 0;
  const list = (query: { readonly [name: string]: Json }) =>
    site.request({ method: "GET", path: "/core/v2/posts", query, as: admin });
  return { site, list, rendered };
}

describe("a list", () => {
  it("that is larger than the budget is refused, and the rest of it is not rendered", async () => {
    const { list, rendered } = await longPosts();
    const { status, body } = await list({ per_page: 20 });
    expect([status, (body as JsonObject)["code"]]).toEqual([413, "rest_response_too_large"]);
    expect((body as JsonObject)["message"]).toMatch(/65536 bytes.*per_page.*_fields/);
    expect(rendered.length).toBeLessThan(10);
  });

  it("is answered with fewer items, or with fields that leave the long texts out", async () => {
    const { list, rendered } = await longPosts();
    expect((await list({ per_page: 3 })).status).toBe(200);
    rendered.length = 0;
    const { status, body } = await list({ per_page: 20, _fields: "id,title,_links" });
    expect([status, (body as readonly unknown[]).length]).toEqual([200, 20]);
    expect(Object.keys((body as readonly object[])[0] ?? {})).toEqual(["id", "title", "_links"]);
    expect(rendered).toEqual([]);
    expect((await list({ per_page: 20, _fields: "id,content" })).status).toBe(413);
  });

  it("of revisions has the same budget, as have embedded records and a batch", async () => {
    const { site, list } = await longPosts();
    const { body: found } = await list({ per_page: 20, _fields: "id" });
    const [{ id }] = found as unknown as readonly [{ readonly id: number }];
    const path = `/core/v2/posts/${id}`;
    for (let at = 0; at < 9; at += 1) {
      const content = `${at}${"y".repeat(10_000)}`;
      await site.request({ method: "POST", path, body: { content }, as: admin });
    }
    const revisions = await site.request({ method: "GET", path: `${path}/revisions`, as: admin });
    expect(revisions.status).toBe(413);
    const requests = Array.from({ length: 20 }, () => ({ path, body: { title: "z" } }));
    const batch = await site.request({ method: "POST", path: "/batch/v1", body: { requests }, as: admin });
    const statuses = (batch.body as unknown as { responses: { status: number }[] }).responses.map(
      ({ status }) => status,
    );
    expect(statuses[0]).toBe(200);
    expect(statuses.at(-1)).toBe(413);
  });

  it("lets others have their turn while it is rendered and written", async () => {
    const rooms = createListLimits(64 * MEBIBYTE);
    const big = () => createItem({ text: "x".repeat(300_000) }, {});
    let items: Awaited<ReturnType<typeof rooms.collect>> = [];
    const rendering = await countTurns(async () => {
      items = await rooms.collect(undefined, async ({ add }) => {
        for (let at = 0; at < 20; at += 1) await add(big());
      });
    });
    const writing = await countTurns(async () => {
      await toBytes({ items });
      await toJsonText(toJson({ items }), 4);
    });
    expect(rendering).toBeGreaterThanOrEqual(19);
    expect(writing).toBeGreaterThanOrEqual(38);
  });

  it("that is large waits while three others are rendered; a small one does not", async () => {
    const rooms = createListLimits(64 * MEBIBYTE);
    let atOnce = 0;
    let most = 0;
    const large = (given: ListLimits): Promise<unknown> =>
      given.collect(undefined, async ({ add }) => {
        for (let at = 0; at < 5; at += 1) await add(createItem({ text: "x".repeat(400_000) }, {}));
        atOnce += 1;
        most = Math.max(most, atOnce);
        for (let at = 0; at < 5; at += 1) await nextTurn();
        atOnce -= 1;
      });
    const all = Promise.all(Array.from({ length: 12 }, () => large(rooms)));
    const small = await rooms.collect(undefined, async ({ add }) => add(createItem({ id: 1 }, {})));
    expect(small).toHaveLength(1);
    await all;
    expect(most).toBe(3);
  });

  it("is written as JSON.stringify writes it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.constantFrom(0, 4), async (value, indent) => {
        expect(await toJsonText(value as Json, indent)).toBe(JSON.stringify(value, null, indent));
      }),
      { numRuns: 200 },
    );
  });
});

describe("a text of somebody who may not write unfiltered HTML", () => {
  const long = "x".repeat(5_000);
  const limits = { filteredCharacters: 4_999 };
  const write = (site: ReturnType<typeof contentSite>, path: string, body: JsonObject, role: string) =>
    site.request({ method: "POST", path, body, as: idOf(role as Parameters<typeof idOf>[0]) });

  it.each([
    ["title", long],
    ["content", long],
    ["content", { raw: long }],
    ["excerpt", long],
    ["meta", { footnotes: JSON.stringify([{ id: "a", content: long }]) }],
  ])("is refused beyond the limit: %s", async (name, value) => {
    const site = contentSite({ limits });
    const body = { title: "x", [name]: value } as JsonObject;
    const refused = await write(site, "/core/v2/posts", body, "contributor");
    expect([refused.status, (refused.body as JsonObject)["code"]]).toEqual([413, "rest_text_too_large"]);
    expect((refused.body as JsonObject)["message"]).toContain("4999");
    expect((await write(site, "/core/v2/posts", body, "administrator")).status).toBe(201);
  });

  it("may be as long as the limit", async () => {
    const site = contentSite({ limits });
    const body = { title: "x", content: long.slice(1) };
    expect((await write(site, "/core/v2/posts", body, "contributor")).status).toBe(201);
  });

  const PART = "<td><tr>";
  const most = 4 * 4_999;
  const budget = { code: "rest_too_much_text", data: { status: 413 } };

  it("counts together with the others of its request", async () => {
    const site = contentSite({ limits });
    const longest = long.slice(1);
    const meta = { footnotes: JSON.stringify([{ id: "a", content: long.slice(30) }]) };
    const body = { title: "x", content: longest, excerpt: longest, meta };
    expect((await write(site, "/core/v2/posts", body, "contributor")).status).toBe(201);
    const requests = [0, 1, 2].map(() => ({ path: "/core/v2/posts", body: { ...body, title: "y" } }));
    const { body: answer } = await write(site, "/batch/v1", { requests }, "contributor");
    const { responses } = answer as unknown as { responses: { status: number; body: JsonObject }[] };
    expect(responses.map(({ status }) => status)).toEqual([201, 413, 413]);
    expect(responses[1]?.body).toMatchObject(budget);
    expect(responses[1]?.body["message"]).toMatch(new RegExp(`${most} characters.*batch.*several requests`));
    const { body: posts } = await site.request({
      method: "GET",
      path: "/core/v2/posts",
      query: { status: "any", _fields: "title" },
      as: admin,
    });
    // Nothing of the items that were refused was stored.
    expect(posts).toHaveLength(2);
  });

  it.each([
    ["posts", "content"],
    ["posts", "excerpt"],
    ["tags", "description"],
  ])(
    "is refused in a batch beyond four of the largest; a later one runs if it fits: %s %s",
    async (base, name) => {
      const site = contentSite({ limits });
      const item = (at: number, length: number) => ({
        path: `/core/v2/${base}`,
        body: { title: "x", name: `x${at}`, [name]: PART.repeat(length / PART.length) },
      });
      const requests = [...Array.from({ length: 8 }, (_, at) => item(at, 4_800)), item(9, 80)];
      const { body } = await write(site, "/batch/v1", { requests }, "author");
      const { responses } = body as unknown as { responses: { status: number }[] };
      const statuses = responses.map(({ status }) => status);
      expect(statuses).toEqual([201, 201, 201, 201, 413, 413, 413, 413, 201]);
      const others = requests.slice(0, 8).map(({ path, body: fields }, at) => ({
        path,
        body: { ...fields, name: `y${at}` },
      }));
      const trusted = await write(site, "/batch/v1", { requests: others }, "editor");
      const { responses: all } = trusted.body as unknown as { responses: { status: number }[] };
      expect(all.map(({ status }) => status)).toEqual(Array(8).fill(201));
    },
  );

  it("counts for its own request only, also in autosaves", async () => {
    const site = contentSite({ limits });
    const { body: post } = await write(site, "/core/v2/posts", { title: "x" }, "contributor");
    const path = `/core/v2/posts/${(post as { readonly id: number }).id}`;
    for (let at = 0; at < 6; at += 1) {
      const content = `${at}${PART.repeat(600)}`;
      expect((await write(site, path, { content }, "contributor")).status).toBe(200);
      expect((await write(site, `${path}/autosaves`, { content }, "contributor")).status).toBe(200);
    }
    const tooLong = await write(site, `${path}/autosaves`, { content: long }, "contributor");
    expect([tooLong.status, (tooLong.body as JsonObject)["code"]]).toEqual([413, "rest_text_too_large"]);
  });
});

describe("a long text gives others more turns the longer it is", () => {
  const HTML = "<td><tr>";
  const fill = (length: number, at = 0): string => `${at}${HTML.repeat(length / HTML.length)}`;
  const half = 30_000;
  const publish = (site: ReturnType<typeof contentSite>, body: JsonObject, as = idOf("author")) =>
    site.request({ method: "POST", path: "/core/v2/posts", body: { status: "publish", ...body }, as });
  const newSite = (storage = memoryStorage()) => contentSite({ storage, limits: { cacheBytes: 0 } });
  /** Returns a site that has `count` posts and has rendered none of them. */
  async function coldSite(count: number, body: (at: number) => JsonObject, as = idOf("author")) {
    const storage = memoryStorage();
    const before = newSite(storage);
    for (let at = 0; at < count; at += 1) await publish(before, body(at), as);
    return newSite(storage);
  }
  const titled = (at: number): JsonObject => ({ title: `${at}${"<b><i></b>".repeat(900)}`, content: "x" });
  const read = (site: ReturnType<typeof contentSite>, path: string, query: JsonObject, as: number | null) =>
    site.request({ method: "GET", path, query, as });

  const WORK: { readonly [what: string]: (length: number) => Promise<() => Promise<unknown>> } = {
    "when it is stored": async (length) => {
      const site = newSite();
      return () => publish(site, { title: "t", content: fill(length) });
    },
    "when it is stored by a trusted user": async (length) => {
      const site = newSite();
      return () => publish(site, { title: "t", content: fill(4 * length) }, admin);
    },
    "in an excerpt": async (length) => {
      const site = newSite();
      return () => publish(site, { title: "t", excerpt: fill(length) });
    },
    "in a block": async (length) => {
      const site = newSite();
      const content = `<!-- wp:a ${JSON.stringify({ a: fill(length) })} /-->`;
      return () => publish(site, { title: "t", content });
    },
    "in footnotes": async (length) => {
      const site = newSite();
      const note = { id: "a", content: "<b a=b>x</b>" };
      const footnotes = JSON.stringify(Array(Math.floor(length / 100)).fill(note));
      return () => publish(site, { title: "t", meta: { footnotes } });
    },
    "in an imported file": async (length) => {
      const site = newSite();
      const file = wxrFile([{ content: fill(length) }]);
      return () => site.import(bytesOf(file), { as: idOf("administrator") });
    },
    "in a revision that is restored": async (length) => {
      const storage = memoryStorage();
      const before = newSite(storage);
      const { body } = await publish(before, { title: "t", content: "x" });
      const { id } = body as { readonly id: number };
      const path = `/core/v2/posts/${id}`;
      for (const content of [fill(length), "y"]) {
        await before.request({ method: "POST", path, body: { content }, as: admin });
      }
      const revisions = await read(before, `${path}/revisions`, { _fields: "id" }, admin);
      const [, long] = revisions.body as unknown as { readonly id: number }[];
      return () =>
        newSite(storage).restoreRevision({ postId: id, revisionId: long?.id ?? 0, as: idOf("author") });
    },
    "in an autosave": async (length) => {
      const site = newSite();
      const { body } = await publish(site, { title: "t", content: "x" });
      const path = `/core/v2/posts/${(body as { readonly id: number }).id}/autosaves`;
      return () =>
        site.request({ method: "POST", path, body: { content: fill(length) }, as: idOf("author") });
    },
    "in a list": async (length) => {
      const site = await coldSite(3, (at) => ({ title: "t", content: fill(length, at) }));
      return () => read(site, "/core/v2/posts", {}, null);
    },
    "in a list of titles": async (length) => {
      const site = await coldSite(length / 3_000, titled);
      return () => read(site, "/core/v2/posts", { per_page: 50 }, null);
    },
    "in titles that are found": async (length) => {
      const site = await coldSite(length / 3_000, titled);
      return () => read(site, "/core/v2/search", { per_page: 50 }, null);
    },
  };

  it("but only the first time: what was sanitised to be stored is shown as it is", async () => {
    const storage = memoryStorage();
    const writer = newSite(storage);
    await publish(writer, { title: "t", content: fill(half) });
    const turnsOf = (site: typeof writer) => countTurns(() => read(site, "/core/v2/posts", {}, null));
    const turns = await turnsOf(writer);
    expect(turns).toBeLessThan(0.9 * (await turnsOf(newSite(storage))));
  });

  it("in which a record changes, and what was rendered of it before is not cached", async () => {
    const site = contentSite();
    const create = async (slug: string, body: JsonObject): Promise<number> => {
      const path = "/core/v2/pages";
      const fields = { slug, status: "publish", title: "t", ...body };
      const { body: page } = await site.request({ method: "POST", path, body: fields, as: admin });
      return (page as { readonly id: number }).id;
    };
    const parent = await create("before", {});
    const id = await create("child", { parent, content: fill(4 * half) });
    const readLink = async () =>
      ((await read(site, `/core/v2/pages/${id}`, {}, null)).body as { readonly link: string }).link;
    const first = readLink();
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    const path = `/core/v2/pages/${parent}`;
    await site.request({ method: "POST", path, body: { slug: "after" }, as: admin });
    await first;
    expect(await readLink()).toBe("http://localhost/after/child/");
  });

  it.each(Object.keys(WORK))("%s", async (what) => {
    const turnsFor = async (length: number): Promise<number> => {
      const work = await WORK[what]?.(length);
      return countTurns(async () => work?.());
    };
    const turns = await turnsFor(half);
    expect(turns).toBeGreaterThan(5);
    expect(await turnsFor(2 * half)).toBeGreaterThan(1.5 * turns);
  });
});
