import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createProviderTable, isPattern, KNOWN_PROVIDERS } from "../../../src/content/embeds/providers.js";
import { readForeign, sandboxEmbed } from "../../../src/content/embeds/safe.js";
import { checkUrl } from "../../../src/outbound/address-policy.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { embedSite, json, NOT_FOUND, serve, VIDEO } from "../../support/embed-site.js";
import { reply, turns, until } from "../../support/https-endpoint.js";
import { siteWith } from "../../support/image-site.js";
import { plain } from "../../support/images.js";

const WATCH = "https://www.youtube.com/watch?v=abc";
const PAGE = "https://pages.example.org/a?b=1&c";

const closers: (() => Promise<void>)[] = [];

async function site(...options: Parameters<typeof embedSite>) {
  const made = await embedSite(...options);
  closers.push(made.close);
  return made;
}

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  vi.restoreAllMocks();
});

const TERMS = {
  page: PAGE,
  maxWidth: 600,
  maxHeight: undefined,
  isKnown: false,
  isAllowed: (url: string) => checkUrl(url, { allowHttp: true }).ok,
  isOwn: (url: string) => url.startsWith("https://site.example.com/"),
};
const htmlOf = (html: string, terms: Partial<typeof TERMS> = {}): string | undefined =>
  sandboxEmbed({ type: "rich", title: 'A "<b>title</b>"', html }, { ...TERMS, ...terms })?.html;
const frameOf = (src: string, sandbox = "allow-scripts", title = "A &quot;title&quot;"): string =>
  `<iframe sandbox="${sandbox}" src="${src}" width="600" height="400" title="${title}" loading="lazy" allowfullscreen ` +
  'referrerpolicy="strict-origin-when-cross-origin"></iframe>';

describe("a foreign text that is longer than what is read of it", () => {
  const titleOf = (title: string): string | undefined =>
    sandboxEmbed({ type: "link", title }, { ...TERMS })?.title;

  it("shows no half of a tag, and says that it goes on", () => {
    expect(titleOf(`Short${"<b></b>".repeat(570)}<i class="x">${" ".repeat(100)}more`)).toBe("Short…");
    expect(titleOf(`Short${" ".repeat(3_990)}<a href="https://a.example.net/">more</a>`)).toBe("Short…");
    expect(titleOf(`1 < 2${"<b></b>".repeat(700)}`)).toBe("1 &lt; 2…");
  });
});

describe("E33: what is left of another site's HTML", () => {
  it.each([
    ['<iframe src="https://a.example.net/1"></iframe>', frameOf("https://a.example.net/1")],
    [
      '<iframe src=" https://a.example.net/?a=1&amp;b=&quot;" onload=alert(1) srcdoc="<script>">',
      frameOf("https://a.example.net/?a=1&amp;b=%22"),
    ],
    [
      "<p><div><IFRAME SRC=https://a.example.net/1><script>alert(1)</script>",
      frameOf("https://a.example.net/1"),
    ],
    [
      '<iframe src="https://a.example.net/1"></iframe><iframe src="https://b.example.net/2"></iframe>',
      frameOf("https://a.example.net/1"),
    ],
    [
      "<blockquote class=x onclick=y>Said <b>so</b><script>alert(1)</script><style>*{}</style> &lt;img&gt; & more</blockquote><script src=//x></script>",
      `<blockquote cite="${PAGE.replace("&", "&amp;")}">Said so &amp; more</blockquote>`,
    ],
    [
      '<blockquote>a</blockquote><iframe src="javascript:alert(1)"></iframe>',
      `<blockquote cite="${PAGE.replace("&", "&amp;")}">a</blockquote>`,
    ],
    ['<iframe src="http://a.example.net/1"></iframe>', undefined],
    ['<iframe src="//a.example.net/1"></iframe>', undefined],
    ['<iframe src="https://user@a.example.net/1"></iframe>', undefined],
    ['<iframe src="https://10.0.0.1/"></iframe>', undefined],
    ['<iframe src="https://localhost/"></iframe>', undefined],
    ['<iframe src="https://site.example.com/wp-json/"></iframe>', undefined],
    ['<iframe src="data:text/html,<script>alert(1)</script>"></iframe>', undefined],
    ['<iframe srcdoc="<script>alert(1)</script>"></iframe>', undefined],
    ['<script><iframe src="https://a.example.net/1"></iframe></script>', undefined],
    ['<!-- <iframe src="https://a.example.net/1"></iframe> -->', undefined],
    ['<object data="https://a.example.net/1"></object><embed src="https://a.example.net/1">', undefined],
    ["<svg><script>alert(1)</script></svg><img src=x onerror=alert(1)>", undefined],
    ["<blockquote></blockquote>", undefined],
    ["", undefined],
  ])("%s", (html, left) => {
    expect(htmlOf(html)).toBe(left);
  });

  it("gives the frame of a known provider its own origin, of no other", () => {
    const html = '<iframe src="https://a.example.net/1"></iframe>';
    expect(htmlOf(html, { isKnown: true })).toBe(
      frameOf("https://a.example.net/1", "allow-scripts allow-same-origin allow-popups allow-presentation"),
    );
  });

  it("rewrites photos and links", () => {
    const embed = sandboxEmbed(
      {
        type: "photo",
        url: 'https://a.example.net/1.png?"><script>',
        title: "<i>x</i>",
        width: "1200",
        height: "600",
        html: "<script>",
      },
      TERMS,
    );
    expect(embed).toEqual({
      version: "1.0",
      type: "photo",
      url: "https://a.example.net/1.png?%22%3E%3Cscript%3E",
      title: "x",
      width: 600,
      height: 300,
      html:
        '<a href="https://pages.example.org/a?b=1&amp;c"><img src="https://a.example.net/1.png?%22%3E%3Cscript%3E" alt="x" ' +
        'width="600" height="300" /></a>',
    });
    expect(sandboxEmbed({ type: "link", html: "<script>" }, TERMS)).toEqual({
      version: "1.0",
      type: "link",
      html: '<a href="https://pages.example.org/a?b=1&amp;c">https://pages.example.org/a?b=1&amp;c</a>',
    });
  });

  it.each([
    [
      { width: "100%", height: "-5" },
      { width: 600, height: 400 },
    ],
    [
      { width: "1e9", height: "1" },
      { width: 600, height: 1 },
    ],
    [
      { width: "100000", height: "100000" },
      { width: 600, height: 600 },
    ],
    [
      { width: "300px", height: "150.5" },
      { width: 300, height: 150 },
    ],
  ])("clamps a size of %j", (given, shown) => {
    expect(sandboxEmbed({ ...VIDEO, ...given, type: "video" }, TERMS)).toMatchObject(shown);
    expect(
      sandboxEmbed({ ...VIDEO, width: "800", height: "400", type: "video" }, { ...TERMS, maxHeight: 100 }),
    ).toMatchObject({ width: 200, height: 100 });
  });

  it("holds nothing but a quotation's text and one sandboxed frame, whatever came", () => {
    const piece = fc.constantFrom(
      "<",
      ">",
      '"',
      "'",
      "<iframe",
      " src=",
      "https://a.example.net/",
      "</iframe>",
      "<blockquote>",
      "</blockquote>",
      "<script>",
      "</script>",
      "<!--",
      "-->",
      "&lt;",
      "&quot;",
      "javascript:",
      " onload=x",
      "x",
      " ",
      "/",
      "<svg>",
      "]]>",
    );
    const shape =
      /^(?:<blockquote cite="[^"<>]*">[^<>]*<\/blockquote>)?(?:<iframe sandbox="allow-scripts" src="https:\/\/[^"<>]*" width="\d+" height="\d+" title="[^"<>]*" loading="lazy" allowfullscreen referrerpolicy="[a-z-]*"><\/iframe>)?$/;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.string(), (pieces, title) => {
        const embed = sandboxEmbed({ type: "rich", title, html: pieces.join("") }, TERMS);
        expect(embed?.html ?? "").toMatch(shape);
        expect(embed?.title ?? "").not.toMatch(/[<]/);
      }),
      { numRuns: 2_000 },
    );
  });

  it("reads any bytes as JSON or XML without a throw", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom("application/json", "text/xml"),
        (bytes, type) => {
          const read = readForeign(bytes, type);
          for (const value of Object.values(read ?? {})) expect(typeof value).toBe("string");
        },
      ),
    );
    expect(
      readForeign(Buffer.from('{"__proto__":{"type":"link"},"type":{"a":1},"title":7}'), "application/json"),
    ).toEqual({ title: "7" });
  });
});

describe("E34: the answers that are kept", () => {
  it("are found again by the normalised question, by whoever asks", async () => {
    const { proxy, internet } = await site();
    serve(internet, { "www.youtube.com/oembed": json(VIDEO) });
    const first = await proxy(WATCH);
    for (const url of [WATCH, "https://WWW.youtube.com:443/watch?v=abc#t=3"]) {
      for (const role of ["administrator", "contributor"] as const) {
        expect(await proxy(url, {}, role)).toEqual(first);
        expect(await proxy(url, { maxwidth: 600, format: "xml" }, role)).toEqual(first);
      }
    }
    expect(internet.visits).toHaveLength(1);
    expect(await proxy(WATCH, {}, null)).toMatchObject({ status: 401 });
    await proxy(WATCH, { maxwidth: 500 });
    await proxy(WATCH, { maxheight: 500 });
    await proxy("https://www.youtube.com/watch?v=abd");
    expect(internet.visits).toHaveLength(4);
  });

  it("are fetched once for all who ask at the same time", async () => {
    const { proxy, internet } = await site({ cacheBytes: 0 });
    let release = (): void => {};
    internet.answer((socket) => {
      release = () => socket.write(json(VIDEO));
    });
    const answers = [proxy(WATCH), proxy(WATCH, {}, "author"), proxy(WATCH)];
    await until(() => internet.visits.length === 1);
    await turns(10);
    release();
    for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ status: 200 });
    expect(internet.visits).toHaveLength(1);
  });

  it.each([
    [{}, 60 * 60_000],
    [{ cache_age: 600 }, 10 * 60_000],
    [{ cache_age: "0" }, 5 * 60_000],
    [{ cache_age: -1e300 }, 5 * 60_000],
    [{ cache_age: 1e300 }, 24 * 60 * 60_000],
    [{ cache_age: "soon" }, 60 * 60_000],
  ])("stay for their time: %j", async (more, ageMs) => {
    const { proxy, clock, internet } = await site();
    serve(internet, { "www.youtube.com/oembed": json({ ...VIDEO, ...more }) });
    await proxy(WATCH);
    await clock.advance(ageMs - 1);
    await proxy(WATCH);
    expect(internet.visits).toHaveLength(1);
    await clock.advance(1);
    await proxy(WATCH);
    expect(internet.visits).toHaveLength(2);
  });

  it("stay for half a minute where they are failures", async () => {
    const { proxy, clock, internet } = await site();
    serve(internet, {});
    expect(await proxy(WATCH)).toMatchObject(NOT_FOUND);
    serve(internet, { "www.youtube.com/oembed": json(VIDEO) });
    await clock.advance(29_999);
    expect(await proxy(WATCH)).toMatchObject(NOT_FOUND);
    await clock.advance(1);
    expect(await proxy(WATCH)).toMatchObject({ status: 200 });
  });

  it("take no more room than they are given", async () => {
    const { proxy, internet } = await site({ cacheBytes: 20_000 });
    serve(internet, { "www.youtube.com/oembed": json({ ...VIDEO, title: "a".repeat(400) }) });
    for (let video = 0; video < 30; video += 1) await proxy(`${WATCH}${video}`);
    await proxy(`${WATCH}29`);
    expect(internet.visits).toHaveLength(30);
    await proxy(`${WATCH}0`);
    expect(internet.visits).toHaveLength(31);
  });

  it("are asked for later where all their time went by in the queue: nothing is known of a page that was not asked", async () => {
    const { proxy, internet, clock } = await site();
    internet.answer(() => {});
    const hanging = Array.from({ length: 8 }, (_, video) => proxy(`${WATCH}${video}`));
    await until(() => internet.visits.length === 8);
    const late = proxy(WATCH);
    await turns(20);
    await clock.advance(60_000);
    for (const { status } of await Promise.all(hanging)) expect(status).toBe(404);
    expect(await late).toMatchObject({ status: 429, body: { code: "rest_too_many_embeds" } });
    expect(internet.visits).toHaveLength(8);
    serve(internet, { "www.youtube.com/oembed": json(VIDEO) });
    expect(await proxy(WATCH)).toMatchObject({ status: 200 });
  });

  it("are waited for by no more than a hundred beside the eight that run", async () => {
    const { proxy, internet } = await site();
    internet.answer(() => {});
    const answers = Array.from({ length: 108 }, (_, video) => proxy(`${WATCH}${video}`));
    await until(() => internet.visits.length === 8);
    await turns(20);
    expect(internet.visits).toHaveLength(8);
    expect(await proxy(`${WATCH}x`)).toMatchObject({
      status: 429,
      headers: { "Retry-After": "5" },
      body: { code: "rest_too_many_embeds" },
    });
    internet.answer((socket) => socket.write(json(VIDEO)));
    await internet.close();
    for (const { status } of await Promise.all(answers)) expect(status).toBe(404);
  });
});

describe("E35: parameters of the proxy", () => {
  it.each([
    [{ maxwidth: 1e9 }, 200, "maxwidth=2000"],
    [{ maxwidth: -1 }, 200, "maxwidth=100"],
    [{ maxwidth: -300, maxheight: "-250px" }, 200, "maxwidth=300&maxheight=250"],
    [{ maxwidth: 300, maxheight: 1e9 }, 200, "maxwidth=300&maxheight=2000"],
    [{ maxwidth: "abc" }, 200, "maxwidth=100"],
    [{ maxheight: "150.5px" }, 200, "maxwidth=600&maxheight=150"],
    [{ format: "php" }, 400, undefined],
    [{ discover: "maybe" }, 400, undefined],
    [{ callback: "alert" }, 200, "maxwidth=600"],
  ] as const)("%j", async (query, status, asked) => {
    const { proxy, internet } = await site();
    serve(internet, { "www.youtube.com/oembed": json(VIDEO) });
    expect(await proxy(WATCH, query)).toMatchObject({ status });
    expect(internet.visits[0]?.path.split("&format=json&")[1]).toBe(asked);
  });
});

describe("the providers", () => {
  const find = createProviderTable(KNOWN_PROVIDERS);

  it("are well written, and their endpoints may be asked", () => {
    for (const { pages, endpoint } of KNOWN_PROVIDERS) {
      expect(pages.filter((page) => !isPattern(page))).toEqual([]);
      expect(checkUrl(endpoint).ok, endpoint).toBe(true);
    }
  });

  it.each([
    ["https://www.youtube.com/watch?v=a", "https://www.youtube.com/oembed"],
    ["http://youtu.be/a", "https://www.youtube.com/oembed"],
    ["https://vimeo.com/1/2", "https://vimeo.com/api/oembed.json"],
    ["https://x.com/somebody/status/1?s=2", "https://publish.twitter.com/oembed"],
    ["https://x.com/somebody/else/status/1", undefined],
    ["https://notyoutube.com/watch?v=a", undefined],
    ["https://youtube.com.example.org/watch?v=a", undefined],
    ["https://www.youtube.com:444/watch?v=a", undefined],
    ["https://www.youtube.com/", undefined],
    ["https://example.org/?https://www.youtube.com/watch", undefined],
  ])("%s: %s", (page, endpoint) => {
    expect(find(new URL(page))).toBe(endpoint);
  });

  it.each([
    [[{ pages: ["https://a.example/*"] }]],
    [[{ pages: ["ftp://a.example/*"], endpoint: "https://a.example/" }]],
    [[{ pages: ["https://*"], endpoint: "https://a.example/" }]],
    [[{ pages: ["https://a.example/*"], endpoint: "file:///etc/passwd" }]],
    [[null]],
    ["https://a.example/*"],
  ])("of the host are refused if they are invalid: %j", (providers) => {
    expect(() => contentSite({ embeds: { providers: providers as never } })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "embeds.providers" }),
    );
  });
});

describe("E36: the site's own posts", () => {
  const ORIGIN = "https://site.example.com";

  it("are embedded by every address that the site makes for them, and by no other", async () => {
    const { call, site: content, internet, proxy } = await site();
    const write = callsOf(content);
    const made = async (path: string, fields: object) =>
      (await write(`POST /${path}`, { as: "administrator", body: { status: "publish", ...fields } })).body;
    const post = await made("posts", { title: 'Ünder <b>"it"</b>', slug: "über-uns" });
    const parent = await made("pages", { title: "Above", slug: "above" });
    const child = await made("pages", { title: "Below", slug: "below", parent: parent.id });
    const hidden = [
      await made("posts", { title: "d", status: "draft", slug: "d" }),
      await made("posts", { title: "p", status: "private", slug: "p" }),
      await made("posts", { title: "f", status: "future", slug: "f", date: "2099-01-01T00:00:00" }),
      await made("blocks", { title: "b", slug: "b" }),
    ];
    const embed = (url: string, query = {}) => call("GET /embed", { query: { url, ...query } });

    for (const url of [
      post.link,
      post.link.slice(0, -1),
      `${post.link}?utm=1#top`,
      decodeURI(post.link),
      post.link.replace("https:", "http:"),
      `${ORIGIN}/?p=${post.id}`,
      post.guid.rendered,
    ]) {
      expect(await embed(url), url).toMatchObject({
        status: 200,
        body: { title: "Ünder <b>&#8220;it&#8221;</b>" },
      });
      expect(await proxy(url), url).toMatchObject({ status: 200 });
    }
    expect(await embed(child.link)).toMatchObject({ status: 200, body: { title: "Below" } });
    const { html } = (await embed(post.link)).body;
    expect(html).toContain(`<a href="${post.link}">Ünder &#8220;it&#8221;</a></blockquote><iframe`);
    expect(html).toContain('sandbox=""');

    for (const url of [
      ...hidden.flatMap(({ id, slug }: { id: number; slug: string }) => [
        `${ORIGIN}/?p=${id}`,
        `${ORIGIN}/${slug}/`,
      ]),
      post.link.replace(".com", ".com:8443"),
      post.link.replace("https:", "ftp:"),
      post.link.replace("site.", "www.site."),
      post.link.replace("https://", "https://user@"),
      `${ORIGIN}/below/`,
      `${ORIGIN}/else/below/`,
      `${ORIGIN}/a/?p=${post.id}`,
      `${ORIGIN}/?p=${post.id}x`,
      `${ORIGIN}/?p=-${post.id}`,
      `${ORIGIN}/%`,
      `${ORIGIN}/`,
      ORIGIN,
    ]) {
      expect(await embed(url), url).toMatchObject(NOT_FOUND);
      for (const as of ["administrator", "author"] as const) {
        expect(await call("GET /embed", { as, query: { url } }), url).toMatchObject(NOT_FOUND);
        // Those on other hosts may be asked for, like any page.
        expect(await proxy(url, { discover: "false" }, as), url).toMatchObject(NOT_FOUND);
      }
    }
    expect(internet.dialled).toEqual([]);
  });

  it("E35: have a size within bounds, and no callback", async () => {
    const { call, site: content } = await site();
    const { body: post } = await callsOf(content)("POST /posts", {
      as: "editor",
      body: { title: "a", status: "publish" },
    });
    for (const [maxwidth, width] of [
      ["1e9", 600],
      ["-1", 200],
      ["-700", 600],
      ["abc", 200],
      ["300.7px", 300],
      [["9"], 200],
    ] as const) {
      expect(await call("GET /embed", { query: { url: post.link, maxwidth } })).toMatchObject({
        status: 200,
        body: { width },
      });
    }
    expect(
      await call("GET /embed", { query: { url: post.link, format: "php", callback: "alert" } }),
    ).toMatchObject({ status: 200, body: { title: "a" } });
  });

  it("are XML where that is asked for, over HTTP and inside JSON", async () => {
    const { call, site: content } = await site();
    const { body: post } = await callsOf(content)("POST /posts", {
      as: "administrator",
      body: { title: "a & <i>b</i> ]]> \u0001", status: "publish" },
    });
    const query = `url=${encodeURIComponent(post.link)}&format=xml`;
    const fetched = async (more = "") => {
      const answer = await content.handle({
        method: "GET",
        path: "/oembed/1.0/embed",
        query: query + more,
        headers: {},
        body: null,
        baseUrl: "https://site.example.com/api",
      });
      return { ...answer, text: Buffer.from(answer?.body as Uint8Array).toString() };
    };
    const plain = await fetched();
    expect(plain).toMatchObject({ status: 200, headers: { "content-type": "text/xml; charset=UTF-8" } });
    expect(plain.text).toMatch(/^<\?xml version="1\.0"\?>\n<oembed><version>1\.0<\/version>/);
    const read = readForeign(Buffer.from(plain.text), "text/xml");
    const { body } = await call("GET /embed", { query: { url: post.link } });
    expect(read).toMatchObject({
      html: body.html.replaceAll("\u0001", ""),
      title: body.title.replace("\u0001", ""),
      width: "600",
    });
    expect((await fetched("&_pretty&_fields=title")).text).toBe(plain.text);
    const missing = await content.handle({
      ...{ method: "GET", path: "/oembed/1.0/embed", headers: {}, body: null },
      query: "url=https://site.example.com/nothing/&format=xml",
      baseUrl: "https://site.example.com/api",
    });
    expect(missing).toMatchObject({ status: 404, headers: { "content-type": "text/xml; charset=UTF-8" } });
    expect(Buffer.from(missing?.body as Uint8Array).toString()).toBe(
      '<?xml version="1.0"?>\n<oembed><code>oembed_invalid_url</code><message>Not Found</message>' +
        "<data><status>404</status></data></oembed>\n",
    );
    const enveloped = await fetched("&_envelope");
    expect(enveloped.headers).toMatchObject({ "content-type": "application/json; charset=UTF-8" });
    expect(JSON.parse(enveloped.text).body).toBe(plain.text);
    const script = await fetched("&_jsonp=go");
    expect(script.headers).toMatchObject({ "content-type": "application/javascript; charset=UTF-8" });
    expect(script.text).toBe(`/**/go(${JSON.stringify(plain.text)})`);
  });

  it("tell a protected post's title, as its lists do, and nothing of its text or picture", async () => {
    const { call, site: content } = await site();
    const { body: post } = await callsOf(content)("POST /posts", {
      as: "editor",
      body: { title: "a", content: "secret text", excerpt: "secret too", password: "x", status: "publish" },
    });
    const { body } = await call("GET /embed", { query: { url: post.link } });
    expect(body.title).toBe("Protected: a");
    expect(JSON.stringify(body)).not.toContain("secret");
  });
});

it("the site's own posts show their picture, unless they are protected", async () => {
  const { site: content, call, send } = siteWith({ images: undefined });
  const { body: image } = await send("heart.png", await plain(40, 30).png().toBuffer());
  const embedOf = async (password: string) => {
    const { body: post } = await call("POST /posts", {
      as: "editor",
      body: { title: "a", status: "publish", featured_media: image.id, password },
    });
    return (await callsOf(content, "oembed/1.0")("GET /embed", { query: { url: post.link } })).body;
  };
  expect(await embedOf("")).toMatchObject({
    thumbnail_url: image.source_url,
    thumbnail_width: 40,
    thumbnail_height: 30,
  });
  expect(JSON.stringify(await embedOf("x"))).not.toContain("thumbnail");
});

it("answers whatever another site does without a 5xx", async () => {
  const { proxy, internet } = await site({ cacheBytes: 0 });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(100, 200, 204, 301, 304, 404, 500, 999),
      fc.string(),
      fc.constantFrom("application/json", "text/xml", "", "text/html; charset=\u00e9"),
      async (status, body, type) => {
        internet.answer((socket) =>
          socket.end(reply(status, body, { "content-type": type, location: body.replace(/[^!-~]/g, "") })),
        );
        expect((await proxy(WATCH)).status).toBe(404);
      },
    ),
    { numRuns: 60 },
  );
});
