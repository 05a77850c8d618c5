import fc from "fast-check";
import sax from "sax";
import { describe, expect, it } from "vitest";
import { exported } from "../../support/content-dump.js";
import { contentSite } from "../../support/content-site.js";
import { bytesOf, type ShortItem, wxrFile } from "../../support/wxr-file.js";

/** All texts of an export in order, with each id replaced by the slug of its record. */
function withoutIds(text: string): string {
  const slugs = new Map(
    text.split("<item>").flatMap((item) => {
      const id = /<wp:post_id>(\d+)/.exec(item)?.[1];
      const slug = /<wp:post_name>([\s\S]*?)<\/wp:post_name>/.exec(item)?.[1];
      return id === undefined ? [] : [[id, `of ${slug}`] as const];
    }),
  );
  const name = (id: string): string => slugs.get(id) ?? "none";
  return text
    .replace(/<wp:term_id>\d+/g, "")
    .replace(/(?:[?&]|&amp;)(?:p|page_id|attachment_id)=\d+/g, "")
    .replace(/<wp:(post_id|post_parent)>(\d+)/g, (_, tag: string, id: string) => `<wp:${tag}>${name(id)}`)
    .replace(
      /((?:_thumbnail_id|_menu_item_object_id|_menu_item_menu_item_parent)\]\]><\/wp:meta_key>\s*<wp:meta_value><!\[CDATA\[)(\d+)/g,
      (_, start: string, id: string) => start + name(id),
    );
}

const copyOf = async (text: string): Promise<string> => {
  const content = contentSite();
  await content.import(bytesOf(text), { as: 1, trust: true });
  return exported(content);
};

const HEAD =
  "<wp:tag><wp:term_id>5</wp:term_id><wp:tag_slug>red</wp:tag_slug><wp:tag_name>R&amp;D</wp:tag_name><wp:tag_description>d</wp:tag_description></wp:tag>\n";

const EVERYTHING: readonly ShortItem[] = [
  { id: 1, type: "page", slug: "mother", menuOrder: 3, meta: { _wp_page_template: "wide.php" } },
  { id: 2, type: "page", slug: "child", parent: 1, status: "draft", dateGmt: "0000-00-00 00:00:00" },
  {
    id: 3,
    slug: "one",
    title: "T ]]> <b>&amp;</b>",
    content: "a]]>b]]]]><![CDATA[>c\n\n<!-- wp:x /-->",
    sticky: true,
    terms: [
      ["category", "ward", "Ward"],
      ["post_tag", "red", "R&D"],
      ["post_format", "post-format-aside", "Aside"],
    ],
    meta: { _thumbnail_id: "4", footnotes: '[{"id":"1","content":"x"}]' },
  },
  {
    id: 4,
    type: "attachment",
    slug: "pic",
    parent: 3,
    excerpt: "Caption",
    attachmentUrl: "https://old.example.org/u/2019/01/pic.png",
    meta: {
      _wp_attached_file: "2019/01/pic.png",
      _wp_attachment_image_alt: "Alt",
      _wp_attachment_metadata:
        'a:4:{s:5:"width";i:9;s:6:"height";i:8;s:4:"file";s:15:"2019/01/pic.png";s:10:"image_meta";a:1:{s:6:"camera";s:8:"Camera 7";}}',
    },
  },
  { id: 5, slug: "secret", password: " p&w " },
  {
    id: 6,
    slug: "gone__trashed",
    status: "trash",
    meta: { _wp_trash_meta_status: "publish", _wp_desired_post_slug: "gone" },
  },
  {
    id: 7,
    type: "wp_block",
    slug: "block",
    meta: { wp_pattern_sync_status: "unsynced" },
    terms: [["wp_pattern_category", "p", "P"]],
  },
  { id: 10, type: "wp_navigation", slug: "main", content: "<!-- wp:page-list /-->" },
  {
    id: 8,
    type: "nav_menu_item",
    slug: "item",
    excerpt: "attr",
    content: "desc",
    terms: [["nav_menu", "main", "Main"]],
    meta: {
      ...{ _menu_item_type: "post_type", _menu_item_object: "page", _menu_item_object_id: "1" },
      ...{ _menu_item_target: "_blank", _menu_item_classes: 'a:1:{i:0;s:1:"c";}', _menu_item_xfn: "me" },
    },
  },
  {
    id: 9,
    type: "nav_menu_item",
    slug: "link",
    title: "Link",
    terms: [["nav_menu", "main", "Main"]],
    meta: {
      _menu_item_type: "custom",
      _menu_item_url: "https://example.org/?a=1&b=2",
      _menu_item_menu_item_parent: "8",
    },
  },
];

describe("content.export", () => {
  it("writes a file that reproduces the site when it is imported", async () => {
    const first = await copyOf(wxrFile(EVERYTHING, HEAD));
    expect(first.match(/<item>/g)).toHaveLength(EVERYTHING.length);
    const second = await copyOf(first);
    expect(withoutIds(second)).toBe(withoutIds(first));
    for (const text of [
      ...[
        "<wp:wxr_version>1.2<",
        "a]]]]><![CDATA[>b",
        "[CDATA[wide.php]]",
        "[CDATA[ p&w ]]",
        "post-format-aside",
      ],
      ...[
        "[CDATA[unsynced]]",
        "[CDATA[_blank]]",
        's:6:"camera";s:8:"Camera 7";',
        "https://old.example.org/u/2019/01/pic.png",
        "0000-00-00 00:00:00",
      ],
      ...["R&amp;D", "[CDATA[Caption]]", "[CDATA[gone]]", "<wp:is_sticky>1<", '{"id":"1","content":"x"}'],
    ]) {
      expect(first).toContain(text);
    }
  });

  it("is well-formed and lossless for any texts", async () => {
    const text = fc.string({ unit: "binary", maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ title: text, content: text, excerpt: text }), { maxLength: 4 }),
        async (texts) => {
          const content = contentSite();
          for (const body of texts) {
            const { status } = await content.request({
              method: "POST",
              path: "/core/v2/posts",
              body: { ...body, status: "publish" },
              as: 1,
            });
            // Empty texts make no post.
            expect([201, 400]).toContain(status);
          }
          const first = await exported(content);
          const parser = sax.parser(true);
          parser.onerror = (error) => {
            throw error;
          };
          parser.write(first).close();
          const second = await copyOf(first);
          expect(withoutIds(second)).toBe(withoutIds(first));
        },
      ),
      { numRuns: 30 },
    );
  });

  it("is recognised by the site that imported it", async () => {
    const content = contentSite();
    const file = wxrFile(EVERYTHING, HEAD);
    await content.import(bytesOf(file), { as: 1 });
    const before = await exported(content);
    await content.import(bytesOf(file), { as: 1 });
    expect(await exported(content)).toBe(before);
  });

  it("stops when its signal is aborted", async () => {
    const content = contentSite();
    await content.import(bytesOf(wxrFile(EVERYTHING)), { as: 1 });
    const stopped = AbortSignal.abort(new Error("enough"));
    const run = async (): Promise<void> => {
      for await (const _ of content.export({ signal: stopped }));
    };
    await expect(run()).rejects.toThrow("enough");
  });
});
