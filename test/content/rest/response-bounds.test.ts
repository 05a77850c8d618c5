/**
 * The bounds of one response and one text: lists have a budget, long work lets other requests run,
 * and a text is checked before it is sanitised.
 */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createItem } from "../../../src/content/rest/item.js";
import { createListLimits, type ListLimits } from "../../../src/content/rest/list-limits.js";
import { toBytes, toJson, toJsonText } from "../../../src/content/rest/serialise.js";
import { nextTurn } from "../../../src/core/next-turn.js";
import type { Json, JsonObject } from "../../../src/schema/types.js";
import { contentSite, idOf } from "../../support/content-site.js";

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
    let turns = 0;
    let isOver = false;
    const others = (async () => {
      while (!isOver) {
        await nextTurn();
        turns += 1;
      }
    })();
    const items = await rooms.collect(undefined, async ({ add }) => {
      for (let at = 0; at < 20; at += 1) await add(big());
    });
    const afterRendering = turns;
    await toBytes({ items });
    await toJsonText(toJson({ items }), 4);
    isOver = true;
    await others;
    expect(afterRendering).toBeGreaterThanOrEqual(19);
    expect(turns).toBeGreaterThanOrEqual(afterRendering + 38);
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
});
