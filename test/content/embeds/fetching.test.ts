import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it, vi } from "vitest";
import { embedSite, json, NOT_FOUND, page, serve, VIDEO, xml } from "../../support/embed-site.js";
import { reply, turns, until } from "../../support/https-endpoint.js";

const WATCH = "https://www.youtube.com/watch?v=abc";
const PAGE = "https://pages.example.org/a";
const linkTo = (href: string, type = "application/json+oembed"): Buffer =>
  page(`<!DOCTYPE html><html><head><link rel="alternate" type="${type}" href="${href}"></head><body>`);

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

describe("the embed proxy", () => {
  it("E29: is for those who write", async () => {
    const { proxy, internet } = await site();
    serve(internet, { "www.youtube.com/oembed": json(VIDEO) });
    expect(await proxy(WATCH, {}, null)).toMatchObject({ status: 401, body: { code: "rest_forbidden" } });
    expect(await proxy(WATCH, {}, "subscriber")).toMatchObject({ status: 403 });
    expect(internet.dialled).toEqual([]);
    expect(await proxy(WATCH, {}, "contributor")).toMatchObject({ status: 200 });
  });

  it("asks a known provider, and not the page, without saying who asks", async () => {
    const { proxy, internet } = await site();
    serve(internet, { "www.youtube.com/oembed": json({ ...VIDEO, provider_name: "YouTube" }) });
    const answer = await proxy(`${WATCH}#t=1`, { maxheight: 300 });
    expect(answer).toMatchObject({
      status: 200,
      body: { type: "video", title: "A heart", provider_name: "YouTube", width: 480, height: 270 },
    });
    expect(internet.visits.map(({ head }) => head.split("\r\n"))).toEqual([
      [
        `GET /oembed?url=${encodeURIComponent(WATCH)}&format=json&maxwidth=600&maxheight=300 HTTP/1.1`,
        "host: www.youtube.com",
        "connection: keep-alive",
        "accept-encoding: identity",
        "accept: application/json, text/xml;q=0.5",
        "user-agent: Postbell",
      ],
    ]);
  });

  it("asks the host's own providers first", async () => {
    const { proxy, internet } = await site({
      providers: [{ pages: ["https://*.youtube.com/*"], endpoint: "https://video.example.net/o?key=1" }],
    });
    serve(internet, { "video.example.net/o": json(VIDEO) });
    expect(await proxy("http://m.youtube.com/any")).toMatchObject({ status: 200 });
    expect(internet.visits[0]?.path).toMatch(/^\/o\?key=1&url=http/);
  });

  it("finds the endpoint that a page names in its head, JSON before XML, relative ones too", async () => {
    const { proxy, internet } = await site();
    const head =
      '<LINK HREF="/x" Type="text/xml+oembed" rel="alternate"><link type=application/json+oembed rel="Alternate nofollow" href="/j?a=1&amp;b=2">';
    serve(internet, {
      "pages.example.org/a": page(`<html><head>${head}</head>`),
      "pages.example.org/j": json(VIDEO),
      "pages.example.org/b": linkTo("https://oembed.example.org/x", "text/xml+oembed"),
      "oembed.example.org/x": xml(
        "<?xml version='1.0'?><oembed><type>rich</type><title>1 &lt; 2 &amp; 3</title><html><![CDATA[<blockquote>Said</blockquote>]]></html></oembed>",
      ),
    });
    expect(await proxy(PAGE)).toMatchObject({ status: 200, body: { title: "A heart" } });
    expect(internet.visits[1]?.path).toBe("/j?a=1&b=2&maxwidth=600");
    expect(await proxy("https://pages.example.org/b")).toMatchObject({
      status: 200,
      body: { title: "1 &lt; 2 & 3", html: expect.stringMatching(/^<blockquote[^>]*>Said<\/blockquote>$/) },
    });
  });

  it("looks at the head of an HTML page alone", async () => {
    const { proxy, internet } = await site();
    const link = '<link rel="alternate" type="application/json+oembed" href="/j">';
    const answers = {
      "pages.example.org/body": page(`<html><head></head><body>${link}`),
      "pages.example.org/bare": page(`<body>${link}`),
      "pages.example.org/comment": page(`<head><!-- ${link} --></head>`),
      "pages.example.org/script": page(`<head><script>"${link}"</script></head>`),
      "pages.example.org/style": page(
        `<head><link rel=stylesheet type=application/json+oembed href=/j></head>`,
      ),
      "pages.example.org/far": page(`<head>${" ".repeat(150_000)}${link}</head>`),
      "pages.example.org/text": reply(200, link, { "content-type": "text/plain" }),
      "pages.example.org/gone": reply(410, `<head>${link}`, { "content-type": "text/html" }),
      "pages.example.org/j": json(VIDEO),
    };
    serve(internet, answers);
    for (const address of Object.keys(answers).slice(0, -1)) {
      expect(await proxy(`https://${address}`), address).toMatchObject(NOT_FOUND);
    }
    expect(internet.visits.map(({ path }) => path)).not.toContain("/j?maxwidth=600");
    serve(internet, { ...answers, "pages.example.org/near": page(`<head>${link}${" ".repeat(300_000)}`) });
    expect(await proxy("https://pages.example.org/near")).toMatchObject({ status: 200 });
  });

  it("looks for no endpoint where the request or the host does not want it", async () => {
    const asked = await site();
    expect(await asked.proxy(PAGE, { discover: "false" })).toMatchObject(NOT_FOUND);
    expect(asked.internet.dialled).toEqual([]);
    for (const options of [{ discover: false }, { enabled: false }]) {
      const { proxy, internet } = await site(options);
      expect(await proxy(PAGE)).toMatchObject(NOT_FOUND);
      expect(internet.dialled).toEqual([]);
    }
  });
});

describe("addresses that must not be reached", () => {
  interface UrlCase {
    readonly id: string;
    readonly url: string;
    readonly verdict: "allow" | "block";
    readonly resolves?: readonly string[];
    readonly resolvesSequence?: readonly (readonly string[])[];
  }
  const { cases } = JSON.parse(
    readFileSync(new URL("../../data/ssrf-urls.json", import.meta.url), "utf8"),
  ) as {
    cases: readonly UrlCase[];
  };

  it("E30: no connection is made for any of the list of URLs, as a page or as an endpoint", async () => {
    let addresses: readonly string[] = [];
    const { proxy, internet } = await site({
      cacheBytes: 0,
      destinations: {
        resolve: async (name) => (name === "pages.example.org" ? ["93.184.215.14"] : addresses),
      },
    });
    const blocked = cases.filter(({ verdict }) => verdict === "block");
    expect(blocked.length).toBeGreaterThan(100);
    for (const { id, url, resolves, resolvesSequence } of blocked) {
      addresses = resolvesSequence?.at(-1) ?? resolves ?? ["93.184.215.14"];
      expect([400, 404], id).toContain((await proxy(url)).status);
      expect(internet.dialled, id).toEqual([]);
    }
    for (const { id, url, resolves, resolvesSequence } of blocked) {
      addresses = resolvesSequence?.at(-1) ?? resolves ?? ["127.0.0.1"];
      // The parser may turn it into another URL of the page's own host, which may be fetched.
      serve(internet, {
        "pages.example.org/a": linkTo(url.replaceAll("&", "&amp;").replaceAll('"', "&quot;")),
      });
      expect(await proxy(PAGE), id).toMatchObject(NOT_FOUND);
      expect(new Set(internet.dialled), id).toEqual(new Set(["pages.example.org"]));
    }
  });

  it("E31: every hop of a redirect is judged, and there are at most three", async () => {
    const { proxy, internet } = await site();
    const to = (location: string): Buffer => reply(302, "", { location });
    serve(internet, {
      "pages.example.org/1": to("/2"),
      "pages.example.org/2": to("https://oembed.example.org/3"),
      "oembed.example.org/3": to("/4"),
      "oembed.example.org/4": linkTo("/j"),
      "oembed.example.org/j": json(VIDEO),
      "pages.example.org/0": to("/1"),
      "pages.example.org/metadata": to("https://169.254.169.254/latest/"),
      "pages.example.org/plain": to("http://pages.example.org/4"),
      "pages.example.org/port": to("https://pages.example.org:8443/4"),
      "pages.example.org/named": to("https://rebound.example.org/"),
      "pages.example.org/refresh": page(
        '<head><meta http-equiv="refresh" content="0; url=https://oembed.example.org/4"></head>',
      ),
      "pages.example.org/endpoint": linkTo("/metadata"),
    });
    internet.setAddress("rebound.example.org", "10.0.0.1");
    expect(await proxy("https://pages.example.org/1")).toMatchObject({ status: 200 });
    const before = internet.visits.length;
    for (const path of ["0", "metadata", "plain", "port", "named", "refresh", "endpoint"]) {
      expect(await proxy(`https://pages.example.org/${path}`), path).toMatchObject(NOT_FOUND);
    }
    expect(new Set(internet.dialled)).toEqual(new Set(["pages.example.org", "oembed.example.org"]));
    expect(internet.visits.slice(before).map(({ path }) => path)).not.toContain("/4");
  });

  it("E31: an address in an answer that is not public is left out, and nothing in an answer is fetched", async () => {
    const { proxy, internet } = await site();
    const fields = {
      thumbnail_url: "http://169.254.169.254/latest.png",
      thumbnail_width: 10,
      author_url: "http://localhost/me",
      provider_url: "javascript:alert(1)",
    };
    serve(internet, { "www.youtube.com/oembed": json({ ...VIDEO, ...fields }) });
    const { status, body } = await proxy(WATCH);
    expect(status).toBe(200);
    expect(Object.keys(body).sort()).toEqual(["height", "html", "title", "type", "version", "width"]);
    expect(internet.dialled).toEqual(["www.youtube.com"]);
    for (const url of ["https://10.0.0.1/a.png", "file:///etc/passwd", "data:image/svg+xml,<svg/>"]) {
      serve(internet, { "www.youtube.com/oembed": json({ type: "photo", url }) });
      expect(await proxy(`${WATCH}${encodeURIComponent(url)}`), url).toMatchObject(NOT_FOUND);
    }
  });
});

describe("E32: answers that are too much", () => {
  it.each([
    [
      "announced to have 1 GB",
      Buffer.from(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000000\r\n\r\n${" ".repeat(200_000)}`,
      ),
    ],
    [
      "a gzip bomb",
      reply(200, gzipSync(Buffer.alloc(20_000_000, 32)), {
        "content-type": "application/json",
        "content-encoding": "gzip",
      }),
    ],
    ["over the cap", json({ ...VIDEO, padding: "a".repeat(150_000) })],
    [
      "with a document type",
      xml(
        '<!DOCTYPE oembed [<!ENTITY a "b">]><oembed><type>rich</type><html>&lt;blockquote>&a;</html></oembed>',
      ),
    ],
    [
      "with an external entity",
      xml('<?xml version="1.0"?><!DOCTYPE o SYSTEM "file:///etc/passwd"><oembed><type>link</type></oembed>'),
    ],
    ["XML as deep as it goes", xml(`<oembed><type>link</type>${"<a>".repeat(40_000)}`)],
    ["JSON as deep as it goes", json(`${"[".repeat(74_000)}${"]".repeat(74_000)}`)],
    ["JSON with depth in a field", json(`{"type":"rich","html":${"[".repeat(50_000)}${"]".repeat(50_000)}}`)],
    ["JSON that ends too soon", json('{"type":"link"')],
    ["of another type", reply(200, JSON.stringify(VIDEO), { "content-type": "text/html" })],
    ["without a type", reply(200, JSON.stringify(VIDEO))],
    ["of an unknown kind", json({ type: "script", html: "<script>alert(1)</script>" })],
    ["nothing but a script", json({ type: "rich", html: "<script>alert(1)</script>" })],
    ["HTML as deep as it goes", json({ ...VIDEO, html: `${VIDEO.html}${"<b>".repeat(40_000)}` })],
    ["an error", reply(500, "oh no", { "content-type": "application/json" })],
    ["forbidden", reply(401)],
    ["no HTTP", Buffer.from("nonsense\r\n\r\n")],
  ])("a response that is %s gives no embed", async (_, answer) => {
    const { proxy, internet } = await site();
    serve(internet, { "www.youtube.com/oembed": answer });
    expect(await proxy(WATCH)).toMatchObject(NOT_FOUND);
    await until(() => internet.openConnections() <= 1);
  });

  it("one that never ends is cut off", async () => {
    const { proxy, internet } = await site();
    internet.answer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
      const pour = (): void => {
        if (!socket.destroyed) socket.write(" ".repeat(65_536), () => setImmediate(pour));
      };
      pour();
    });
    expect(await proxy(WATCH)).toMatchObject(NOT_FOUND);
    await until(() => internet.openConnections() === 0);
  });

  it("one that comes too slowly is given up at the one deadline, page and endpoint together", async () => {
    const { proxy, clock, internet } = await site();
    internet.answer((socket, { path }) => {
      if (path === "/a") socket.write(linkTo("/slow"));
      else socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"type":');
    });
    const answer = proxy(PAGE);
    await until(() => internet.visits.length === 2);
    await turns(20);
    await clock.advance(4_999);
    expect(await Promise.race([answer, turns(20).then(() => "waiting")])).toBe("waiting");
    await clock.advance(1);
    expect(await answer).toMatchObject(NOT_FOUND);
    await until(() => internet.openConnections() === 0);
    expect(clock.nextTimerAt()).toBeUndefined();
  });
});
