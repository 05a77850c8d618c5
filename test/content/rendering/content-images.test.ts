/** Images in contents: what is added to those of the site and to others. */

import { expect, it } from "vitest";
import { siteWith } from "../../support/image-site.js";
import { plain } from "../../support/images.js";

const wide = () => plain(1200, 800).jpeg().toBuffer();

async function siteWithImage(options: Parameters<typeof siteWith>[0] = {}) {
  const { call, send } = siteWith(options);
  const { body: media } = await send("a.jpg", await wide());
  const url = (size: string): string => media.source_url.replace(/\.jpg$/, `${size}.jpg`);
  const write = async (content: string, as: "author" | "editor" = "editor") =>
    (await call("POST /posts", { as, body: { title: "t", content, status: "publish" } })).body;
  const show = async (content: string, as?: "author"): Promise<string> =>
    (await write(content, as)).content.rendered;
  return { call, id: media.id as number, url, write, show };
}

it("adds size, sources and lazy loading to an image of the site in a block", async () => {
  const { id, url, show } = await siteWithImage();
  const block = (tag: string) =>
    `<!-- wp:image {"id":${id}} -->\n<figure class="wp-block-image">${tag}</figure>\n<!-- /wp:image -->`;
  expect(await show(block(`<img src="${url("-1024x683")}" alt="" class="wp-image-${id}"/>`))).toBe(
    `\n<figure class="wp-block-image"><img loading="lazy" decoding="async" width="1024" height="683" src="${url("-1024x683")}" alt="" class="wp-image-${id}" ` +
      `srcset="${url("-1024x683")} 1024w, ${url("-300x200")} 300w, ${url("-768x512")} 768w, ${url("")} 1200w" sizes="auto, (max-width: 1024px) 100vw, 1024px" /></figure>\n`,
  );
});

it.each([
  [
    "keeps the size that the author chose",
    (url: string) => `<img class="wp-image-ID" src="${url}" width="600" height="400">`,
    / width="600" height="400" .*sizes="auto, \(max-width: 600px\) 100vw, 600px" \/>/,
  ],
  [
    "adds no sources in other proportions",
    (url: string) => `<img class="wp-image-ID" src="${url}" width="600" height="600">`,
    /<img loading="lazy" decoding="async" class="wp-image-\d+" src="[^"]*" width="600" height="600">/,
  ],
  [
    "follows the width in the style",
    (url: string) => `<img class="wp-image-ID" style="width: 150px;" src="${url}">`,
    / width="150" height="100" /,
  ],
  [
    "keeps attributes that are there",
    (url: string) =>
      `<img class="wp-image-ID" src="${url}" srcset="x 1w" sizes="1px" loading="eager" decoding="sync" width="3" height="2">`,
    /<img class="wp-image-\d+" src="[^"]*" srcset="x 1w" sizes="1px" loading="eager" decoding="sync" width="3" height="2">/,
  ],
  [
    "loads an urgent image at once",
    (url: string) => `<img class="wp-image-ID" fetchpriority="high" src="${url}">`,
    /<img decoding="async" width="1200" height="800" class="wp-image-\d+" fetchpriority="high" /,
  ],
  [
    "leaves a file of another image as it is",
    () => '<img class="wp-image-ID" src="/b.jpg">',
    /<img class="wp-image-\d+" src="\/b.jpg">/,
  ],
  [
    "loads other images with a size later",
    () => '<img src="/b.jpg" width="3" height="2">',
    /<img loading="lazy" decoding="async" src="\/b.jpg" width="3" height="2">/,
  ],
  ["leaves other images without a size as they are", () => '<img src="/b.jpg">', /<img src="\/b.jpg">/],
  [
    "loads frames with a size later",
    () => '<iframe src="/b" width="3" height="2"></iframe>',
    /<iframe loading="lazy" src="\/b" width="3" height="2"><\/iframe>/,
  ],
])("%s", async (_, tagOf, rendered) => {
  const { id, url, show } = await siteWithImage();
  expect(await show(tagOf(url("")).replaceAll("ID", String(id)))).toMatch(rendered);
});

it("adds nothing to images of posts that are not public, or with the option turned off", async () => {
  const { call, id, url, show } = await siteWithImage();
  const { body: draft } = await call("POST /posts", { as: "editor", body: { title: "d" } });
  await call(`PUT /media/${id}`, { as: "editor", body: { post: draft.id } });
  const tag = `<img src="${url("")}" class="wp-image-${id}" />`;
  expect(await show(tag)).toBe(`<p>${tag}</p>\n`);
  const off = await siteWithImage({ responsiveImages: false });
  const untouched = `<img src="${off.url("")}" class="wp-image-${off.id}" width="1200" height="800" />`;
  expect(await off.show(untouched)).toBe(`<p>${untouched}</p>\n`);
});

it("follows changes of the image in contents that were rendered before", async () => {
  const { call, id, url, write } = await siteWithImage();
  const { id: post } = await write(`<img src="${url("")}" class="wp-image-${id}" />`);
  const read = async () => (await call(`GET /posts/${post}`)).body.content.rendered as string;
  expect(await read()).toContain("srcset=");
  await call(`DELETE /media/${id}`, { as: "editor", query: { force: true } });
  expect(await read()).not.toContain("srcset=");
});

it("opens no attribute for an author without free HTML", async () => {
  const { id, url, show } = await siteWithImage();
  const html = await show(
    `<img alt=" sizes='&quot; onerror=&quot;x" class="wp-image-${id}" src="${url("")}" title=' src="/x.jpg" width="5"'>`,
    "author",
  );
  const withoutValues = html.replace(/"[^"]*"|'[^']*'/g, "_");
  expect(withoutValues).toBe(
    "<p><img loading=_ decoding=_ width=_ height=_ alt=_ class=_ src=_ title=_ srcset=_ sizes=_ /></p>\n",
  );
  expect(html).toContain(` title=' src="/x.jpg" width="5"'`);
});
