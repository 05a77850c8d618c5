/** Short codes: what they become in contents, and where they stay as they are written. */

import { describe, expect, it } from "vitest";
import type { ContentOptions } from "../../../src/content/options.js";
import type { JsonObject } from "../../../src/schema/types.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite, type Role } from "../../support/content-site.js";
import { siteWith } from "../../support/image-site.js";
import { plain } from "../../support/images.js";

function siteFor(options: Partial<ContentOptions> = {}) {
  const site = contentSite({ responsiveImages: false, ...options });
  const call = callsOf(site);
  const write = async (body: JsonObject, as: Role = "editor") =>
    (await call("POST /posts", { as, body: { title: "t", status: "publish", ...body } })).body;
  const show = async (content: string, as: Role = "editor"): Promise<string> =>
    (await write({ content }, as)).content.rendered;
  return { site, call, write, show };
}

const image = '<img src="http://localhost/uploads/a.jpg" alt="" width="300" height="200" />';

describe("a short code of WordPress in a content", () => {
  const { show } = siteFor();

  it.each([
    [
      "a caption with its picture",
      `[caption id="attachment_6" align="alignright" width="300"]${image} A "caption"[/caption]`,
      `<figure id="attachment_6" aria-describedby="caption-attachment-6" style="width: 300px" class="wp-caption alignright">${image}<figcaption id="caption-attachment-6" class="wp-caption-text">A &#8220;caption&#8221;</figcaption></figure>\n`,
    ],
    [
      "a caption around a link",
      `[wp_caption width="30"]<a href="/b">${image}</a> x <em>y</em>[/wp_caption]`,
      `<figure style="width: 30px" class="wp-caption alignnone"><a href="/b">${image}</a><figcaption class="wp-caption-text">x <em>y</em></figcaption></figure>\n`,
    ],
    ["a caption without width", `[caption]${image} x[/caption]`, `${image}\n`],
    [
      "an audio file",
      '[audio src="https://example.org/a.mp3" loop="on"]',
      '<audio class="wp-audio-shortcode" id="audio-ID-1" loop="1" preload="none" style="width: 100%;" controls="controls"><source type="audio/mpeg" src="https://example.org/a.mp3?_=1" /><a href="https://example.org/a.mp3">https://example.org/a.mp3</a></audio>\n',
    ],
    [
      "a film in two formats",
      '[video width="320" height="180" mp4="/a.mp4" webm="/a.webm" poster="/a.jpg"][/video]',
      '<div style="width: 320px;" class="wp-video"><video class="wp-video-shortcode" id="video-ID-1" width="320" height="180" poster="/a.jpg" preload="metadata" controls="controls"><source type="video/mp4" src="/a.mp4?_=1" /><source type="video/webm" src="/a.webm?_=1" /><a href="/a.mp4">/a.mp4</a></video></div>\n',
    ],
    [
      "an audio file of an unknown kind",
      "[audio src=https://example.org/a.xyz]",
      '<a class="wp-embedded-audio" href="https://example.org/a.xyz">https://example.org/a.xyz</a>\n',
    ],
    [
      "a page to embed",
      "see [embed]https://example.org/a--b?c=1&d=2[/embed]",
      '<p>see <a href="https://example.org/a--b?c=1&#038;d=2">https://example.org/a--b?c=1&amp;d=2</a></p>\n',
    ],
    ["a gallery without images", 'a [gallery ids="1,2"] b', "<p>a  b</p>\n"],
    ["an escaped short code", 'Write [[gallery ids="1"]] here', '<p>Write [gallery ids="1"] here</p>\n'],
    [
      "an escaped short code with its end",
      '[[caption width="1"]x[/caption]]',
      '<p>[caption width="1"]x[/caption]</p>\n',
    ],
  ])("shows %s", async (_, content, rendered) => {
    expect((await show(content)).replace(/(audio|video)-\d+-/, "$1-ID-")).toBe(rendered);
  });

  it.each([
    ['[unknown a="1" b=\'2\']"x"[/unknown]', "<p>[unknown a=\"1\" b='2']&#8220;x&#8221;[/unknown]</p>\n"],
    [
      '[contact-form-7 id="1" title="It\'s -- here"]',
      '<p>[contact-form-7 id="1" title="It\'s -- here"]</p>\n',
    ],
    ['<a title="[gallery]">x</a>', '<p><a title="[gallery]">x</a></p>\n'],
    ['[he said "yes"]', "<p>[he said &#8220;yes&#8221;]</p>\n"],
    ["[sic] [1] []", "<p>[sic] [1] []</p>\n"],
    ['[gallery ids="1', "<p>[gallery ids=&#8221;1</p>\n"],
    ["[gallerys] [gallery-x]", "<p>[gallerys] [gallery-x]</p>\n"],
  ])("leaves %s as it is written", async (content, rendered) => {
    expect(await show(content)).toBe(rendered);
  });

  it("keeps its place in a block", async () => {
    const content = '<!-- wp:shortcode -->\n[audio src="/a.mp3"]\n<!-- /wp:shortcode -->';
    expect(await show(content)).toContain("<audio ");
  });

  it("lets an author without free HTML write no attribute, script or open element", async () => {
    const hostile = [
      '[video src="javascript:alert(1)//a.mp4"]',
      `[audio src='" onerror="alert(1).mp3']`,
      '[caption width="1" class="&quot; onclick=&quot;alert(1)"]<img src="a">x[/caption]',
      '[caption width="1" caption="<script>alert(1)</script>"]<img src="a">[/caption]',
      "<div>[caption width=1]<img src=a></div><div>x[/caption]</div>",
    ];
    for (const content of hostile) {
      const html = await show(content, "author");
      const withoutValues = html.replace(/"(?!javascript:)[^"]*"/gi, '""');
      expect(withoutValues).not.toMatch(/<script| on\w+=|javascript:/i);
      expect(html.match(/<div/g)?.length).toBe(html.match(/<\/div/g)?.length);
    }
  });
});

it("stays as it is written in titles and written excerpts, and is left out of generated ones", async () => {
  const { write } = siteFor({ shortcodes: { price: () => "9" } });
  const code = "[gallery ids=\"1\" x='2']";
  const { title, excerpt, id } = await write({ title: `Say ${code}`, excerpt: `See ${code}` });
  expect([title.rendered, excerpt.rendered]).toEqual([`Say ${code}`, `<p>See ${code}</p>\n`]);
  expect(id).toBeGreaterThan(0);
  const generated = await write({
    content: 'a [caption width="1"]<img src="a"> b[/caption] c [price] [[audio]]',
  });
  expect(generated.excerpt.rendered).toBe("<p>a c [audio]</p>\n");
});

it("is run in previews and revisions", async () => {
  const { site, call, write } = siteFor({ shortcodes: { price: ({ of }) => `<b>${of}</b>` } });
  const { id } = await write({ content: "[price of=x]" });
  await call(`PUT /posts/${id}`, { as: "editor", body: { content: "[price of=y]" } });
  const { body } = await call(`GET /posts/${id}/revisions`, { as: "editor" });
  expect(body.map((one: JsonObject) => (one["content"] as JsonObject)["rendered"])).toContain("<b>y</b>\n");
  expect((await site.preview({ postId: id, content: "[price of=z]", as: 2 })).html).toBe("<b>z</b>\n");
});

describe("a gallery", () => {
  const wide = () => plain(1200, 800).jpeg().toBuffer();

  it("shows the images of the site in the order of their ids, with captions and links", async () => {
    const { send, call } = siteWith({ responsiveImages: false });
    const { body: a } = await send("a.jpg", await wide());
    const { body: b } = await send("b.jpg", await wide());
    await call(`PUT /media/${a.id}`, { as: "editor", body: { caption: 'It\'s "a"', alt_text: 'A "B"' } });
    const content = `[gallery ids="${b.id},${a.id},999" columns="2" link="file"]`;
    const { body } = await call("POST /posts", { as: "editor", body: { content, status: "publish" } });
    const file = (of: string) => `http://localhost/uploads/${a.media_details.file.slice(0, 8)}${of}`;
    const item = (of: string, alt: string, id: string, caption: string) =>
      `<figure class='gallery-item'>\n\t\t\t<div class='gallery-icon landscape'>\n\t\t\t\t<a href='${file(`${of}.jpg`)}'><img width="150" height="150" src="${file(`${of}-150x150.jpg`)}" class="attachment-thumbnail size-thumbnail" alt="${alt}"${id} /></a>\n\t\t\t</div>${caption}</figure>`;
    expect(body.content.rendered).toBe(
      `<div id='gallery-1' class='gallery galleryid-${body.id} gallery-columns-2 gallery-size-thumbnail'>` +
        item("b", "", "", "") +
        item(
          "a",
          "A &quot;B&quot;",
          ` aria-describedby="gallery-1-${a.id}"`,
          `\n\t\t\t\t<figcaption class='wp-caption-text gallery-caption' id='gallery-1-${a.id}'>\n\t\t\t\tIt&#8217;s &#8220;a&#8221;\n\t\t\t\t</figcaption>`,
        ) +
        "\n\t\t</div>\n\n",
    );
  });

  it("without ids shows the images of its post, and follows their changes", async () => {
    const { send, call } = siteWith({ responsiveImages: false });
    const { body: post } = await call("POST /posts", {
      as: "editor",
      body: { content: '[gallery link="none" size="medium"]', status: "publish" },
    });
    const read = async () => (await call(`GET /posts/${post.id}`)).body.content.rendered as string;
    expect(await read()).toBe("\n");
    const { body: media } = await send("a.jpg", await wide());
    await call(`PUT /media/${media.id}`, { as: "editor", body: { post: post.id, alt_text: "one" } });
    expect(await read()).toMatch(
      /<img width="300" height="200" [^>]*alt="one" srcset="[^"]* 300w, [^"]* 1024w/,
    );
    await call(`PUT /media/${media.id}`, { as: "editor", body: { alt_text: "two" } });
    expect(await read()).toContain('alt="two"');
  });

  it("follows changes of its images if a reserved character stands in its name", async () => {
    const { send, call } = siteWith({ responsiveImages: false });
    const { body: media } = await send("a.jpg", await wide());
    await call(`PUT /media/${media.id}`, { as: "editor", body: { alt_text: "one" } });
    const content = `[gal\ufdd7lery ids="${media.id}"]`;
    const { body: post } = await call("POST /posts", { as: "editor", body: { content, status: "publish" } });
    const read = async () => (await call(`GET /posts/${post.id}`)).body.content.rendered as string;
    expect(await read()).toContain('alt="one"');
    await call(`PUT /media/${media.id}`, { as: "editor", body: { alt_text: "two" } });
    expect(await read()).toContain('alt="two"');
  });

  it("hides images of posts that are not public", async () => {
    const { send, call } = siteWith({ responsiveImages: false });
    const { body: draft } = await call("POST /posts", { as: "editor", body: { title: "d" } });
    const { body: media } = await send("secret.jpg", await wide());
    await call(`PUT /media/${media.id}`, { as: "editor", body: { post: draft.id } });
    const content = `[gallery ids="${media.id}"]`;
    const { body } = await call("POST /posts", { as: "author", body: { content, status: "publish" } });
    expect(body.content.rendered).toBe("\n");
  });
});

describe("a playlist", () => {
  it("lists the files with a player for each", async () => {
    const { send, call } = siteWith({ files: memoryFiles() });
    const sound = Buffer.concat([Buffer.from("ID3\u0003\0\0\0\0\0\0"), Buffer.alloc(512)]);
    const { status, body: media } = await send("a.mp3", sound, "administrator", {
      "content-type": "audio/mpeg",
    });
    expect(status).toBe(201);
    const content = `[playlist ids="${media.id}"]`;
    const { body } = await call("POST /posts", { as: "editor", body: { content, status: "publish" } });
    expect(body.content.rendered).toBe(
      `<div class="wp-playlist wp-audio-playlist wp-playlist-light"><ol><li><a href="${media.source_url}">a</a><audio controls="controls" preload="none" src="${media.source_url}"></audio></li></ol></div>\n`,
    );
  });
});

describe("a short code of the host", () => {
  it("gets its attributes, the content between its tags and the post", async () => {
    const calls: unknown[] = [];
    const { show } = siteFor({
      shortcodes: {
        box(attributes, content, { name, post }) {
          calls.push(attributes);
          return `<div class="${name}">${content} ${post.title}</div>`;
        },
      },
    });
    const html = await show(`[box A="1" b='2' c=3 "four" five]\n[audio src="/a.mp3"] in[/box]`);
    expect(calls).toEqual([{ a: "1", b: "2", c: "3", "0": "four", "1": "five" }]);
    expect(html).toMatch(/^<div class="box">[\s\S]*<audio [\s\S]*<\/audio> in t<\/div>\n$/);
  });

  it("takes the place of the one that WordPress has", async () => {
    const { show } = siteFor({ shortcodes: { gallery: async () => "<b>own</b>" } });
    expect(await show("[gallery]")).toBe("<b>own</b>\n");
  });

  it("that throws, returns no text or never ends is logged and shown as it is written", async () => {
    const clock = manualClock(0);
    const logged: string[] = [];
    const log = () => {};
    const { show } = siteFor({
      clock,
      logger: {
        ...{ debug: log, info: log, error: log },
        warn: (fields: object) => logged.push((fields as { shortCode: string }).shortCode),
      },
      shortcodes: {
        broken: () => {
          throw new Error("no");
        },
        odd: (() => 7) as never,
        none: () => null,
        late: () => {
          setImmediate(() => void clock.advance(5_000));
          return new Promise<string>(() => {});
        },
      },
    });
    expect(await show('[broken a="1"] [odd] [none] [late] [late]x[/late]')).toBe(
      '<p>[broken a="1"] [odd] [none] [late] [late]x[/late]</p>\n',
    );
    expect(logged).toEqual(["broken", "odd", "late", "late"]);
  });

  it("is refused by name if the option is no object of functions", () => {
    for (const shortcodes of [{ "a b": () => "" }, { a: "x" }, []] as never[]) {
      expect(() => siteFor({ shortcodes })).toThrow(/shortcodes must be an object of at most 100 functions/);
    }
  });
});

it("runs at most 1000 short codes and 1 MiB of their HTML in one content", async () => {
  const { show } = siteFor({ shortcodes: { a: () => "!", big: () => "x".repeat(600_000) } });
  const html = await show("[a]".repeat(1_200));
  expect([html.match(/!/g)?.length, html.match(/\[a\]/g)?.length]).toEqual([1_000, 200]);
  expect((await show("[big] [big] [a]")).replace(/x+/, "x")).toBe("<p>x [big] [a]</p>\n");
});
