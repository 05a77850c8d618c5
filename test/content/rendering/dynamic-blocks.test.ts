/** Blocks that show other records: patterns, footnotes and the table of dynamic blocks. */

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/schema/types.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite, type Role } from "../../support/content-site.js";

type Site = ReturnType<typeof contentSite>;

function pagesOf(site: Site) {
  const call = callsOf(site);
  const write = async (collection: string, body: JsonObject, as: Role = "editor") =>
    (await call(`POST /${collection}`, { as, body: { status: "publish", ...body } })).body;
  const read = async (id: number): Promise<string> => (await call(`GET /posts/${id}`)).body.content.rendered;
  const show = async (content: string, more: JsonObject = {}): Promise<string> =>
    (await write("posts", { title: "t", content, ...more })).content.rendered;
  return { call, write, read, show };
}

const paragraph = (text: string): string => `<!-- wp:paragraph -->\n<p>${text}</p>\n<!-- /wp:paragraph -->`;
const shown = (text: string): string => `\n<p class="wp-block-paragraph">${text}</p>\n`;
const pattern = (id: number): string => `<!-- wp:block {"ref":${id}} /-->`;

describe("a pattern in a content", () => {
  it("shows its blocks, with the patterns inside, and follows their changes", async () => {
    const { call, write, read } = pagesOf(contentSite());
    const inner = await write("blocks", { title: "i", content: paragraph('"inner"') });
    const outer = await write("blocks", {
      title: "o",
      content: `${paragraph("outer")}\n${pattern(inner.id)}`,
    });
    const post = await write("posts", { title: "t", content: `${pattern(outer.id)}\n${paragraph("own")}` });
    expect(post.content.rendered).toBe(`${shown("outer")}\n${shown("&#8220;inner&#8221;")}\n${shown("own")}`);
    expect(await read(post.id)).toContain("inner");
    await call(`PUT /blocks/${inner.id}`, { as: "editor", body: { content: paragraph("changed") } });
    expect(await read(post.id)).toBe(`${shown("outer")}\n${shown("changed")}\n${shown("own")}`);
  });

  it("is hidden as a draft, with a password, as another type, and inside itself", async () => {
    const { call, write, show } = pagesOf(contentSite());
    const content = paragraph("secret");
    const draft = await write("blocks", { title: "d", content, status: "draft" });
    const locked = await write("blocks", { title: "l", content, password: "x" });
    const post = await write("posts", { title: "p", content });
    const own = await write("blocks", { title: "s", content: "" });
    await call(`PUT /blocks/${own.id}`, { as: "editor", body: { content: `a${pattern(own.id)}b` } });
    for (const { id } of [draft, locked, post, { id: 999 }]) expect(await show(pattern(id))).toBe("");
    expect(await show(pattern(own.id))).toBe("ab");
  });

  it("of an author without free HTML is sanitised in a content of anybody", async () => {
    const { write, show } = pagesOf(contentSite());
    const { id } = await write("blocks", { title: "a", content: '<p onclick="x">a</p>' }, "author");
    expect(await show(pattern(id))).toBe("<p>a</p>");
  });

  it("that holds a hundred others, each with a hundred, is shown in part", async () => {
    const { write, show } = pagesOf(contentSite());
    const leaf = await write("blocks", { title: "l", content: paragraph("leaf") });
    const branch = await write("blocks", { title: "b", content: pattern(leaf.id).repeat(100) });
    const tree = await write("blocks", { title: "t", content: pattern(branch.id).repeat(100) });
    const html = await show(pattern(tree.id));
    expect(html.match(/leaf/g)?.length).toBe(989);
  });
});

describe("the footnotes of a content", () => {
  const note = '[{"content":"The \\"note\\" <b>b</b>","id":"a1"},{"content":"two","id":"b2\\" x"}]';

  it("are the ones in its meta field", async () => {
    const { show } = pagesOf(contentSite());
    const html = await show(`${paragraph("x")}\n<!-- wp:footnotes {"className":"own"} /-->`, {
      meta: { footnotes: note },
    });
    expect(html).toBe(
      `${shown("x")}\n<ol class="own wp-block-footnotes"><li id="a1">The &#8220;note&#8221; <b>b</b> <a href="#a1-link" aria-label="Jump to footnote reference 1">↩︎</a></li>` +
        `<li id="b2&quot; x">two <a href="#b2&quot; x-link" aria-label="Jump to footnote reference 2">↩︎</a></li></ol>`,
    );
  });

  it.each(["", "[]", "no json", '{"a":1}', "[null,1]"])(
    "are left out if the field is %j",
    async (footnotes) => {
      const { show } = pagesOf(contentSite());
      expect(await show("a<!-- wp:footnotes /-->b", { meta: { footnotes } })).toMatch(
        /^a(<ol[^>]*><\/ol>)?b$/,
      );
    },
  );
});

it("keeps what was saved of blocks that it does not know, however deep they are", async () => {
  const { show } = pagesOf(contentSite());
  const deep = `${"<!-- wp:group -->".repeat(5_000)}x${"<!-- /wp:group -->".repeat(5_000)}`;
  const html = await show(
    `<!-- wp:clinic/today -->saved<!-- /wp:clinic/today -->${deep}<!-- wp:footnotes /-->`,
  );
  expect(html).toBe("savedx");
});
