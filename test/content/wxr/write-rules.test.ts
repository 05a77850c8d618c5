/** An import writes by the rules of REST. */

import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/schema/types.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { contentSite, idOf, type Role } from "../../support/content-site.js";
import { bytesOf, type ShortItem, wxrFile } from "../../support/wxr-file.js";

type Answered = { readonly [name: string]: Json };
type Site = ReturnType<typeof contentSite>;

const NOW = Date.UTC(2026, 10, 28, 12);
const importItems = (content: Site, items: readonly ShortItem[], role: Role = "administrator") =>
  content.import(bytesOf(wxrFile(items)), { as: idOf(role) });

async function list(content: Site, base: string, role?: Role, status = "any"): Promise<readonly Answered[]> {
  const { body } = await content.request({
    method: "GET",
    path: `/core/v2/${base}`,
    query: role === undefined ? {} : { status, context: "edit", orderby: "id", order: "asc" },
    as: role === undefined ? null : idOf(role),
  });
  return body as unknown as readonly Answered[];
}

describe("an imported post", () => {
  it("with a date in the future is scheduled, and published when it is due", async () => {
    const clock = manualClock(NOW);
    const content = contentSite({ storage: memoryStorage(), clock });
    await importItems(content, [
      { id: 1, date: "2026-11-28 13:00:00" },
      { id: 2, status: "future", date: "2026-11-28 11:00:00" },
      { id: 3, status: "private", date: "2026-11-28 13:00:00" },
      { id: 4, type: "page", date: "2026-11-28 13:00:00" },
    ]);
    const statuses = (await list(content, "posts", "administrator")).map(({ status }) => status);
    expect(statuses).toEqual(["future", "publish", "private"]);
    expect(await list(content, "pages")).toEqual([]);
    expect((await list(content, "posts")).map(({ slug }) => slug)).toEqual(["item-2"]);
    await clock.advance(3_600_000);
    expect((await list(content, "posts")).map(({ slug }) => slug)).toEqual(["item-1", "item-2"]);
    expect(await list(content, "pages")).toHaveLength(1);
  });

  it("is not sticky if it has a password or is in the trash", async () => {
    const content = contentSite();
    await importItems(content, [
      { id: 1, sticky: true },
      { id: 2, sticky: true, password: "secret" },
      { id: 3, sticky: true, status: "trash" },
    ]);
    const posts = [
      ...(await list(content, "posts", "administrator")),
      ...(await list(content, "posts", "administrator", "trash")),
    ];
    expect(posts.map(({ slug, sticky }) => [slug, sticky])).toEqual([
      ["item-1", true],
      ["item-2", false],
      ["item-3", false],
    ]);
  });

  it.each<[Role, readonly (readonly [string, string, number])[], number]>([
    [
      "editor",
      [
        ["item-1", "publish", 3],
        ["item-2", "publish", 2],
      ],
      1,
    ],
    [
      "author",
      [
        ["item-1", "publish", 3],
        ["item-2", "publish", 3],
      ],
      0,
    ],
    [
      "contributor",
      [
        ["item-1", "pending", 4],
        ["item-2", "pending", 4],
      ],
      0,
    ],
    ["subscriber", [], 0],
  ])("has what its importer, the %s, may write", async (role, expected, pages) => {
    const content = contentSite();
    const summary = await importItems(
      content,
      [
        { id: 1, creator: "author", terms: [["category", "ward", "Ward"]] },
        { id: 2, creator: "editor" },
        { id: 3, type: "page" },
      ],
      role,
    );
    const posts = await list(content, "posts", "administrator");
    expect(posts.map(({ slug, status, author }) => [slug, status, author])).toEqual(expected);
    expect(await list(content, "pages", "administrator")).toHaveLength(pages);
    expect(summary.skipped).toBe(3 - expected.length - pages);
    const categories = (await list(content, "categories")).map(({ slug }) => slug);
    expect(categories.includes("ward")).toBe(role === "editor");
  });
});

describe("a split export", () => {
  it.each<[string, ShortItem, ShortItem, string, string]>([
    [
      "featured image",
      { id: 1, meta: { _thumbnail_id: "9" } },
      { id: 9, type: "attachment", attachmentUrl: "https://old.example.org/a.png" },
      "featured_media",
      "media",
    ],
    ["parent", { id: 1, type: "page", parent: 9 }, { id: 9, type: "page" }, "parent", "pages"],
  ])("sets a %s that only the next file has", async (_, first, second, field, base) => {
    const content = contentSite();
    const { warnings } = await importItems(content, [first]);
    expect(warnings).toHaveLength(1);
    expect(await importItems(content, [{ id: 5, title: "Another" }])).toMatchObject({ warnings: [] });
    await importItems(content, [second]);
    const posts = await list(content, first.type === "page" ? "pages" : "posts", "administrator");
    const target = (await list(content, base)).find(({ slug }) => slug === "item-9");
    const id = target?.["id"];
    expect(id).toBeTypeOf("number");
    expect(posts.find(({ slug }) => slug === "item-1")).toMatchObject({ [field]: id });
    // The same files again change nothing.
    expect(await importItems(content, [first])).toMatchObject({ unchanged: 1, updated: 0 });
    expect(await importItems(content, [second])).toMatchObject({ unchanged: 1, updated: 0 });
  });
});

describe("the references of an earlier import", () => {
  it.each<[Role, boolean]>([
    ["author", false],
    ["editor", true],
  ])("are set by an import of the %s only in posts that this user may edit", async (role, isSet) => {
    const content = contentSite();
    await importItems(content, [{ id: 1, meta: { _thumbnail_id: "9" } }]);
    const picture = { id: 9, type: "attachment", attachmentUrl: "https://old.example.org/a.png" };
    await importItems(content, [picture], role);
    const [post] = await list(content, "posts", "administrator");
    expect(Number(post?.["featured_media"]) > 0).toBe(isSet);
  });
});

describe("an imported post that is here already", () => {
  it("is only changed by someone who may edit it, and trashed by someone who may delete it", async () => {
    const content = contentSite();
    await importItems(content, [{ id: 1, title: "Of the administrator", content: "before" }]);
    for (const [role, status] of [
      ["author", "publish"],
      ["contributor", "trash"],
    ] as const) {
      const summary = await importItems(content, [{ id: 1, title: "Taken", content: "after", status }], role);
      expect(summary.updated).toBe(0);
      expect(summary.warnings).toMatchObject([{ message: expect.stringContaining("may not be changed") }]);
    }
    const [post] = await list(content, "posts", "administrator");
    expect(post).toMatchObject({ title: { raw: "Of the administrator" }, status: "publish", author: 1 });
    expect((await importItems(content, [{ id: 1, title: "Changed", content: "after" }])).updated).toBe(1);
  });
});
