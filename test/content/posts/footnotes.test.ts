import { expect, it } from "vitest";
import { createSite } from "../../../src/content/site.js";
import { createSiteZone } from "../../../src/content/text/dates.js";

it("sanitises 500 footnotes with tags, and takes the tags from further ones", async () => {
  const site = createSite({ url: "http://localhost", name: "Example" }, createSiteZone("UTC"), undefined);
  const write = async (notes: unknown): Promise<{ content: string }[]> =>
    JSON.parse(await site.sanitise("footnotes", JSON.stringify(notes)));
  const plain = Array(1_000).fill({ id: "a", content: "plain" });
  const hostile = Array(10_000).fill({ id: "a", content: "<b onclick=x>a & <" });
  const notes = (await write([...plain, ...hostile])).map(({ content: text }) => text);
  expect(notes.slice(0, 1_000)).toEqual(Array(1_000).fill("plain"));
  expect(notes.slice(1_000, 1_500)).toEqual(Array(500).fill("<b>a &amp; &lt;</b>"));
  expect(notes.slice(1_500)).toEqual(Array(9_500).fill("a & &lt;"));
});
