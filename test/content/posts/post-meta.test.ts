import { expect, it, vi } from "vitest";
import { collections } from "../../../src/content/collections.js";
import { writeMeta } from "../../../src/content/posts/post-meta.js";
import { sanitiseHtml, sanitiseTitle } from "../../../src/content/text/sanitise-html.js";

it("sanitises 500 footnotes with tags, and takes the tags from further ones", () => {
  const content = vi.fn<typeof sanitiseHtml>(sanitiseHtml);
  const site = {
    filter: { title: sanitiseTitle, content, excerpt: sanitiseHtml },
    filteredCharacters: 1_000_000,
  };
  const write = (notes: unknown): { content: string }[] => {
    const given = { footnotes: JSON.stringify(notes) };
    const caller = { has: () => false };
    const { footnotes } = writeMeta({}, given, collections.posts.meta, { caller, site });
    return JSON.parse(footnotes as string);
  };
  const plain = Array(1_000).fill({ id: "p", content: "plain" });
  const hostile = Array(10_000).fill({ id: "h", content: "<b onclick=x>a & <" });
  const notes = write([...plain, ...hostile]).map((note) => note.content);
  expect(notes.slice(0, 1_000)).toEqual(Array(1_000).fill("plain"));
  expect(notes.slice(1_000, 1_500)).toEqual(Array(500).fill("<b>a &amp; &lt;</b>"));
  expect(notes.slice(1_500)).toEqual(Array(9_500).fill("a & &lt;"));
  expect(content).toHaveBeenCalledTimes(1_500);
});
