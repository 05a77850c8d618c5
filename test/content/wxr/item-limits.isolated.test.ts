/** Each entry of a file has limits: a larger one is skipped, and the import continues. */

import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import type { Content } from "../../../src/content/service.js";
import type { ImportSummary } from "../../../src/content/wxr/options.js";
import type { Json } from "../../../src/schema/types.js";
import { contentSite } from "../../support/content-site.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";
import { countSteps } from "../../support/count-steps.js";
import { bytesOf, type ShortItem, streamOf, WXR_END, wxrHead, wxrItem } from "../../support/wxr-file.js";

const many = (count: number, make: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => make(n)).join("");
const tag = (n: number): string => `<category domain="post_tag" nicename="t${n}">T${n}</category>`;
const meta = (n: number): string =>
  `<wp:postmeta><wp:meta_key>k${n}</wp:meta_key><wp:meta_value>v</wp:meta_value></wp:postmeta>`;

const bringAll = (content: Content, texts: readonly string[]): Promise<ImportSummary> =>
  content.import(bytesOf(wxrHead() + texts.join("") + WXR_END), { as: 1 });

const read = async (
  content: Content,
  base: string,
): Promise<readonly { readonly [name: string]: Json }[]> => {
  const query = { per_page: 100, context: "edit", ...(base === "posts" ? { status: "any" } : {}) };
  const { body } = await content.request({ method: "GET", path: `/core/v2/${base}`, query, as: 1 });
  return body as unknown as readonly { readonly [name: string]: Json }[];
};

const LARGE: readonly (readonly [name: string, item: ShortItem, reason: string])[] = [
  ["too many terms", { more: many(1_001, tag) }, "it has more than 1000 categories, tags and other terms"],
  [
    "far too many terms",
    { more: many(50_000, tag) },
    "it has more than 1000 categories, tags and other terms",
  ],
  [
    "too many custom fields",
    { more: many(5_001, meta) },
    "it has more than 5000 custom fields (wp:postmeta)",
  ],
  [
    "too many comments",
    { more: "<wp:comment></wp:comment>".repeat(100_001) },
    "it has more than 100000 comments",
  ],
  [
    "elements nested too deep",
    { more: `${"<a>".repeat(40)}${"</a>".repeat(40)}` },
    "elements are nested more than 32 deep",
  ],
  ["a title that is too long", { title: "x".repeat(10_001) }, "it has more than 10000 characters in title"],
  [
    "a slug that is too long",
    { slug: "x".repeat(10_001) },
    "it has more than 10000 characters in wp:post_name",
  ],
  [
    "an author that is too long",
    { creator: "x".repeat(201) },
    "it has more than 200 characters in dc:creator",
  ],
  [
    "a date that is too long",
    { date: `2024-05-06${" ".repeat(70)}` },
    "it has more than 64 characters in wp:post_date",
  ],
  [
    "a password that is too long",
    { password: "x".repeat(256) },
    "it has more than 255 characters in wp:post_password",
  ],
  [
    "a term whose name is too long",
    { terms: [["post_tag", "long", "x".repeat(1_001)]] },
    "it has more than 1000 characters in category",
  ],
  [
    "a term whose slug is too long",
    { terms: [["post_tag", "x".repeat(10_001), "Long"]] },
    "a category has a nicename of more than 10000 or a domain of more than 200 characters",
  ],
  ["too many characters", { content: "x".repeat(17_000_000) }, "it has more than 16777216 characters"],
];

describe("an item with more than it may hold", () => {
  it.each(LARGE)("%s: is skipped whole, and the others are imported", async (_, item, reason) => {
    const content = contentSite();
    const file = [
      wxrItem({ id: 1 }),
      wxrItem({ terms: [["post_tag", "of-large", "Of large"]], ...item, id: 2 }),
      wxrItem({ id: 3, terms: [["post_tag", "of-small", "Of small"]] }),
    ];
    const line = (wxrHead() + file[0]).split("\n").length;
    const summary = await bringAll(content, file);
    expect(summary.warnings).toEqual([
      {
        line,
        message: `An item was skipped: ${reason}. Correct it in the file, and import the file again.`,
      },
    ]);
    expect(summary).toMatchObject({ items: 3, created: 3, skipped: 1, kinds: { tags: { created: 1 } } });
    const slugs = (await read(content, "posts")).map(({ slug }) => slug);
    expect(new Set(slugs)).toEqual(new Set(["item-1", "item-3"]));
    expect(slugs).toHaveLength(2);
    expect((await read(content, "tags")).map(({ slug }) => slug)).toEqual(["of-small"]);
  });

  it.each(CONTENT_STORAGES)("is skipped on %s, and imported once it is smaller", async (_, open) => {
    const content = contentSite({ storage: open() });
    const file = (count: number) => [
      wxrItem({ id: 1, more: many(count, tag) }),
      wxrItem({ id: 2, parent: 1 }),
    ];
    expect(await bringAll(content, file(1_001))).toMatchObject({ created: 1, skipped: 1 });
    expect(await bringAll(content, file(1_000))).toMatchObject({ skipped: 0, warnings: [] });
    const posts = await read(content, "posts");
    const counts = posts.map((post) => (post["tags"] as Json[]).length);
    expect(counts.toSorted((one, other) => one - other)).toEqual([0, 1_000]);
  });

  it("is imported at the bound of everything", async () => {
    const more = many(1_000, tag) + many(5_000, meta) + "<wp:comment></wp:comment>".repeat(50_000);
    const item = wxrItem({ id: 1, title: "x".repeat(10_000), creator: "y".repeat(200), more });
    const summary = await bringAll(contentSite(), [item]);
    expect(summary).toMatchObject({ skipped: 0, warnings: [], notHeld: { comments: 50_000 } });
  });
});

describe("another entry with more than it may hold", () => {
  it("is skipped, and a post of its author gets the importing user", async () => {
    const content = contentSite();
    const author = `<wp:author><wp:author_login>${"x".repeat(201)}</wp:author_login></wp:author>`;
    const term = `<wp:tag><wp:tag_slug>a</wp:tag_slug><wp:tag_name>${"x".repeat(1_001)}</wp:tag_name></wp:tag>`;
    const good = "<wp:tag><wp:tag_slug>b</wp:tag_slug><wp:tag_name>B</wp:tag_name></wp:tag>";
    const { warnings, created } = await bringAll(content, [author, term, good, wxrItem({ id: 1 })]);
    expect(created).toBe(2);
    expect(warnings.map(({ message }) => message.split(". ")[0])).toEqual([
      "An author was skipped: it has more than 200 characters in wp:author_login",
      "A term was skipped: it has more than 1000 characters in wp:tag_name",
    ]);
  });

  it("refuses a site whose URL is too long, which would be read for each item", async () => {
    const text = wxrHead("", `https://a.example/${"x".repeat(3_000)}`) + wxrItem({ id: 1 }) + WXR_END;
    await expect(contentSite().import(bytesOf(text), { as: 1 })).rejects.toMatchObject({
      code: "invalid_import",
      message: expect.stringContaining("more than 2048 characters in link"),
    });
  });
});

describe("the template of an imported page", () => {
  it.each([
    ["wide.php", "wide.php"],
    ["templates/wide.php", "templates/wide.php"],
    ["default", ""],
    ["../../secret", ""],
    ["/etc/passwd", ""],
    ["a\\b", ""],
    ["x".repeat(201), ""],
  ])("%s is stored as %j", async (template, stored) => {
    const content = contentSite();
    await bringAll(content, [wxrItem({ id: 1, type: "page", meta: { _wp_page_template: template } })]);
    expect(await read(content, "pages")).toMatchObject([{ template: stored }]);
  });
});

const SAME = { type: "page", title: "Same", slug: "same" };
const SHAPES: readonly (readonly [name: string, item: (n: number) => ShortItem])[] = [
  ["pages of one title below one parent", (n) => ({ ...SAME, parent: n === 1 ? 0 : 1 })],
  ["pages of one title below a parent that comes last", () => ({ ...SAME, parent: 99_999 })],
  [
    "pages of one title, every other one below the one before",
    (n) => ({ ...SAME, parent: n % 2 === 0 ? n - 1 : 0 }),
  ],
  ["drafts of one title", (n) => ({ ...SAME, status: n % 2 === 0 ? "draft" : "publish" })],
  ["pages in a chain", (n) => ({ ...SAME, slug: `p${n}`, parent: n - 1 })],
  [
    "menu items of one menu",
    (n) => ({
      type: "nav_menu_item",
      terms: [["nav_menu", "main", "Main"]],
      menuOrder: n,
      meta: { _menu_item_type: "custom", _menu_item_url: "/a", _menu_item_menu_item_parent: String(n - 1) },
    }),
  ],
  ["attachments of one post", () => ({ type: "attachment", title: "Same", slug: "same", parent: 1 })],
  ["posts with a category of their own", (n) => ({ terms: [["category", `c${n}`, `C${n}`]] })],
  ["posts of authors who are not known", (n) => ({ creator: `somebody-${n}` })],
];

describe("the steps for one item", () => {
  it.each(SHAPES)("do not grow with the number of %s", async (_, item) => {
    const perItem = async (count: number): Promise<number> => {
      function* file(): Generator<string> {
        yield wxrHead();
        for (let id = 1; id <= count; id += 1) yield wxrItem({ ...item(id), id });
        yield wxrItem({ id: 99_999, type: "page" }) + WXR_END;
      }
      const content = contentSite();
      const steps = await countSteps(() => content.import(streamOf(file()), { as: 1 }));
      return steps / count;
    };
    const [few, more] = [await perItem(250), await perItem(1_000)];
    expect(more).toBeLessThan(1.5 * few);
  });
});

describe("an import from memory into memory", () => {
  it("lets the host run between a few items", async () => {
    const items = Array.from({ length: 400 }, (_, n) =>
      wxrItem({ id: n + 1, content: `<p>${"word ".repeat(500)}</p>` }),
    );
    let turns = 0;
    let isOver = false;
    const counting = (async () => {
      for (; !isOver; turns += 1) await turn();
    })();
    await bringAll(contentSite(), items);
    isOver = true;
    await counting;
    // About two bytes in three are items: each 32 768 characters of them are one turn.
    expect(turns).toBeGreaterThan(40);
  });
});

describe("the authors of a file", () => {
  it("are not compared with all users for each item", async () => {
    const users = Array.from({ length: 400 }, (_, n) => ({
      ...{ id: n + 1, slug: `user-${n}`, name: `User ${n}`, roles: ["administrator"] },
    }));
    const content = contentSite({ users });
    const items = Array.from({ length: 200 }, (_, n) => wxrItem({ id: n + 1, creator: `x${n}` }));
    const spy = vi.spyOn(String.prototype, "toLowerCase");
    await bringAll(content, items);
    const calls = spy.mock.calls.length;
    spy.mockRestore();
    expect(calls).toBeLessThan(20 * (users.length + items.length));
  });

  it("are found by slug, then by e-mail address, then by a name that only one user has", async () => {
    const user = { name: "Twin", roles: ["administrator"] };
    const users = [
      { ...user, id: 1, slug: "admin" },
      { ...user, id: 2, slug: "jane-doe", email: "Jane@example.org" },
      { ...user, id: 3, slug: "c", name: "Only" },
    ];
    const author = (login: string, email: string, name: string): string =>
      `<wp:author><wp:author_login>${login}</wp:author_login><wp:author_email>${email}</wp:author_email><wp:author_display_name>${name}</wp:author_display_name></wp:author>`;
    const content = contentSite({ users });
    await bringAll(content, [
      author("someone", "jane@EXAMPLE.org", "Only"),
      author("other", "", "Only"),
      author("twin", "", "Twin"),
      ...["Jane Doe", "c", "someone", "other", "twin"].map((creator, n) => wxrItem({ id: n + 1, creator })),
    ]);
    const posts = await read(content, "posts");
    expect([1, 2, 3, 4, 5].map((n) => posts.find(({ slug }) => slug === `item-${n}`)?.["author"])).toEqual([
      ...[2, 3, 2, 3, 1],
    ]);
  });
});
