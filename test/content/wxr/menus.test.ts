import { describe, expect, it } from "vitest";
import type { Content } from "../../../src/content/service.js";
import type { ImportSummary } from "../../../src/content/wxr/options.js";
import type { Json } from "../../../src/schema/types.js";
import { contentSite } from "../../support/content-site.js";
import { bytesOf, type ShortItem, WXR_END, wxrFile, wxrHead, wxrItem } from "../../support/wxr-file.js";

const menus = `<wp:term><wp:term_id>50</wp:term_id><wp:term_taxonomy>nav_menu</wp:term_taxonomy><wp:term_slug>long</wp:term_slug><wp:term_name>Long</wp:term_name></wp:term>
<wp:term><wp:term_id>51</wp:term_id><wp:term_taxonomy>nav_menu</wp:term_taxonomy><wp:term_slug>short</wp:term_slug><wp:term_name>Short</wp:term_name></wp:term>
`;

const link = (
  id: number,
  menu: string,
  more: Partial<ShortItem> & { readonly parent?: number } = {},
): ShortItem => {
  const { parent = 0, ...others } = more;
  return {
    id,
    type: "nav_menu_item",
    title: `Link ${id}`,
    slug: `link-${id}`,
    terms: [["nav_menu", menu, menu]],
    meta: {
      _menu_item_type: "custom",
      _menu_item_url: `https://example.org/${id}`,
      _menu_item_menu_item_parent: String(parent),
    },
    ...others,
  };
};

/** A tree of three links in one menu; the other one repeats two of their ids. */
const ITEMS: readonly ShortItem[] = [
  link(11, "long"),
  link(12, "long", { parent: 11 }),
  link(13, "long", { parent: 12 }),
  // The child comes before its parent.
  link(12, "short", { parent: 11 }),
  link(11, "short"),
];

const importText = (content: Content, text: string): Promise<ImportSummary> =>
  content.import(bytesOf(text), { as: 1 });

/** The titles of a menu's items, each with the title of its parent. */
async function treeOf(content: Content, slug: string): Promise<readonly string[]> {
  const read = async (path: string, query: Record<string, Json>) => {
    const answer = await content.request({ method: "GET", path: `/core/v2/${path}`, query, as: 1 });
    expect(answer.status).toBe(200);
    return answer.body as ReturnType<typeof JSON.parse>;
  };
  const [menu] = await read("menus", { slug });
  const items = await read("menu-items", { menus: menu.id, orderby: "id", context: "edit" });
  const titleOf = (id: number): string =>
    items.find((item: { id: number }) => item.id === id)?.title.raw ?? (id === 0 ? "top" : "elsewhere");
  return items.map(
    (item: { id: number; title: { raw: string }; parent: number }) =>
      `${item.title.raw} < ${titleOf(item.parent)}`,
  );
}

const LONG = ["Link 11 < top", "Link 12 < Link 11", "Link 13 < Link 12"];
const SHORT = ["Link 12 < Link 11", "Link 11 < top"];

/** The same file without the address of the site, and without guids if these are wanted away. */
const anonymous = (text: string, hasGuids: boolean): string => {
  const unnamed = text.replace(/<(link|wp:base_site_url|wp:base_blog_url)>[^<]*<\/\1>\n/g, "");
  return hasGuids ? unnamed : unnamed.replace(/<guid[^>]*>[^<]*<\/guid>/g, "");
};

describe("menu items whose ids are repeated in another menu", () => {
  const named = wxrFile(ITEMS, menus);
  it.each([
    ["that names its site", named],
    ["that has only guids", anonymous(named, true)],
    ["that has neither", anonymous(named, false)],
  ])("are imported into both, each below the parent in its own menu, from a file %s", async (_, text) => {
    const content = contentSite();
    const first = await importText(content, text);
    expect(first).toMatchObject({ skipped: 0, warnings: [] });
    expect(await treeOf(content, "long")).toEqual(LONG);
    expect(await treeOf(content, "short")).toEqual(SHORT);

    const second = await importText(content, text);
    expect(second).toMatchObject({ created: 0, updated: 0, skipped: 0 });
    expect(await treeOf(content, "long")).toEqual(LONG);
    expect(await treeOf(content, "short")).toEqual(SHORT);
  });

  it("are updated one by one", async () => {
    const content = contentSite();
    await importText(content, named);
    const changed = ITEMS.map((item) =>
      item.id === 11 && item.terms?.[0]?.[1] === "short" ? { ...item, title: "Changed" } : item,
    );
    expect(await importText(content, wxrFile(changed, menus))).toMatchObject({ created: 0, updated: 1 });
    expect(await treeOf(content, "long")).toEqual(LONG);
    expect(await treeOf(content, "short")).toEqual(["Link 12 < Changed", "Changed < top"]);
  });

  it("are skipped if they are repeated in the same menu", async () => {
    const summary = await importText(contentSite(), wxrFile([...ITEMS, link(11, "short")], menus));
    expect(summary).toMatchObject({ skipped: 1 });
    expect(summary.warnings).toMatchObject([
      { message: "The item 11 was skipped: the file has it twice. The first one counts." },
    ]);
  });
});

describe("items with neither guid nor site", () => {
  const fileOf = (items: readonly ShortItem[], title = "Old site"): string =>
    anonymous(wxrHead() + items.map(wxrItem).join("") + WXR_END, false).replace("Old site", title);

  it("are told apart by type, id, slug, title and date, and found again", async () => {
    const content = contentSite();
    const items: readonly ShortItem[] = [
      { id: 1, title: "A", slug: "a" },
      { id: 1, title: "A", slug: "a", type: "page" },
      { id: 2, title: "A", slug: "a" },
      { id: 1, title: "B", slug: "a" },
      { id: 1, title: "A", slug: "b" },
      { id: 1, title: "A", slug: "a", date: "2020-01-01 00:00:00" },
    ];
    expect(await importText(content, fileOf(items))).toMatchObject({ created: 6, skipped: 0 });
    const changed = items.map((item) => ({ ...item, content: "New" }));
    expect(await importText(content, fileOf(changed))).toMatchObject({ created: 0, updated: 6 });
    expect(await importText(content, fileOf(changed))).toMatchObject({ created: 0, unchanged: 6 });
  });

  it("of another site are others", async () => {
    const content = contentSite();
    const items = [{ id: 1, title: "Hello world!" }];
    expect(await importText(content, fileOf(items))).toMatchObject({ created: 1 });
    expect(await importText(content, fileOf(items, "Another site"))).toMatchObject({ created: 1 });
  });
});
