import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it, vi } from "vitest";
import { callsOf } from "../../support/content-call.js";
import { embedSite, page, serve } from "../../support/embed-site.js";
import { reply } from "../../support/https-endpoint.js";
import { type SocketSite, seenBy, socketSite } from "../../support/socket-calls.js";

const PAGE = "https://pages.example.org/a";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  vi.restoreAllMocks();
});

async function site(...options: Parameters<typeof embedSite>) {
  const made = await embedSite(...options);
  const over: SocketSite = await socketSite(made.site);
  closers.push(over.close, made.close);
  const inProcess = callsOf(made.site, "wp-block-editor/v1");
  return {
    ...made,
    over,
    details: (url: string) => inProcess("GET /url-details", { query: { url }, as: "editor" as const }),
  };
}

const HEAD = `<!DOCTYPE html><html><head>
<title> A &amp; B
 &lt;script&gt;x&lt;/script&gt;</title><title>Second</title>
<link rel="apple-touch-icon" href="/touch.png"><link rel="Shortcut Icon" href="img/fav.ico">
<meta name="description" content="About &quot;us&quot; <b>here</b>"><meta name="og:description" content="other">
<meta property="og:image" content="/big.png">
</head><body><meta name="description" content="late">`;

describe("/url-details", () => {
  it("reads title, icon, description and image from the head", async () => {
    const { internet, over } = await site();
    serve(internet, { "pages.example.org/a": page(HEAD) });
    const url = `/wp-block-editor/v1/url-details?url=${encodeURIComponent(`${PAGE}#top`)}`;
    expect(await over.inEachRole(`GET ${url}`)).toEqual(
      seenBy("200", {
        anonymous: "401 rest_cannot_view_url_details",
        subscriber: "403 rest_cannot_view_url_details",
      }),
    );
    const { body } = await over.call(`GET ${url}`, "contributor");
    expect(body).toEqual({
      title: expect.stringMatching(/^A & B/),
      icon: "https://pages.example.org/img/fav.ico",
      description: 'About "us" here',
      image: "https://pages.example.org/big.png",
    });
    expect(body.title).not.toContain("<");
    // One fetch served every caller.
    expect(internet.visits).toHaveLength(1);
    const { body: options } = await over.call(`OPTIONS ${url}`);
    expect([options.schema.title, options.endpoints[0].args.url.required]).toEqual(["url-details", true]);
    expect((await over.call(`GET ${url}&_fields=icon`, "author")).body).toEqual({ icon: body.icon });
  });

  it("returns empty texts for what a page does not say, and no address that is not a picture's", async () => {
    const { internet, details } = await site();
    const data = "data:image/svg+xml,<svg/>";
    serve(internet, {
      "pages.example.org/none": page("<p>No head"),
      "pages.example.org/pdf": reply(200, "%PDF <title>x</title>", { "content-type": "application/pdf" }),
      "pages.example.org/icon": page(
        `<link rel=icon href="${data}"><meta property=og:image content="${data}">`,
      ),
      "pages.example.org/script": page(
        `<link rel=icon href="javascript:alert(1)"><meta property=og:image content="data:text/html,x">`,
      ),
      "pages.example.org/deep": page(`<title>T</title>${"<div>".repeat(5_000)}`),
      "pages.example.org/long": page(`<head><title>${"t".repeat(200_000)}`),
    });
    const none = { title: "", icon: "", description: "", image: "" };
    expect((await details("https://pages.example.org/none")).body).toEqual(none);
    expect((await details("https://pages.example.org/pdf")).body).toEqual(none);
    expect((await details("https://pages.example.org/icon")).body).toEqual({ ...none, icon: data });
    expect((await details("https://pages.example.org/script")).body).toEqual(none);
    expect((await details("https://pages.example.org/deep")).body).toEqual({ ...none, title: "T" });
    const { title } = (await details("https://pages.example.org/long")).body;
    expect(title).toBe("t".repeat(10_000));
  });

  it("has WordPress's errors", async () => {
    const { internet, details } = await site();
    serve(internet, {
      "pages.example.org/empty": page(""),
      "pages.example.org/gone": reply(410, "<title>Gone</title>", { "content-type": "text/html" }),
    });
    expect(await details("https://pages.example.org/empty")).toMatchObject({
      status: 404,
      body: { code: "no_content", message: "Unable to retrieve body from response at this URL." },
    });
    for (const path of ["gone", "absent"]) {
      expect(await details(`https://pages.example.org/${path}`)).toMatchObject({
        status: 404,
        body: { code: "no_response" },
      });
    }
    for (const url of [
      "",
      "nonsense",
      "ftp://pages.example.org/",
      `https://a.example/${"x".repeat(2_048)}`,
    ]) {
      expect(await details(url), url).toMatchObject({ status: 400, body: { code: "rest_invalid_param" } });
    }
  });

  it("fetches nothing if the host turned that off", async () => {
    const { internet, details } = await site({ enabled: false });
    expect((await details(PAGE)).body.code).toBe("no_response");
    expect(internet.dialled).toEqual([]);
  });

  it("caches a page for an hour, and a failure for half a minute", async () => {
    const { internet, clock, details } = await site();
    serve(internet, { "pages.example.org/a": page(HEAD) });
    await details(PAGE);
    await clock.advance(3_599_000);
    await details(PAGE);
    expect(internet.visits).toHaveLength(1);
    await clock.advance(2_000);
    await details(PAGE);
    expect(internet.visits).toHaveLength(2);
    await details("https://pages.example.org/absent");
    await clock.advance(29_000);
    await details("https://pages.example.org/absent");
    expect(internet.visits).toHaveLength(3);
    await clock.advance(2_000);
    await details("https://pages.example.org/absent");
    expect(internet.visits).toHaveLength(4);
  });

  it("fetches from a private host that destinations.allow names, and never from a metadata service", async () => {
    const url = "https://pages.example.org/a";
    const detailsWith = async (allow: readonly string[], address: string) => {
      const made = await site({ cacheBytes: 0, destinations: { allow, resolve: async () => [address] } });
      serve(made.internet, { "pages.example.org/a": page(HEAD) });
      const { status } = await made.details(url);
      const { length } = made.internet.dialled;
      vi.restoreAllMocks();
      return [status, length];
    };
    expect(await detailsWith([], "10.1.2.3")).toEqual([404, 0]);
    expect(await detailsWith(["pages.example.org"], "10.1.2.3")).toEqual([200, 1]);
    expect(await detailsWith(["10.1.0.0/16"], "10.1.2.3")).toEqual([200, 1]);
    expect(await detailsWith(["10.2.0.0/16"], "10.1.2.3")).toEqual([404, 0]);
    expect(await detailsWith(["pages.example.org", "0.0.0.0/0"], "169.254.169.254")).toEqual([404, 0]);
  });

  it("refuses a private address and another port in the URL, unless it is allowed", async () => {
    const strict = await site();
    for (const url of ["https://10.1.2.3/", "https://wiki.internal/"])
      expect((await strict.details(url)).status).toBe(400);
    vi.restoreAllMocks();
    const open = await site({ destinations: { allow: ["10.1.0.0/16", "wiki.internal"] } });
    for (const url of ["https://10.1.2.3/", "https://wiki.internal/", "https://wiki.internal:8443/"])
      expect((await open.details(url)).body.code).toBe("no_response");
    expect((await open.details("https://169.254.169.254/")).status).toBe(400);
    // Both are dialled, but have no certificate of this name. The other port is not.
    expect(open.internet.dialled).toEqual(["10.1.2.3", "wiki.internal"]);
  });

  it("makes no connection for any of the list of hostile URLs, nor by a redirect", async () => {
    interface UrlCase {
      readonly id: string;
      readonly url: string;
      readonly verdict: "allow" | "block";
      readonly resolves?: readonly string[];
      readonly resolvesSequence?: readonly (readonly string[])[];
    }
    const file = new URL("../../data/ssrf-urls.json", import.meta.url);
    const { cases } = JSON.parse(readFileSync(file, "utf8")) as { cases: readonly UrlCase[] };
    let addresses: readonly string[] = [];
    const { internet, details } = await site({
      cacheBytes: 0,
      destinations: {
        resolve: async (name) => (name === "pages.example.org" ? ["93.184.215.14"] : addresses),
      },
    });
    const blocked = cases.filter(({ verdict }) => verdict === "block");
    expect(blocked.length).toBeGreaterThan(100);
    for (const { id, url, resolves, resolvesSequence } of blocked) {
      addresses = resolvesSequence?.at(-1) ?? resolves ?? ["93.184.215.14"];
      expect([400, 404], id).toContain((await details(url)).status);
      expect(internet.dialled, id).toEqual([]);
    }
    for (const location of [
      "https://169.254.169.254/latest/",
      "http://pages.example.org/b",
      "https://127.0.0.1/",
    ]) {
      serve(internet, {
        "pages.example.org/a": reply(302, "", { location }),
        "pages.example.org/b": page(HEAD),
      });
      expect((await details(PAGE)).body.code, location).toBe("no_response");
    }
    expect(new Set(internet.dialled)).toEqual(new Set(["pages.example.org"]));
  });
});
