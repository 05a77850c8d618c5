/** `If-Unmodified-Since` keeps a client from overwriting a newer version than the one it knows. */

import { describe, expect, it } from "vitest";
import { manualClock } from "../../../src/testing/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { contentSite, idOf } from "../../support/content-site.js";

const START = Date.UTC(2026, 10, 22, 9);

async function siteWithPost(path = "/core/v2/posts") {
  const clock = manualClock(START);
  const site = contentSite({ clock, storage: memoryStorage() });
  const created = await site.request({ method: "POST", path, body: { title: "First" }, as: idOf("editor") });
  const { id, modified_gmt: modified } = created.body as { id: number; modified_gmt: string };
  const write = (method: string, since: string | undefined, body = {}) =>
    site.request({
      method,
      path: `${path}/${id}`,
      headers: since === undefined ? {} : { "if-unmodified-since": since },
      body,
      as: idOf("editor"),
    });
  const title = async () => {
    const query = { context: "edit" };
    const { body } = await site.request({
      method: "GET",
      path: `${path}/${id}`,
      query,
      as: idOf("administrator"),
    });
    return (body as { title: { raw: string } }).title.raw;
  };
  return { site, id, clock, write, title, known: new Date(`${modified}Z`).toUTCString() };
}

describe("If-Unmodified-Since", () => {
  it("accepts a write that knows the newest version", async () => {
    const { write, title, known } = await siteWithPost();
    expect(await write("POST", known, { title: "Second" })).toMatchObject({ status: 200 });
    expect(await title()).toBe("Second");
  });

  it.each(["/core/v2/posts", "/core/v2/pages"])(
    "refuses to update or delete what changed since, below %s",
    async (path) => {
      const { clock, write, title, known } = await siteWithPost(path);
      await clock.advance(2_000);
      await write("POST", undefined, { title: "Theirs" });
      for (const [method, body] of [
        ["POST", { title: "Mine" }],
        ["DELETE", {}],
        ["DELETE", { force: true }],
      ] as const) {
        expect(await write(method, known, body)).toMatchObject({
          status: 412,
          body: { code: "rest_precondition_failed", data: { status: 412 } },
        });
      }
      expect(await title()).toBe("Theirs");
    },
  );

  it("refuses to restore a revision over a newer version", async () => {
    const { site, id, clock, write, title } = await siteWithPost();
    await write("POST", undefined, { title: "Second" });
    const { body } = await site.request({
      method: "GET",
      path: `/core/v2/posts/${id}/revisions`,
      as: idOf("editor"),
    });
    const [{ id: revision }] = body as unknown as [{ id: number }];
    const seen = new Date(clock.now());
    await clock.advance(2_000);
    await write("POST", undefined, { title: "Theirs" });
    const restore = (ifUnmodifiedSince: Date | undefined) =>
      site.restoreRevision({ postId: id, revisionId: revision, as: idOf("editor"), ifUnmodifiedSince });
    await expect(restore(seen)).rejects.toMatchObject({ status: 412, code: "rest_precondition_failed" });
    await expect(restore(new Date("soon"))).rejects.toMatchObject({
      code: "invalid_argument",
      field: "ifUnmodifiedSince",
    });
    await expect(restore("2026-11-22" as never)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await title()).toBe("Theirs");
    await restore(new Date(clock.now()));
    expect(await title()).toBe("Second");
  });

  it("ignores an invalid date, and is optional", async () => {
    const { clock, write, title } = await siteWithPost();
    await clock.advance(2_000);
    expect(await write("POST", "yesterday", { title: "A" })).toMatchObject({ status: 200 });
    expect(await write("POST", undefined, { title: "B" })).toMatchObject({ status: 200 });
    expect(await title()).toBe("B");
  });
});
