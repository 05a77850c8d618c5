import { describe, expect, it } from "vitest";
import type { Content } from "../../../src/content/service.js";
import type { ContentStorage, ContentStore } from "../../../src/content/store.js";
import type { ImportOptions, ImportProgress, ImportSummary } from "../../../src/content/wxr/options.js";
import type { Json } from "../../../src/schema/types.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { exported, records } from "../../support/content-dump.js";
import { contentSite } from "../../support/content-site.js";
import {
  bytesOf,
  type ShortItem,
  seededSite,
  streamOf,
  wxrFile,
  wxrHead,
  wxrItem,
} from "../../support/wxr-file.js";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const bring = (
  content: Content,
  items: readonly ShortItem[],
  { head = "", ...options }: Partial<ImportOptions> & { readonly head?: string } = {},
): Promise<ImportSummary> => content.import(bytesOf(wxrFile(items, head)), { as: 1, ...options });

type Answered = { readonly [name: string]: Json };

/** Reads the records of a collection through the REST API, by slug. */
async function list(
  content: Content,
  base: string,
  query: { [name: string]: Json } = {},
): Promise<readonly Answered[]> {
  const { status, body } = await content.request({
    method: "GET",
    path: `/core/v2/${base}`,
    query: { per_page: 100, context: "edit", ...query },
    as: 1,
  });
  expect(status).toBe(200);
  return body as unknown as readonly Answered[];
}
async function bySlug(content: Content, base: string, slug: string): Promise<Answered> {
  const found = await list(content, base, {
    slug,
    ...(["categories", "media"].includes(base) ? {} : { status: "any" }),
  });
  expect(found).toHaveLength(1);
  return found[0] as Answered;
}

const category = (slug: string, parent: string, id: number): string =>
  `<wp:category><wp:term_id>${id}</wp:term_id><wp:category_nicename>${slug}</wp:category_nicename><wp:category_parent>${parent}</wp:category_parent><wp:cat_name>${slug.toUpperCase()}</wp:cat_name><wp:category_description>About ${slug}</wp:category_description></wp:category>\n`;
const menu = (slug: string, id: number): string =>
  `<wp:term><wp:term_id>${id}</wp:term_id><wp:term_taxonomy>nav_menu</wp:term_taxonomy><wp:term_slug>${slug}</wp:term_slug><wp:term_name>${slug}</wp:term_name></wp:term>\n`;

describe("an imported site", () => {
  it("has the fields of the posts in the file", async () => {
    const content = contentSite();
    const summary = await bring(content, [
      {
        id: 5,
        title: "One",
        content: "<p>Text</p>",
        excerpt: "Short",
        slug: "one",
        status: "private",
        date: "2019-03-04 05:06:07",
        dateGmt: "2019-03-04 04:06:07",
        modified: "2020-01-02 03:04:05",
        modifiedGmt: "2020-01-02 02:04:05",
        terms: [
          ["post_tag", "x-ray", "X-Ray"],
          ["post_format", "post-format-aside", "Aside"],
        ],
        creator: "editor",
        meta: { footnotes: "[]", _edit_lock: "1:1" },
      },
    ]);
    expect(summary).toMatchObject({ created: 2, notHeld: { "meta _edit_lock": 1 }, warnings: [] });
    expect(await bySlug(content, "posts", "one")).toMatchObject({
      title: { raw: "One" },
      content: { raw: "<p>Text</p>" },
      excerpt: { raw: "Short" },
      status: "private",
      date: "2019-03-04T05:06:07",
      date_gmt: "2019-03-04T04:06:07",
      modified: "2020-01-02T03:04:05",
      modified_gmt: "2020-01-02T02:04:05",
      format: "aside",
      author: 2,
      comment_status: "open",
      ping_status: "closed",
      tags: [(await list(content, "tags"))[0]?.["id"]],
    });
  });

  it("has its terms in their tree, even if a parent comes later in the file", async () => {
    const content = contentSite();
    await bring(content, [], {
      head: category("leaf", "branch", 3) + category("branch", "root", 4) + category("root", "", 5),
    });
    const [leaf, branch, root] = [
      await bySlug(content, "categories", "leaf"),
      await bySlug(content, "categories", "branch"),
      await bySlug(content, "categories", "root"),
    ];
    expect(leaf).toMatchObject({ parent: branch?.["id"], name: "LEAF", description: "About leaf" });
    expect(branch).toMatchObject({ parent: root?.["id"] });
    expect(root).toMatchObject({ parent: 0 });
  });

  it("has no cycle of terms or pages, whatever the file contains", async () => {
    const content = contentSite();
    await bring(
      content,
      [
        { id: 1, type: "page", slug: "a", parent: 3 },
        { id: 2, type: "page", slug: "b", parent: 1 },
        { id: 3, type: "page", slug: "c", parent: 2 },
        { id: 4, type: "page", slug: "d", parent: 4 },
      ],
      { head: category("x", "y", 3) + category("y", "x", 4) + category("z", "z", 5) },
    );
    for (const base of ["pages", "categories"]) {
      const parents = new Map((await list(content, base)).map(({ id, parent }) => [id, parent]));
      for (const start of parents.keys()) {
        let steps = 0;
        for (let at: Json | undefined = start; at !== 0 && at !== undefined; at = parents.get(at)) steps += 1;
        expect(steps).toBeLessThan(10);
        if (steps > 9) break;
      }
    }
  });

  it("keeps references of parents, featured media and menu items, in any order of the file", async () => {
    const content = contentSite();
    const items: ShortItem[] = [
      {
        id: 30,
        type: "nav_menu_item",
        slug: "30",
        terms: [["nav_menu", "main", "Main"]],
        meta: {
          ...{ _menu_item_type: "post_type", _menu_item_object: "page", _menu_item_object_id: "11" },
          ...{ _menu_item_classes: 'a:1:{i:0;s:4:"wide";}', _menu_item_menu_item_parent: "31" },
        },
      },
      {
        id: 31,
        type: "nav_menu_item",
        slug: "31",
        title: "Wards",
        terms: [["nav_menu", "main", "Main"]],
        meta: { _menu_item_type: "taxonomy", _menu_item_object: "category", _menu_item_object_id: "77" },
      },
      { id: 11, type: "page", slug: "child", parent: 12, meta: { _thumbnail_id: "40" } },
      { id: 12, type: "page", slug: "mother" },
      {
        id: 40,
        type: "attachment",
        slug: "pic",
        parent: 11,
        attachmentUrl: "https://old.example.org/pic.png",
      },
    ];
    // Small batches, so that most references are resolved later.
    const head = category("ward", "", 77) + menu("main", 78);
    const filler = Array.from({ length: 300 }, (_, n): ShortItem => ({ id: 1000 + n }));
    const summary = await bring(content, [...items.slice(0, 3), ...filler, ...items.slice(3)], { head });
    expect(summary.warnings).toEqual([]);
    const [mother, child, pic, ward] = [
      await bySlug(content, "pages", "mother"),
      await bySlug(content, "pages", "child"),
      await bySlug(content, "media", "pic"),
      await bySlug(content, "categories", "ward"),
    ];
    expect(child).toMatchObject({ parent: mother?.["id"], featured_media: pic?.["id"] });
    expect(pic).toMatchObject({ post: child?.["id"] });
    const menuItems = await list(content, "menu-items");
    const wards = menuItems.find(({ object }) => object === "category");
    expect(wards).toMatchObject({ object_id: ward?.["id"], title: { raw: "Wards" }, type: "taxonomy" });
    expect(menuItems.find(({ object }) => object === "page")).toMatchObject({
      object_id: child?.["id"],
      parent: wards?.["id"],
      classes: ["wide"],
    });
  });

  it("gives a page that waits for its parent its slug, and takes none from another page", async () => {
    const content = contentSite();
    const filler = Array.from({ length: 300 }, (_, n): ShortItem => ({ id: 1000 + n }));
    await bring(content, [
      { id: 1, type: "page", slug: "about", title: "Below", parent: 3 },
      ...filler,
      { id: 2, type: "page", slug: "about", title: "Top" },
      { id: 3, type: "page", slug: "mother" },
    ]);
    const pages = await list(content, "pages", { slug: "about" });
    expect(pages.map(({ title }) => (title as { raw: string }).raw).sort()).toEqual(["Below", "Top"]);
  });

  it("makes equal slugs unique as WordPress does, also for thousands of them", async () => {
    const content = contentSite();
    const items = Array.from(
      { length: 2_000 },
      (_, n): ShortItem => ({ id: n + 1, slug: "same", content: "" }),
    );
    await bring(content, items);
    expect(
      (await list(content, "posts", { orderby: "id", order: "asc" })).map(({ slug }) => slug).slice(0, 4),
    ).toEqual([...["same", "same-2", "same-3", "same-4"]]);
    expect(await bySlug(content, "posts", "same-2000")).toBeDefined();
  });

  it("is refused with a misspelt option, and the nearest is named", async () => {
    const content = contentSite();
    await expect(content.import(bytesOf(""), { as: 1, trsut: true } as never)).rejects.toMatchObject({
      code: "invalid_argument",
      field: "trsut",
      message: "content.import() has no field 'trsut'; did you mean 'trust'?",
    });
    const reading = content
      .export({ onProgres: () => {} } as never)
      [Symbol.asyncIterator]()
      .next();
    await expect(reading).rejects.toThrow(
      "content.export() has no field 'onProgres'; did you mean 'onProgress'?",
    );
  });

  it("lists what was left out", async () => {
    const summary = await bring(contentSite(), [
      { id: 1, more: "<wp:comment></wp:comment><wp:comment></wp:comment>" },
      { id: 2, type: "product" },
      { id: 2, type: "post" },
      { id: 3, type: "page", parent: 99 },
      { id: 3, type: "page" },
    ]);
    expect(summary.notHeld).toEqual({ comments: 2, "type product": 1 });
    expect(summary).toMatchObject({ items: 5, skipped: 2, created: 3 });
    expect(summary.warnings.map(({ message }) => message)).toEqual([
      "The item 3 was skipped: the file has it twice. The first one counts.",
      "The item 3 refers to a missing parent: 99.",
    ]);
  });

  it("sanitises texts as if an author had written them, unless the host trusts the file", async () => {
    const evil = {
      id: 1,
      title: "T<script>x</script>",
      content: "<p onclick=x>a</p><script>alert(1)</script>",
    };
    const [filtered, trusted] = [contentSite(), contentSite()];
    await bring(filtered, [evil]);
    await bring(trusted, [evil], { trust: true });
    const raw = async (content: Content): Promise<Json | undefined> =>
      (await bySlug(content, "posts", "item-1"))["content"];
    expect(JSON.stringify(await raw(filtered))).not.toMatch(/<script|onclick/);
    expect(await raw(trusted)).toMatchObject({ raw: evil.content });
  });

  it("never keeps a menu item URL that runs a script", async () => {
    const content = contentSite();
    await bring(content, [
      {
        id: 1,
        type: "nav_menu_item",
        terms: [["nav_menu", "main", "Main"]],
        meta: { _menu_item_type: "custom", _menu_item_url: "java\tscript:alert(1)" },
      },
    ]);
    expect(await list(content, "menu-items")).toMatchObject([{ url: "" }]);
  });
});

describe("an import that is repeated", () => {
  const site = seededSite({ count: 600, seed: 3, words: 10 });

  it("changes nothing", async () => {
    const storage = memoryStorage();
    const content = contentSite({ storage });
    await content.import(streamOf(site.file()), { as: 1 });
    const before = await records(storage);
    const again = await content.import(streamOf(site.file()), { as: 1 });
    expect(again).toMatchObject({ created: 0, updated: 0, unchanged: 720 });
    expect(await records(storage)).toEqual(before);
  });

  it("updates what has changed in the file, and keeps what was edited here", async () => {
    const content = contentSite();
    await bring(content, [{ id: 1, title: "Old" }, { id: 2 }, { id: 3, type: "page", parent: 4 }]);
    const { id } = await bySlug(content, "posts", "item-2");
    const edit = { method: "POST", path: `/core/v2/posts/${Number(id)}`, body: { title: "Mine" }, as: 1 };
    expect((await content.request(edit)).status).toBe(200);
    const summary = await bring(content, [
      { id: 1, title: "New" },
      { id: 2 },
      { id: 4, type: "page" },
      { id: 3, type: "page", parent: 4 },
    ]);
    expect(summary.kinds).toEqual({
      posts: { created: 0, updated: 1, unchanged: 1, skipped: 0 },
      pages: { created: 1, updated: 1, unchanged: 0, skipped: 0 },
    });
    expect(await bySlug(content, "posts", "item-1")).toMatchObject({ title: { raw: "New" } });
    expect(await bySlug(content, "posts", "item-2")).toMatchObject({ id, title: { raw: "Mine" } });
    expect(await bySlug(content, "pages", "item-3")).toMatchObject({
      parent: (await bySlug(content, "pages", "item-4"))["id"],
    });
  });

  it("creates records again that were deleted here", async () => {
    const content = contentSite();
    await bring(content, [{ id: 1 }]);
    const { id } = await bySlug(content, "posts", "item-1");
    await content.request({
      method: "DELETE",
      path: `/core/v2/posts/${Number(id)}`,
      query: { force: true },
      as: 1,
    });
    expect(await bring(content, [{ id: 1 }])).toMatchObject({ created: 1 });
  });

  it("makes no duplicates when two run at once, also in two processes", async () => {
    const storage = memoryStorage();
    const [one, other] = [contentSite({ storage }), contentSite({ storage })];
    const summaries = await Promise.all(
      [one, other].map((content) => content.import(streamOf(site.file()), { as: 1 })),
    );
    expect((await list(one, "posts", { slug: site.posts[0]?.slug ?? "" })).length).toBe(1);
    const total = summaries.reduce((sum, { kinds }) => sum + (kinds["posts"]?.created ?? 0), 0);
    expect(total).toBe(600);
  });

  /** A storage whose commits fail from the n-th on, before or after that one is stored. */
  function failing(storage: ContentStorage, at: number, isStored: boolean): ContentStorage {
    return {
      close: () => storage.close(),
      content(context): ContentStore {
        const store = storage.content(context);
        let commits = 0;
        return {
          ...store,
          async commit(...given) {
            commits += 1;
            if (commits < at) return store.commit(...given);
            if (isStored && commits === at) await store.commit(...given);
            throw new Error("The process was killed.");
          },
        };
      },
    };
  }

  it("ends as if it had run once, wherever the first run was killed", async () => {
    const items: ShortItem[] = [
      { id: 900, type: "page", slug: "about", parent: 901 },
      ...Array.from(
        { length: 700 },
        (_, n): ShortItem => ({
          id: n + 1,
          slug: n % 3 === 0 ? "same" : `post-${n}`,
          terms: [["post_tag", `t-${n % 300}`, `T ${n % 300}`]],
          meta: n % 7 === 0 ? { _thumbnail_id: "950" } : {},
        }),
      ),
      { id: 902, type: "page", slug: "about" },
      { id: 901, type: "page", slug: "mother" },
      { id: 950, type: "attachment", attachmentUrl: "https://old.example.org/a.png" },
    ];
    const head = category("leaf", "root", 1) + category("root", "", 2);
    const once = contentSite();
    await bring(once, items, { head });
    const wanted = sameInEverySite(await exported(once));
    for (let at = 1; at <= 12; at += 1) {
      const storage = memoryStorage();
      const isStored = at % 2 === 0;
      const killed = bring(contentSite({ storage: failing(storage, at, isStored) }), items, { head });
      await killed.catch(() => {});
      const content = contentSite({ storage });
      await bring(content, items, { head });
      expect(sameInEverySite(await exported(content)), `killed at commit ${at}`).toEqual(wanted);
    }
  });
});

/** An export with slugs in place of ids, sorted. */
function sameInEverySite(text: string): readonly string[] {
  const slugs = new Map(
    [
      ...text.matchAll(
        /<wp:post_id>(\d+)<[\s\S]*?<wp:post_name><!\[CDATA\[(.*?)\]\]>[\s\S]*?<wp:post_type><!\[CDATA\[(.*?)\]\]>/g,
      ),
    ].map(([, id = "", slug, type]) => [id, `${type} ${slug}`]),
  );
  const name = (id: string): string => slugs.get(id) ?? id;
  return text
    .replace(/<wp:term_id>\d+/g, "<wp:term_id>")
    .replace(/(?:[?&]|&amp;)(?:p|page_id|attachment_id)=\d+/g, "")
    .replace(/<wp:(post_id|post_parent)>(\d+)/g, (_, tag: string, id: string) => `<wp:${tag}>${name(id)}`)
    .replace(
      /(_thumbnail_id\]\]><\/wp:meta_key>\s*<wp:meta_value><!\[CDATA\[)(\d+)/g,
      (_, start: string, id: string) => start + name(id),
    )
    .split("</item>")
    .sort();
}

describe("the files of imported media", () => {
  const items: ShortItem[] = [
    {
      id: 1,
      type: "attachment",
      slug: "heart",
      attachmentUrl: "https://old.example.org/wp-content/uploads/2019/03/heart.png",
      date: "2019-03-04 05:06:07",
      meta: {
        _wp_attached_file: "2019/03/heart.png",
        _wp_attachment_image_alt: "A heart",
        _wp_attachment_metadata:
          'a:4:{s:5:"width";i:640;s:6:"height";i:480;s:4:"file";s:17:"2019/03/heart.png";s:5:"sizes";a:1:{s:9:"thumbnail";a:4:{s:4:"file";s:17:"heart-150x150.png";s:5:"width";i:150;s:6:"height";i:150;s:9:"mime-type";s:9:"image/png";}}}',
      },
    },
  ];

  it("keep their URLs if their bytes are not imported", async () => {
    const content = contentSite({ files: memoryFiles() });
    await bring(content, items);
    const media = await bySlug(content, "media", "heart");
    expect(media).toMatchObject({
      alt_text: "A heart",
      mime_type: "image/png",
      source_url: "https://old.example.org/wp-content/uploads/2019/03/heart.png",
      media_details: {
        width: 640,
        height: 480,
        file: "2019/03/heart.png",
        sizes: {
          thumbnail: {
            width: 150,
            source_url: "https://old.example.org/wp-content/uploads/2019/03/heart-150x150.png",
          },
        },
      },
    });
    const gone = {
      method: "DELETE",
      path: `/core/v2/media/${Number(media["id"])}`,
      query: { force: true },
      as: 1,
    };
    expect((await content.request(gone)).status).toBe(200);
  });

  it("keep what the camera wrote, without markup that runs", async () => {
    const content = contentSite();
    const text = (value: string): string => `s:${Buffer.byteLength(value)}:"${value}";`;
    const list = (members: readonly string[]): string => `a:${members.length / 2}:{${members.join("")}}`;
    const imageMeta = list([
      ...[text("title"), text("A heart<script>alert(1)</script>"), text("credit"), text("Zoë")],
      ...[text("aperture"), text("2.8"), text("iso"), "i:400;", text("shutter_speed"), text("1e999")],
      ...[text("created_timestamp"), text("1795429230"), text("focal_length"), text("-1")],
      ...[text("orientation"), text("1"), text("camera"), list([]), text("other"), text("x")],
      ...[text("keywords"), list(["i:0;", text("heart"), "i:1;", text("<b onclick=x>ward</b>")])],
    ]);
    const metadata = list([text("width"), "i:9;", text("height"), "i:8;", text("image_meta"), imageMeta]);
    await bring(content, [{ ...items[0], meta: { ...items[0]?.meta, _wp_attachment_metadata: metadata } }]);
    const media = await bySlug(content, "media", "heart");
    const { image_meta: shown } = media["media_details"] as { image_meta: Record<string, unknown> };
    expect(shown).toMatchObject({
      credit: "Zoë",
      aperture: "2.8",
      iso: "400",
      shutter_speed: "0",
      created_timestamp: "1795429230",
      focal_length: "0",
      orientation: "1",
      camera: "",
      keywords: ["heart", "<b>ward</b>"],
    });
    expect(shown["title"]).toMatch(/^A heart/);
    expect(JSON.stringify(shown)).not.toMatch(/<script|onclick|other/);
  });

  it("are stored with the host's files, and a later import retries the missing ones", async () => {
    const files = memoryFiles();
    const content = contentSite({ files });
    const failed = await bring(content, items, {
      files: () => {
        throw new Error("the host is away");
      },
    });
    expect(failed.warnings).toMatchObject([
      { message: "The file of the item 1 could not be imported: the host is away" },
    ]);
    const asked: unknown[] = [];
    const source: ImportOptions["files"] = (file) => {
      asked.push(file);
      return PNG;
    };
    expect(await bring(content, items, { files: source })).toMatchObject({ updated: 1, warnings: [] });
    expect(await bring(content, items, { files: source })).toMatchObject({ unchanged: 1, updated: 0 });
    expect(asked).toEqual([{ url: items[0]?.attachmentUrl, path: "2019/03/heart.png", title: "Item 1" }]);
    expect(await bySlug(content, "media", "heart")).toMatchObject({
      source_url: "http://localhost/uploads/2019/03/heart.png",
      alt_text: "A heart",
      media_details: { width: 1, height: 1, filesize: PNG.length },
    });
    expect((await files.stat("2019/03/heart.png"))?.bytes).toBe(PNG.length);
  });

  it.each<[string, Uint8Array]>([
    ["a script under the name of an image", Buffer.from("<script>alert(1)</script>")],
    ["nothing", new Uint8Array()],
    ["too many", Buffer.alloc(3_000, PNG)],
  ])("are refused if the bytes are %s, and leave nothing behind", async (_, bytes) => {
    const files = memoryFiles();
    const content = contentSite({ files, limits: { uploadBytes: 2_000 } });
    const summary = await bring(content, items, { files: () => bytes });
    expect(summary.warnings).toHaveLength(1);
    for await (const { name } of files.list()) throw new Error(name);
  });
});

describe("an import", () => {
  it("keeps what it stored before a broken end of the file, and continues once that is fixed", async () => {
    const content = contentSite();
    const items = Array.from({ length: 600 }, (_, n): ShortItem => ({ id: n + 1 }));
    const file = wxrFile(items);
    const broken = await content.import(bytesOf(file.slice(0, -300)), { as: 1 });
    expect(broken).toMatchObject({ created: 599, skipped: 1 });
    expect(await content.import(bytesOf(file), { as: 1 })).toMatchObject({ created: 1, unchanged: 599 });
  });

  it("stops when its signal is aborted", async () => {
    const stop = new AbortController();
    const site = seededSite({ count: 2_000, seed: 9, words: 5 });
    const run = contentSite().import(streamOf(site.file()), {
      as: 1,
      signal: stop.signal,
      onProgress: () => stop.abort(new Error("enough")),
    });
    await expect(run).rejects.toThrow("enough");
  });

  it("reports its progress", async () => {
    const told: ImportProgress[] = [];
    const site = seededSite({ count: 1_000, seed: 4, words: 5 });
    const summary = await contentSite().import(streamOf(site.file()), {
      as: 1,
      bytesTotal: 123,
      onProgress: (progress) => told.push(progress),
    });
    expect(told.length).toBeGreaterThan(3);
    expect(told.map(({ items }) => items)).toEqual(told.map(({ items }) => items).sort((a, b) => a - b));
    expect(told.at(-1)).toMatchObject({ bytesTotal: 123, items: 1_200, bytesRead: summary.bytesRead });
  });

  it.each<[string, Partial<ImportOptions>, object]>([
    ["a user that nobody is", { as: 99 }, { code: "rest_not_logged_in" }],
    [
      "an author that nobody is",
      { authors: { anna: 99 } },
      { code: "invalid_argument", field: "authors.anna" },
    ],
    ["files that have no place", { files: "fetch" }, { code: "invalid_argument", field: "files" }],
  ])("refuses %s before it reads", async (_, options, error) => {
    await expect(bring(contentSite(), [{}], options)).rejects.toMatchObject(error);
  });

  it("holds one entry at a time in memory, and ends before one that is endless", async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(`${wxrHead()}${wxrItem({})}<item><content:encoded><![CDATA[`);
      const piece = Buffer.alloc(1_048_576, "x");
      for (let n = 0; n < 1_024; n += 1) yield piece;
    }
    const { created, bytesRead, warnings } = await contentSite().import(endless(), { as: 1 });
    expect(created).toBe(1);
    expect(bytesRead).toBeLessThan(70_000_000);
    expect(warnings.map(({ message }) => message)).toContain(
      "The rest of the file was not read: an entry has more than 67108864 characters.",
    );
  });
});
