import { describe, expect, it } from "vitest";
import type { Content } from "../../../src/content/service.js";
import type { ContentStorage, ContentStore } from "../../../src/content/store.js";
import type { ImportOptions, ImportSummary } from "../../../src/content/wxr/options.js";
import type { Json } from "../../../src/schema/types.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { contentSite } from "../../support/content-site.js";
import { bytesOf, type ShortItem, WXR_END, wxrFile } from "../../support/wxr-file.js";

type Answered = { readonly [name: string]: Json };

const bring = (
  content: Content,
  items: readonly ShortItem[],
  head = "",
  options: Partial<ImportOptions> = {},
): Promise<ImportSummary> => content.import(bytesOf(wxrFile(items, head)), { as: 1, ...options });

async function list(content: Content, base: string): Promise<readonly Answered[]> {
  const status = ["categories", "media"].includes(base) ? {} : { status: "any" };
  const query = { per_page: 100, context: "edit", ...status };
  const answer = await content.request({ method: "GET", path: `/core/v2/${base}`, query, as: 1 });
  expect(answer.status).toBe(200);
  return answer.body as unknown as readonly Answered[];
}

async function bySlug(content: Content, base: string, slug: string): Promise<Answered> {
  const found = (await list(content, base)).filter((record) => record["slug"] === slug);
  expect(found).toHaveLength(1);
  return found[0] as Answered;
}

async function edit(content: Content, base: string, slug: string, body: Answered): Promise<void> {
  const { id } = await bySlug(content, base, slug);
  const request = { method: "POST", path: `/core/v2/${base}/${Number(id)}`, body, as: 1 };
  expect((await content.request(request)).status).toBe(200);
}

const category = (slug: string, parent = "", name = slug): string =>
  `<wp:category><wp:category_nicename>${slug}</wp:category_nicename><wp:category_parent>${parent}</wp:category_parent><wp:cat_name><![CDATA[${name}]]></wp:cat_name></wp:category>\n`;

const raw = (record: Answered, field: string): Json | undefined => (record[field] as Answered)["raw"];

describe("an edit on this site, when the same file is imported again", () => {
  it("survives in a post with a missing reference, which is set once its target is imported", async () => {
    const content = contentSite();
    const items = [
      { id: 1, meta: { _thumbnail_id: "9" } },
      { id: 2, type: "page", parent: 8 },
    ];
    await bring(content, items);
    await edit(content, "posts", "item-1", { title: "Mine" });
    await edit(content, "pages", "item-2", { content: "Mine", slug: "moved" });
    expect(await bring(content, items)).toMatchObject({ updated: 0, unchanged: 2 });
    const picture = { id: 9, type: "attachment", attachmentUrl: "https://old.example.org/a.png" };
    expect(await bring(content, [...items, picture, { id: 8, type: "page" }])).toMatchObject({ updated: 2 });
    const post = await bySlug(content, "posts", "item-1");
    expect(raw(post, "title")).toBe("Mine");
    expect(post["featured_media"]).toBe((await bySlug(content, "media", "item-9"))["id"]);
    const page = await bySlug(content, "pages", "moved");
    expect(raw(page, "content")).toBe("Mine");
    expect(page["parent"]).toBe((await bySlug(content, "pages", "item-8"))["id"]);
  });

  it("survives in a parent that was chosen here, while another reference is missing", async () => {
    const content = contentSite();
    const items = [
      { id: 1, type: "page" },
      { id: 2, type: "page", parent: 1, meta: { _thumbnail_id: "9" } },
    ];
    await bring(content, items);
    await edit(content, "pages", "item-2", { parent: 0 });
    await bring(content, items);
    expect(await bySlug(content, "pages", "item-2")).toMatchObject({ parent: 0 });
  });

  it("survives in media whose file cannot be read, and after the file is imported", async () => {
    const content = contentSite({ files: memoryFiles() });
    const items = [{ id: 1, type: "attachment", attachmentUrl: "https://old.example.org/a.txt" }];
    const files = (): never => {
      throw new Error("away");
    };
    await bring(content, items, "", { files });
    await edit(content, "media", "item-1", { alt_text: "My words", title: "Mine" });
    await bring(content, items, "", { files });
    expect(await bySlug(content, "media", "item-1")).toMatchObject({ alt_text: "My words" });
    await bring(content, items, "", { files: () => Buffer.from("text") });
    const media = await bySlug(content, "media", "item-1");
    expect(media).toMatchObject({ alt_text: "My words", source_url: expect.stringContaining("localhost") });
    expect(raw(media, "title")).toBe("Mine");
  });

  it("survives in a category with a missing parent, which is set once it is imported", async () => {
    const content = contentSite();
    await bring(content, [], category("leaf", "root"));
    await edit(content, "categories", "leaf", { name: "Mine" });
    expect(await bring(content, [], category("leaf", "root"))).toMatchObject({ updated: 0 });
    expect(await bySlug(content, "categories", "leaf")).toMatchObject({ name: "Mine" });
    await bring(content, [], category("leaf", "root") + category("root"));
    const root = await bySlug(content, "categories", "root");
    expect(await bySlug(content, "categories", "leaf")).toMatchObject({ name: "Mine", parent: root["id"] });
  });
});

describe("an import that was stopped", () => {
  it("leaves no slug of its own in a page whose parent another file brings", async () => {
    const content = contentSite();
    const filler = Array.from({ length: 2_000 }, (_, n): ShortItem => ({ id: 1000 + n }));
    const stop = new AbortController();
    async function* stopped(): AsyncGenerator<Uint8Array> {
      const page = { id: 1, type: "page", slug: "wards", title: "Our wards", parent: 3 };
      yield Buffer.from(wxrFile([page, ...filler]).replace(WXR_END, ""));
      stop.abort(new Error("enough"));
      yield Buffer.from(WXR_END);
    }
    await expect(content.import(stopped(), { as: 1, signal: stop.signal })).rejects.toThrow("enough");
    expect((await list(content, "pages"))[0]?.["slug"]).not.toMatch(/wards/);
    await bring(content, [{ id: 3, type: "page", slug: "hospital" }]);
    const hospital = await bySlug(content, "pages", "hospital");
    expect(await bySlug(content, "pages", "our-wards")).toMatchObject({ parent: hospital["id"] });
  });
});

describe("the trees of an imported site", () => {
  /** Each one is below the next one, and the last below the first. */
  const ring = (length: number): readonly (readonly [number, number])[] =>
    Array.from({ length }, (_, n) => [n + 1, ((n + 1) % length) + 1] as const);

  async function expectTree(content: Content, base: string): Promise<void> {
    const parents = new Map((await list(content, base)).map(({ id, parent }) => [id, parent]));
    for (const start of parents.keys()) {
      const seen = new Set<Json | undefined>();
      for (let at: Json | undefined = start; at !== 0 && at !== undefined; at = parents.get(at)) {
        expect(seen.has(at), `${base}: a circle through ${JSON.stringify(at)}`).toBe(false);
        seen.add(at);
      }
    }
  }

  it.each([1, 2, 3, 5])("have no cycle of %i", async (length) => {
    const content = contentSite();
    const head = ring(length)
      .map(([id, parent]) => category(`c${id}`, `c${parent}`))
      .join("");
    const items = ring(length).flatMap(([id, parent]): readonly ShortItem[] => [
      { id, type: "page", parent },
      {
        id: id + 100,
        type: "nav_menu_item",
        terms: [["nav_menu", "main", "Main"]],
        meta: { _menu_item_type: "custom", _menu_item_menu_item_parent: String(parent + 100) },
      },
    ]);
    for (let again = 0; again < 2; again += 1) {
      const { warnings } = await bring(content, items, head);
      expect(warnings.filter(({ message }) => message.includes("was stored at the top"))).toHaveLength(3);
      for (const base of ["categories", "pages", "menu-items"]) await expectTree(content, base);
    }
    const hung = (await list(content, "pages")).filter(({ parent }) => parent !== 0);
    expect(hung).toHaveLength(length - 1);
  });

  it("follow the file when a parent and its child change places", async () => {
    const content = contentSite();
    await bring(
      content,
      [
        { id: 1, type: "page" },
        { id: 2, type: "page", parent: 1 },
      ],
      category("a") + category("b", "a"),
    );
    const swapped = [
      { id: 1, type: "page", parent: 2 },
      { id: 2, type: "page" },
    ];
    expect(await bring(content, swapped, category("a", "b") + category("b"))).toMatchObject({ warnings: [] });
    for (const [base, upper, lower] of [
      ["pages", "item-2", "item-1"],
      ["categories", "b", "a"],
    ] as const) {
      const { id } = await bySlug(content, base, upper);
      expect(await bySlug(content, base, upper)).toMatchObject({ parent: 0 });
      expect(await bySlug(content, base, lower)).toMatchObject({ parent: id });
    }
  });

  /** Runs `first` before the next commit. */
  function between(storage: ContentStorage): {
    storage: ContentStorage;
    before: (first: () => Promise<void>) => void;
  } {
    let waiting: (() => Promise<void>) | undefined;
    return {
      before: (first) => {
        waiting = first;
      },
      storage: {
        close: () => storage.close(),
        content(context): ContentStore {
          const store = storage.content(context);
          return {
            ...store,
            async commit(...given) {
              const first = waiting;
              waiting = undefined;
              await first?.();
              return store.commit(...given);
            },
          };
        },
      },
    };
  }

  it.each<[string, string, string]>([
    ["pages", "item-1", "item-2"],
    ["categories", "a", "b"],
  ])("have no cycle when a parent moves during the import: %s", async (base, below, above) => {
    const plain = memoryStorage();
    const { storage, before } = between(plain);
    const [importing, other] = [contentSite({ storage }), contentSite({ storage: plain })];
    const isPages = base === "pages";
    await bring(
      importing,
      isPages
        ? [
            { id: 2, type: "page" },
            { id: 1, type: "page" },
          ]
        : [],
      isPages ? "" : category("b") + category("a"),
    );
    const { id } = await bySlug(other, base, below);
    before(() => edit(other, base, above, { parent: Number(id) }));
    await bring(
      importing,
      isPages ? [{ id: 1, type: "page", parent: 2 }] : [],
      isPages ? "" : category("a", "b"),
    );
    await expectTree(other, base);
    expect(await bySlug(other, base, above)).toMatchObject({ parent: id });
  });
});

describe("terms whose slug would be empty", () => {
  it("stay the same in every import, and distinct from each other", async () => {
    const content = contentSite();
    const head =
      category("", "", "!!!") +
      category("", "", "???") +
      category("", "", "Heart") +
      category("", "", "Lung");
    const items: ShortItem[] = [
      {
        id: 1,
        terms: [
          ["category", "", "!!!"],
          ["category", "", "***"],
        ],
      },
    ];
    await bring(content, items, head);
    const names = async (): Promise<readonly unknown[]> =>
      (await list(content, "categories")).map(({ name }) => name);
    const expected = ["!!!", "***", "???", "Heart", "Lung", "Uncategorized"];
    expect(await names()).toHaveLength(expected.length);
    expect(new Set(await names())).toEqual(new Set(expected));
    expect(await bring(content, items, head)).toMatchObject({ created: 0, updated: 0 });
    expect(await names()).toHaveLength(expected.length);
    expect(new Set(await names())).toEqual(new Set(expected));
    expect((await bySlug(content, "posts", "item-1"))["categories"]).toHaveLength(2);
  });
});
