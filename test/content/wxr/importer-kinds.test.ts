/**
 * The kinds of files that WordPress's importer is tested with, in our own files: the records of
 * each, and what the summary says about the rest.
 */

import { describe, expect, it } from "vitest";
import type { ImportSummary } from "../../../src/content/wxr/options.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { bytesOf, WXR_END, wxrHead } from "../../support/wxr-file.js";

const item = (inside: string): string =>
  `<item><title>Ward round</title><wp:post_id>7</wp:post_id><wp:post_type>post</wp:post_type><wp:status>publish</wp:status>${inside}</item>`;
const text = (content: string): string => `<content:encoded>${content}</content:encoded>`;
const cdata = (content: string): string => `<![CDATA[${content}]]>`;
const file = (inside: string, more = ""): string => `${wxrHead(more)}${inside}${WXR_END}`;
const version = (number: string): ((whole: string) => string) => {
  return (whole) => whole.replaceAll("export/1.2/", `export/${number}/`).replace(">1.2<", `>${number}<`);
};
const meta = (value: string): string =>
  `<wp:postmeta><wp:meta_key>triage</wp:meta_key><wp:meta_value>${value}</wp:meta_value></wp:postmeta>`;
const comment =
  "<wp:comment><wp:comment_id>3</wp:comment_id><wp:comment_content>Thanks</wp:comment_content><wp:commentmeta><wp:meta_key>k</wp:meta_key><wp:meta_value>a:0:{}</wp:meta_value></wp:commentmeta></wp:comment>";
const author = (login: string, more = ""): string =>
  `<wp:author${more}><wp:author_id>1\n</wp:author_id><wp:author_login>${login}\n</wp:author_login><wp:author_email>${login}@example.org</wp:author_email></wp:author>`;
const category = (slug: string, more = ""): string =>
  `<wp:category><wp:term_id>5</wp:term_id><wp:category_nicename>${slug}</wp:category_nicename><wp:category_parent></wp:category_parent><wp:cat_name>${slug}</wp:cat_name>${more}</wp:category>`;
const ORGAN =
  "<wp:term><wp:term_id>6</wp:term_id><wp:term_taxonomy>organ</wp:term_taxonomy><wp:term_slug>heart</wp:term_slug><wp:term_name>Heart</wp:term_name></wp:term>";
const media = (url: string): string =>
  `<item><title>scan</title><wp:post_id>8</wp:post_id><wp:post_type>attachment</wp:post_type><wp:status>inherit</wp:status><wp:post_parent>7</wp:post_parent><wp:attachment_url>${url}</wp:attachment_url></item>`;

async function importFile(whole: string) {
  const site = contentSite({ meta: { post: { triage: { type: "string", single: true } } } });
  const summary: ImportSummary = await site.import(bytesOf(whole), { as: 1, trust: true });
  const { body } = await callsOf(site)("GET /posts", { as: "administrator", query: { context: "edit" } });
  return { site, summary, post: body[0] };
}

/** By kind: the file, the stored content, and the created, skipped and left out things. */
const KINDS: [kind: string, file: string, content: string | undefined, created: object, left: object][] = [
  [
    "back slashes",
    file(item(text(cdata("C:\\scans\\new \\' \\\\")))),
    "C:\\scans\\new \\' \\\\",
    { posts: 1 },
    {},
  ],
  ["blank lines", file(item(text(cdata("one\n\n\ntwo")))), "one\n\n\ntwo", { posts: 1 }, {}],
  ["an end that is nearly one of CDATA", file(item(text(cdata("a ]] > b")))), "a ]] > b", { posts: 1 }, {}],
  [
    "several CDATA sections in one text",
    file(item(text(`\n${cdata("a")}${cdata("b")}\n`))),
    "\nab\n",
    { posts: 1 },
    {},
  ],
  [
    "CDATA in CDATA, escaped",
    file(item(text(cdata("x <![CDATA[ y ]]]]><![CDATA[> z")))),
    "x <![CDATA[ y ]]> z",
    { posts: 1 },
    {},
  ],
  [
    "CDATA in CDATA, not escaped",
    file(item(text("<![CDATA[x <![CDATA[ y ]]> z]]>"))),
    "x <![CDATA[ y  z]]>",
    { posts: 1 },
    {},
  ],
  ["no CDATA", file(item(text("&lt;p&gt;a &amp; b&lt;/p&gt;"))), "<p>a & b</p>", { posts: 1 }, {}],
  ["version 1.0", version("1.0")(file(item(text("a")))), "a", { posts: 1 }, {}],
  ["version 1.1", version("1.1")(file(item(text("a")))), "a", { posts: 1 }, {}],
  [
    "items that lack elements",
    file(`<item><wp:post_type>post</wp:post_type><wp:status>publish</wp:status>${text("a")}</item>`),
    "a",
    { posts: 1 },
    {},
  ],
  ["comments with meta", file(item(`${text("a")}${comment}`)), "a", { posts: 1 }, { comments: 1 }],
  ["serialised meta", file(item(`${text("a")}${meta(cdata('s:3:"red";'))}`)), "a", { posts: 1 }, {}],
  [
    "meta of another program",
    file(item(`${text("a")}${meta("x").replace("triage", "_edit_lock")}`)),
    "a",
    { posts: 1 },
    { "meta _edit_lock": 1 },
  ],
  [
    "meta of terms",
    file(item(text("a")), category("wards", "<wp:termmeta><wp:meta_key>k</wp:meta_key></wp:termmeta>")),
    "a",
    { posts: 1, categories: 1 },
    {},
  ],
  [
    "a taxonomy that the site has not",
    file(item(`${text("a")}<category domain="organ" nicename="heart">Heart</category>`), ORGAN),
    "a",
    { posts: 1 },
    { "taxonomy organ": 1 },
  ],
  ["authors over several lines", file(item(text("a")), author("ann") + author("ben")), "a", { posts: 1 }, {}],
  [
    "an author inside an item",
    file(item(`<wp:author>ann</wp:author>${text("a")}`), author("ann")),
    "a",
    { posts: 1 },
    {},
  ],
  [
    "an author in another name space",
    file(item(text("a")), author("ann", ' xmlns:wp="http://example.org/other/"')),
    "a",
    { posts: 1 },
    {},
  ],
  ["signs of many scripts", file(item(text("🚀 Z̴a̷lgo مرحبا 你好"))), "🚀 Z̴a̷lgo مرحبا 你好", { posts: 1 }, {}],
  [
    "media of the same site",
    file(item(text("a")) + media("https://old.example.org/uploads/scan.png")),
    "a",
    { posts: 1, media: 1 },
    {},
  ],
  [
    "media of another site",
    file(item(text("a")) + media("https://cdn.example.net/scan.png")),
    "a",
    { posts: 1, media: 1 },
    {},
  ],
];

describe("a file of WordPress", () => {
  it.each(KINDS)("with %s is imported whole", async (_, whole, content, created, left) => {
    const { summary, post } = await importFile(whole);
    expect(post.content.raw).toBe(content);
    const counts = Object.entries(summary.kinds).map(([kind, { created: count }]) => [kind, count]);
    expect(Object.fromEntries(counts)).toEqual(created);
    expect(summary.notHeld).toEqual(left);
    expect(summary.skipped).toBe(0);
    expect(summary.warnings).toEqual([]);
  });

  it("shows the values of serialised meta to the types of the keys", async () => {
    const { post } = await importFile(file(item(`${text("a")}${meta(cdata('s:3:"red";'))}`)));
    expect(post.meta.triage).toBe("red");
  });

  it.each([
    [
      "without a version",
      (whole: string) => whole.replace(/<wp:wxr_version>.*<\/wp:wxr_version>/, ""),
      /wp:wxr_version is missing/,
    ],
    ["of an unknown version", version("1.234a"), /not 1\.0, 1\.1 or 1\.2/],
    ["that is empty", () => "", /it is empty/],
    ["without a channel", (whole: string) => whole.replace("<channel>", "<chanel>"), /rss has no channel/],
  ])("%s is refused", async (_, damage, message) => {
    await expect(importFile(damage(file(item(text("a")))))).rejects.toThrow(message);
  });

  it("that ends within an item has the items before it, and a warning for the rest", async () => {
    const { summary, post } = await importFile(`${wxrHead()}${item(text("a"))}<item><title>b</title>`);
    expect(post.content.raw).toBe("a");
    expect(summary).toMatchObject({ created: 1, skipped: 1 });
    expect(summary.warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining("the file ends before it is complete"),
      "The file ends before the end of the rss element.",
    ]);
  });

  it.each([
    ["'", "Signs between two elements were left out."],
    ["lost text", "(unexpected text)"],
  ])("with %j between two elements warns", async (stray, message) => {
    const { summary } = await importFile(
      file(item(`\n<wp:is_sticky>0</wp:is_sticky>${stray}\n${text("a")}`)),
    );
    expect(summary.warnings).toMatchObject([{ message: expect.stringContaining(message) }]);
    expect(summary.created).toBe(stray === "'" ? 1 : 0);
  });

  it("with a hundred authors and no item is imported in silence", async () => {
    const authors = Array.from({ length: 100 }, (_, at) => author(`nurse-${at}`)).join("");
    const site = contentSite();
    expect(await site.import(bytesOf(file("", authors)), { as: 1 })).toMatchObject({
      items: 0,
      created: 0,
      warnings: [],
    });
  });

  it.each([
    [
      "a category of an item",
      item(`<category domain="category" nicename="a">A<category domain="category" nicename="b">B</category>`),
    ],
    ["a category of the site", `${category("a").replace("</wp:category>", "")}${category("b")}`],
    ["the end of its name", `${category("a").replace("</wp:cat_name></wp:category>", "")}${category("b")}`],
  ])("that lost the end of %s makes no term of two", async (_, inside) => {
    const { site, summary } = await importFile(file(item(text("a")) + inside));
    const { body } = await callsOf(site)("GET /categories", { query: { per_page: 100 } });
    expect(body.map(({ name }: { name: string }) => name.toLowerCase())).toEqual(
      inside.includes("wp:category") ? ["b", "uncategorized"] : ["uncategorized"],
    );
    expect(summary.warnings).toMatchObject([{ message: expect.stringContaining("it is damaged") }]);
  });
});
