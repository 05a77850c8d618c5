/** URLs of an untrusted WXR file: nothing but what the URL parser writes is stored or shown. */

import { describe, expect, it } from "vitest";
import type { Content } from "../../../src/content/service.js";
import type { ContentStorage } from "../../../src/content/store.js";
import type { ImportedFile, ImportOptions } from "../../../src/content/wxr/options.js";
import { silentLogger } from "../../../src/core/logger.js";
import type { JsonObject } from "../../../src/schema/types.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { contentSite } from "../../support/content-site.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";
import { bytesOf, type ShortItem, WXR_END, wxrFile, wxrHead, wxrItem } from "../../support/wxr-file.js";

const DETAILS =
  'a:4:{s:5:"width";i:640;s:6:"height";i:480;s:4:"file";s:9:"heart.png";s:5:"sizes";a:1:{s:9:"thumbnail";a:4:{s:4:"file";s:17:"heart-150x150.png";s:5:"width";i:150;s:6:"height";i:150;s:9:"mime-type";s:9:"image/png";}}}';
const MENU: ShortItem["terms"] = [["nav_menu", "main", "Main"]];

/** A picture with this URL, and a post that shows it. */
const itemsWith = (attachmentUrl: string): readonly ShortItem[] => [
  {
    ...{ id: 1, type: "attachment", slug: "heart", attachmentUrl },
    meta: { _wp_attached_file: "heart.png", _wp_attachment_metadata: DETAILS },
  },
  { id: 2, slug: "shows", meta: { _thumbnail_id: "1" } },
];

const OWN = "http://localhost/uploads/heart.png";

/** URLs of a file, and what may be shown of each. */
const URLS: readonly (readonly [given: string, shown: string, thumbnail: string])[] = [
  ["https://a.example/x/heart.png", "https://a.example/x/heart.png", "https://a.example/x/heart-150x150.png"],
  [
    `HTTPS://A.example/x/"><script>alert(1)</script>/h'.png`,
    "https://a.example/x/%22%3E%3Cscript%3Ealert(1)%3C/script%3E/h%27.png",
    "https://a.example/x/%22%3E%3Cscript%3Ealert(1)%3C/script%3E/heart-150x150.png",
  ],
  [
    'https://a.example/x/h\teart.png?a=/b"\'<#\u202e"',
    "https://a.example/x/heart.png?a=/b%22%27%3C#%E2%80%AE%22",
    "https://a.example/x/heart-150x150.png",
  ],
  ["http:a.example/x/heart.png", "http://a.example/x/heart.png", "http://a.example/x/heart-150x150.png"],
  ...[
    "javascript:alert(1)//heart.png",
    "java\tscript:alert(1)//https://a.example/heart.png",
    "data:image/svg+xml,<svg onload=alert(1)>",
    "file:///etc/passwd",
    "//a.example/heart.png",
    "https://",
    "https://a b.example/heart.png",
    `https://a.example/${"x".repeat(2_048)}`,
    `https://a.example/${"ü".repeat(500)}`,
  ].map((given) => [given, OWN, "http://localhost/uploads/heart-150x150.png"] as const),
];

async function get(content: Content, path: string, query: JsonObject = {}): Promise<JsonObject> {
  const { status, body } = await content.request({ method: "GET", path, query: { ...query }, as: 1 });
  expect(status).toBe(200);
  return (Array.isArray(body) ? body[0] : body) as JsonObject;
}

const bring = (content: Content, items: readonly ShortItem[], options: Partial<ImportOptions> = {}) =>
  content.import(bytesOf(wxrFile(items)), { as: 1, ...options });

async function readExport(content: Content): Promise<string> {
  let text = "";
  for await (const part of content.export()) text += part;
  return text;
}

/** Lists each place that shows the URL of the picture. */
async function readPlaces(content: Content): Promise<JsonObject> {
  const media = await get(content, "/core/v2/media", { slug: "heart" });
  const { sizes } = media["media_details"] as { sizes: { [size: string]: { source_url: string } } };
  const url = "http://localhost/shows/";
  const embed = await get(content, "/oembed/1.0/embed", { url });
  const query = `url=${encodeURIComponent(url)}&format=xml`;
  const xml = await content.handle({
    ...{ method: "GET", path: "/oembed/1.0/embed", query, headers: {}, body: null },
    baseUrl: "http://localhost/api",
  });
  const exported = await readExport(content);
  return {
    source: media["source_url"] ?? null,
    full: sizes["full"]?.source_url ?? null,
    thumbnail: sizes["thumbnail"]?.source_url ?? null,
    embed: embed["thumbnail_url"] ?? null,
    xml:
      /<thumbnail_url>(.*)<\/thumbnail_url>/s.exec(Buffer.from(xml?.body as Uint8Array).toString())?.[1] ??
      null,
    exported: /<wp:attachment_url><!\[CDATA\[(.*?)\]\]>/s.exec(exported)?.[1] ?? null,
  };
}

const placesWith = (shown: string, thumbnail: string): JsonObject => ({
  ...{ source: shown, full: shown, thumbnail, embed: shown, xml: shown.replaceAll("&", "&amp;") },
  // A file without a URL and without bytes has no address that another site could fetch.
  exported: shown === OWN ? "" : shown,
});

/** Changes the stored body of every post whose key begins with `post/`. */
async function rewrite(storage: ContentStorage, change: (body: JsonObject) => JsonObject): Promise<void> {
  const store = storage.content({ clock: manualClock(0), logger: silentLogger });
  for await (const batch of (await store.load()).batches) {
    const keys = batch.map(({ key }) => key).filter((key) => key.startsWith("post/"));
    for (const record of await store.read(keys)) {
      if (record === undefined) continue;
      const body = JSON.stringify(change(JSON.parse(record.body) as JsonObject));
      const { key, version, columns, unique } = record;
      await store.commit([{ key, expectedVersion: version, record: { columns, body, unique } }]);
    }
  }
}

describe("the URL of a media file", () => {
  it.each(URLS)(
    "is shown as the parser writes it after an import (case %#)",
    async (given, shown, thumbnail) => {
      const content = contentSite();
      expect((await bring(content, itemsWith(given))).warnings).toEqual([]);
      expect(await readPlaces(content)).toEqual(placesWith(shown, thumbnail));
    },
  );

  it.each(CONTENT_STORAGES)("is shown so if it was stored unchecked on %s", async (_, open) => {
    const storage = open();
    const first = contentSite({ storage });
    await bring(first, itemsWith("https://a.example/heart.png"));
    for (const [given, shown, thumbnail] of URLS) {
      await rewrite(storage, (body) =>
        body["media"] === null
          ? body
          : { ...body, media: { ...(body["media"] as JsonObject), elsewhere: given } },
      );
      expect(await readPlaces(contentSite({ storage }))).toEqual(placesWith(shown, thumbnail));
    }
  });

  it("reaches the host's source of files only as the parser writes it, with a path that stays below a folder", async () => {
    const asked: ImportedFile[] = [];
    const take = async (attachmentUrl: string, path: string): Promise<void> => {
      const item = { id: 1, type: "attachment", attachmentUrl, meta: { _wp_attached_file: path } };
      const source: ImportOptions["files"] = (file) => {
        asked.push(file);
        return null;
      };
      await bring(contentSite({ files: memoryFiles() }), [item], { files: source });
    };
    await take("file:///etc/passwd", "../../etc/passwd");
    await take("javascript:alert(1)", "2019/03/photo (1)@2x.png");
    await take('https://a.example/"', "/etc/passwd");
    for (const path of ["a/../b", "a//b", "a\\b", "C:/x", "a\nb", "./a", `${"a/".repeat(600)}a`])
      await take("", path);
    expect(asked.map(({ url, path }) => [url, path])).toEqual([
      ...[
        ["", ""],
        ["", "2019/03/photo (1)@2x.png"],
        ["https://a.example/%22", ""],
      ],
      ...Array.from({ length: 7 }, () => ["", ""]),
    ]);
  });
});

describe("the URL of the site in the file", () => {
  it.each([
    ["https://old.example.org", "https://old.example.org"],
    ["https://old.example.org/blog/", "https://old.example.org/blog"],
    ["javascript:alert(1)", ""],
    ["https://a.example/&quot;&gt;&#9;x", "https://a.example/%22%3Ex"],
  ])("is reported as the parser writes it: %s", async (given, shown) => {
    const text = wxrHead("", given) + wxrItem({ id: 1 }) + WXR_END;
    expect((await contentSite().import(bytesOf(text), { as: 1 })).site.url).toBe(shown);
  });
});

describe("the URL of a menu item", () => {
  const UNSAFE = [
    "javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,x",
    "&#106;avascript&colon;x",
  ];
  const item = (url: string): ShortItem => ({
    ...{ id: 1, type: "nav_menu_item", terms: MENU },
    meta: { _menu_item_type: "custom", _menu_item_url: url },
  });
  const readUrls = async (content: Content): Promise<readonly unknown[]> => [
    (await get(content, "/core/v2/menu-items"))["url"],
    /_menu_item_url.*?<wp:meta_value><!\[CDATA\[(.*?)\]\]>/s.exec(await readExport(content))?.[1] ?? "",
  ];

  it.each(UNSAFE)("is empty if it can run a script: %j", async (url) => {
    const content = contentSite();
    await bring(content, [item(url)]);
    expect(await readUrls(content)).toEqual(["", ""]);
  });

  it("is empty if it is too long to be read", async () => {
    const content = contentSite();
    await bring(content, [item(`https://a.example/${"x".repeat(3_000)}`)]);
    expect(await readUrls(content)).toEqual(["", ""]);
  });

  it.each(CONTENT_STORAGES)("is cleaned if it was stored unchecked on %s", async (_, open) => {
    const storage = open();
    await bring(contentSite({ storage }), [item("/about")]);
    const cases = [...UNSAFE.map((url) => [url, ""]), ['/a"b<c>', "/abc"]] as const;
    for (const [url = "", shown] of cases) {
      await rewrite(storage, (body) =>
        body["menuItem"] === null
          ? body
          : { ...body, menuItem: { ...(body["menuItem"] as JsonObject), url } },
      );
      expect(await readUrls(contentSite({ storage }))).toEqual([shown, shown]);
    }
  });
});

describe("the URLs of a user", () => {
  it("are shown without what could run a script or end an attribute", async () => {
    const user = { id: 1, slug: "jane", name: "Jane", roles: ["administrator"] };
    const content = contentSite({
      users: [
        {
          ...user,
          url: "java\tscript:alert(1)",
          avatarUrls: { 24: "data:text/html,x", 48: 'https://a.example/"a\u0000.png', 96: "/jane.png" },
        },
      ],
    });
    expect(await get(content, "/core/v2/users/1")).toMatchObject({
      url: "",
      avatar_urls: { 24: "", 48: "https://a.example/a.png", 96: "/jane.png" },
    });
  });
});
