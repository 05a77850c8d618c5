/** Checks the guarantees of every adapter over real sockets. A host is a few lines of glue. */

import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { prometheus } from "../../adapters/prometheus.js";
import { systemClock } from "../../src/core/clock.js";
import type { Problem } from "../../src/health/health-status.js";
import type { Service } from "../../src/http/types.js";
import { createHealth } from "../../src/index.js";
import { BODY_LIMIT, type EchoService, echoService } from "../support/echo-service.js";
import { begin, dial, json, type Reply, type Sent, send, untilClosed } from "../support/http-client.js";

export interface HostOptions {
  readonly service: Service;
  readonly prefix: string;
  /**
   * Body parsers of the host that run first: none; of JSON, leaving the value only, or the bytes
   * too; of forms and plain text.
   */
  readonly parser: "none" | "consuming" | "keeping" | "of other media";
}

/**
 * A host that answers GET `/before` and `/after` with that word, from before and from behind the
 * service, everything else that is not the service's with 404 `host not found`, and an error with
 * 500 `host error: <message>`.
 */
export type MountHost = (options: HostOptions) => Promise<RunningHost>;

export interface RunningHost {
  readonly origin: string;
  close(): Promise<void>;
}

export interface AdapterCase {
  readonly name: string;
  readonly mount: MountHost;
  readonly parsers: readonly HostOptions["parser"][];
  /** True for a framework in which answering OPTIONS at the root would take it from the host. */
  readonly leavesOptionsAtRoot?: boolean;
  /** Responses that the framework sends itself, before it calls a service. */
  readonly answersItself?: Partial<FrameworkAnswers>;
}

interface FrameworkAnswers {
  /** Methods that it does not know, with 404. */
  readonly methods: readonly string[];
  /** Paths whose percent-encoding cannot be decoded, with 400. */
  readonly undecodable: boolean;
}

const BEHIND: Readonly<Record<HostOptions["parser"], string>> = {
  none: "",
  consuming: ", behind a JSON parser that leaves the value only",
  keeping: ", behind a JSON parser that keeps the bytes",
  "of other media": ", behind parsers of forms and plain text",
};

export function adapterContract({
  name,
  mount,
  parsers,
  leavesOptionsAtRoot = false,
  answersItself = {},
}: AdapterCase): void {
  for (const prefix of ["", "/api"]) {
    for (const parser of parsers) {
      describe(`${name}, mounted at '${prefix}'${BEHIND[parser]}`, () => {
        hostContract(mount, { prefix, parser, leavesOptions: leavesOptionsAtRoot && prefix === "" });
      });
    }
    describe(`${name}, mounted at '${prefix}', hands on as it came`, () => {
      passingContract(mount, prefix, answersItself);
    });
    describe(`${name}, with what operates a service at '${prefix}'`, () => {
      operatingContract(mount, { prefix, leavesOptions: leavesOptionsAtRoot && prefix === "" });
    });
  }
}

/** A scraper and a supervisor get the same responses from every host. */
function operatingContract(
  mount: MountHost,
  { prefix, leavesOptions }: { readonly prefix: string; readonly leavesOptions: boolean },
): void {
  const problems: Problem[] = [];
  let hosts: readonly RunningHost[];
  let shown: ReturnType<typeof prometheus>;
  const ask = (path: string, method = "GET"): Promise<Reply> => {
    const [scraped, watched] = hosts;
    return send((path === "/metrics" ? scraped : watched)?.origin ?? "", prefix + path, { method });
  };

  beforeAll(async () => {
    shown = prometheus({ authorize: ({ headers }) => headers["x-leave"] !== "no" });
    shown.telemetry.record("emitDuration", 0.2, { outcome: "stored" });
    const health = createHealth({
      webhooks: { status: async () => ({ isStarted: true, problems }) },
      // No event loop has to be waited for.
      clock: { ...systemClock, monotonic: () => 0, setTimeout: (done) => systemClock.setTimeout(done, 0) },
    });
    hosts = await Promise.all(
      [shown.service, health].map((service) => mount({ service, prefix, parser: "none" })),
    );
  });
  afterAll(() => Promise.all(hosts.map((host) => host.close())));

  it("the metrics arrive as Prometheus reads them, byte for byte, or not at all", async () => {
    const reply = await ask("/metrics");
    expect(reply.status).toBe(200);
    expect(reply.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(reply.headers["cache-control"]).toBe("no-store");
    const request = { method: "GET", path: "/metrics", query: "", headers: {}, body: null, baseUrl: "" };
    expect(reply.text).toBe((await shown.service.handle(request))?.body);
    expect(reply.text).toContain('postbell_emit_duration_seconds_count{outcome="stored"} 1\n');
    const refused = await send(hosts[0]?.origin ?? "", `${prefix}/metrics`, { headers: { "x-leave": "no" } });
    expect([refused.status, refused.text]).toEqual([401, ""]);
  });

  it("the health is green with 200 and red with 503, each with its reasons", async () => {
    const green = { status: "ok", webhooks: { status: "ok", started: true, problems: [] } };
    for (const path of ["/healthz", "/livez"]) {
      problems.length = 0;
      const well = await ask(path);
      expect([well.status, well.headers["cache-control"]]).toEqual([200, "no-store"]);
      expect(well.headers["content-type"]).toBe("application/json; charset=utf-8");
      expect(well.json).toMatchObject(path === "/healthz" ? green : { status: "ok" });
      problems.push({ code: "loop_stalled", forMs: 60_000, reason: "It stalls." });
      const ill = await ask(path);
      expect(ill.status).toBe(503);
      expect(ill.json).toMatchObject({
        status: "failing",
        ...(path === "/healthz" && { webhooks: { problems } }),
      });
    }
  });

  it.each(["/metrics", "/healthz", "/livez"])(
    "%s answers GET and HEAD only, and leaves other paths to the host",
    async (path) => {
      problems.length = 0;
      const head = await ask(path, "HEAD");
      const whole = await ask(path);
      expect([head.status, head.text, head.headers["content-length"]]).toEqual([
        200,
        "",
        String(whole.body.length),
      ]);
      const refused = await ask(path, "POST");
      expect([refused.status, refused.headers.allow]).toEqual([405, "GET, HEAD, OPTIONS"]);
      const options = await ask(path, "OPTIONS");
      expect([options.status, options.headers.allow]).toEqual(
        leavesOptions ? [404, undefined] : [204, "GET, HEAD, OPTIONS"],
      );
      const other = await ask(`${path}z`);
      expect([other.status, other.text]).toEqual([404, "host not found"]);
    },
  );
}

/** The service validates a request, with the same result in every host. */
function passingContract(
  mount: MountHost,
  prefix: string,
  { methods: unknownMethods = [], undecodable = false }: Partial<FrameworkAnswers>,
): void {
  let service: EchoService;
  let host: RunningHost;
  const get = (path: string, sent?: Sent): Promise<Reply> => send(host.origin, prefix + path, sent);

  beforeAll(async () => {
    service = echoService();
    host = await mount({ service, prefix, parser: "none" });
  });
  afterAll(() => host.close());

  it.each([
    "",
    "nonsense",
    "/",
    "text/",
    "a/b, c/d",
    "application/json;;;",
    "application/json; charset",
    'APPLICATION/JSON ; charset="utf',
    "application/x-unknown",
    "multipart/form-data",
    "text/html ",
  ])("a body of the content type '%s', and an empty one", async (type) => {
    const headers = { "content-type": type };
    for (const body of ["abc", ""]) {
      const reply = await get("/bytes", { method: "POST", headers, body });
      expect([reply.status, reply.text]).toEqual([201, body]);
      const described = await get("/things/a", { method: "DELETE", headers, body });
      expect(described.json).toMatchObject({ method: "DELETE", headers: { "content-type": type.trim() } });
    }
    const chunked = { ...headers, "transfer-encoding": "chunked" };
    expect((await get("/bytes", { method: "POST", headers: chunked })).status).toBe(201);
    for (const method of ["PUT", "PATCH", "QUERY"]) {
      const reply = await get("/things/a", { method, headers, body: "abc" });
      expect([method, reply.status, reply.headers.allow]).toEqual([
        method,
        405,
        "GET, HEAD, DELETE, OPTIONS",
      ]);
    }
  });

  it("a body without a content type, of known length or not, and an empty one", async () => {
    for (const headers of [{}, { "transfer-encoding": "chunked" }]) {
      for (const body of ["abc", ""]) {
        const reply = await get("/bytes", { method: "POST", headers, body });
        expect([headers, reply.status, reply.text]).toEqual([headers, 201, body]);
      }
      const described = await get("/things/a", { method: "DELETE", headers, body: "abc" });
      expect(described.json).toMatchObject({ method: "DELETE" });
      expect(described.json).not.toHaveProperty("headers.content-type");
      for (const method of ["PUT", "PATCH", "QUERY"]) {
        const reply = await get("/things/a", { method, headers, body: "abc" });
        expect([method, reply.status]).toEqual([method, 405]);
      }
    }
    expect((await get("/bytes", { method: "POST" })).status).toBe(201);
  });

  it("bodies that come with GET and DELETE, and none where one is usual", async () => {
    for (const method of ["GET", "DELETE"]) {
      const reply = await get("/things/a", { ...json({ a: 1 }), method });
      expect([method, reply.status, reply.json]).toMatchObject([method, 200, { method }]);
    }
    for (const method of ["PUT", "PATCH"]) expect((await get("/things/a", { method })).status).toBe(405);
    const empty = { ...json(null), body: "" };
    expect((await get("/json", empty)).json).toMatchObject({ code: "invalid_json" });
  });

  it.each(["QUERY", "PROPFIND", "SEARCH", "MKCOL", "LOCK", "PURGE", "M-SEARCH"])(
    "the method %s, with a body and without",
    async (method) => {
      const isUnknown = unknownMethods.includes(method);
      for (const sent of [{ method }, { method, body: "abc" }]) {
        const reply = await get("/things/a", sent);
        const told = isUnknown ? [404, undefined] : [405, "GET, HEAD, DELETE, OPTIONS"];
        expect([method, reply.status, reply.headers.allow]).toEqual([method, ...told]);
      }
    },
  );

  it("a header that would override the method", async () => {
    const headers = { "x-http-method-override": "POST", "x-method-override": "POST" };
    expect((await get("/things/a", { method: "DELETE", headers })).json).toMatchObject({
      method: "DELETE",
      headers,
    });
  });

  it.each([
    "/things/A",
    "/things/a;b=1",
    "/things/a%2Fb",
    "/things/a%20",
    "/things/%E2%82%AC",
    "/things/:name",
  ])("the path %s", async (path) => {
    expect((await get(path)).json).toMatchObject({ path, baseUrl: host.origin + prefix });
  });

  it.each(["//things/a", "/Things/a", "/THINGS/a", "/things//a", "/th%69ngs/a", "/things/a/b"])(
    "the path %s, which is not the service's",
    async (path) => {
      const reply = await get(path);
      expect([reply.status, reply.text]).toEqual([404, "host not found"]);
    },
  );

  it.each(["/things/%zz", "/things/a%"])("the path %s, which cannot be decoded", async (path) => {
    const reply = await get(path);
    const { path: told } = reply.json as { path?: string };
    expect([reply.status, told]).toEqual(undecodable ? [400, undefined] : [200, path]);
  });

  it("a query that cannot be decoded", async () => {
    expect((await get("/things/a?x=%zz&=&&y")).json).toMatchObject({ query: "x=%zz&=&&y" });
  });

  it("Expect: 100-continue, which the server confirms", async () => {
    const socket = await dial(host.origin);
    const closed = untilClosed(socket);
    socket.write(`POST ${prefix}/bytes HTTP/1.1\r\nhost: a\r\nconnection: close\r\n`);
    socket.write("expect: 100-continue\r\ncontent-length: 3\r\n\r\n");
    await once(socket, "data");
    socket.write("abc");
    expect(await closed).toMatch(/^HTTP\/1\.1 100 [\s\S]*HTTP\/1\.1 201 [\s\S]*abc/);
  });

  it("a body that arrives too slowly, whose sender gets 408 and is cut off", async () => {
    const socket = await dial(host.origin);
    const closed = untilClosed(socket);
    socket.write(`POST ${prefix}/slow HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nabc`);
    expect(await service.next()).toBe("upload began");
    await service.clock.advance(10_000);
    expect(await closed).toMatch(/^HTTP\/1\.1 408 [\s\S]*connection: close[\s\S]*request_timeout/i);
    expect((await get("/things/again")).status).toBe(200);
  });
}

function hostContract(
  mount: MountHost,
  { prefix, parser, leavesOptions }: Omit<HostOptions, "service"> & { readonly leavesOptions: boolean },
): void {
  let service: EchoService;
  let host: RunningHost;
  const get = (path: string, sent?: Sent): Promise<Reply> => send(host.origin, prefix + path, sent);

  beforeAll(async () => {
    service = echoService();
    host = await mount({ service, prefix, parser });
  });
  afterAll(() => host.close());

  const stillWorks = async (): Promise<void> => {
    expect((await get("/things/again")).json).toMatchObject({ name: "again" });
  };

  it("a JSON route gets the value that was sent", async () => {
    const value = { text: "Zoë 🎈", list: [1, null, true] };
    const reply = await get("/json", json(value));
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual(value);
  });

  it("the routes of the host answer beside the service, and what is nobody's is left to the host", async () => {
    expect((await send(host.origin, "/before")).text).toBe("before");
    expect((await send(host.origin, "/after")).text).toBe("after");
    for (const path of ["/nothing-here", `${prefix}/nothing`, `${prefix}/things`, "/apix/things/a"]) {
      const reply = await send(host.origin, path);
      expect([path, reply.status, reply.text]).toEqual([path, 404, "host not found"]);
    }
    expect((await get("/nothing", json({ some: "body" }))).text).toBe("host not found");
  });

  it("a route that needs the raw bytes gets them exactly as sent, or says what to change where they are gone", async () => {
    const text = '{ "b" : 1.0,\n"a":"\\u00e9" }';
    const reply = await get("/bytes", { ...json(null), body: text });
    const advice = expect.stringMatching(/raw_body_unavailable.*before the body parser.*req\.rawBody/);
    expect([reply.status, reply.text]).toEqual(parser === "consuming" ? [500, advice] : [201, text]);
  });

  it("bytes that no body parser wants arrive unchanged", async () => {
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7) % 256));
    const headers = { "content-type": "application/octet-stream" };
    expect((await get("/bytes", { method: "POST", headers, body: bytes })).body.equals(bytes)).toBe(true);
  });

  it.each([
    ["a form", "application/x-www-form-urlencoded", "url=https%3A%2F%2Fexample.com"],
    ["plain text", "text/plain", '{"url":"https://example.com"}'],
  ])("a JSON route refuses %s with 415, whatever a body parser has made of it", async (_, type, body) => {
    const reply = await get("/json", { method: "POST", headers: { "content-type": type }, body });
    expect([reply.status, reply.json]).toMatchObject([415, { code: "unsupported_media_type" }]);
  });

  it("a JSON body above the service's limit is refused with 413, also where a body parser took it", async () => {
    const reply = await get("/json", json(["x".repeat(BODY_LIMIT)]));
    expect([reply.status, reply.json]).toMatchObject([413, { code: "body_too_large" }]);
  });

  if (parser !== "none") return;

  it("method, path, query, headers and mount point arrive as the client sent them", async () => {
    for (const method of ["GET", "DELETE"]) {
      const path = "/things/caf%C3%A9%20%2F%2f..%3F";
      const reply = await get(`${path}?a=%20b&a=2&c[]=?`, { method, headers: { "X-Thing": "one, two" } });
      expect(reply.json).toMatchObject({
        method,
        path,
        name: "café //..?",
        query: "a=%20b&a=2&c[]=?",
        headers: { "x-thing": "one, two", host: new URL(host.origin).host },
        baseUrl: host.origin + prefix,
      });
    }
    expect((await get("/things/plain/")).json).toMatchObject({ path: "/things/plain/", query: "" });
  });

  it("the mount point itself belongs to the service, with and without a trailing slash", async () => {
    for (const path of [prefix || "/", `${prefix}/`]) {
      expect((await send(host.origin, path)).json).toEqual({ path: "/", baseUrl: host.origin + prefix });
    }
  });

  it("a long path segment is not cut or refused", async () => {
    const name = "x".repeat(4_000);
    expect((await get(`/things/${name}`)).json).toMatchObject({ name });
  });

  it("headers named like built-in properties do no harm", async () => {
    const headers = { constructor: "a", ["__proto__"]: "b", "has-own-property": "c" };
    const reply = await get("/things/a", { headers });
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({ headers: { "has-own-property": "c" } });
  });

  it("a Host header that is no host does not reach the mount point's URL", async () => {
    const socket = await dial(host.origin);
    socket.write(`GET ${prefix}/things/a HTTP/1.1\r\nhost: evil.example/?x"<\r\nconnection: close\r\n\r\n`);
    expect(await untilClosed(socket)).not.toMatch(/"baseUrl":"[^"]*[?]/);
  });

  it("two Authorization headers arrive joined, not as the first one alone", async () => {
    const reply = await get("/things/a", { headers: { authorization: ["Bearer one", "Bearer two"] } });
    expect(reply.json).toMatchObject({ headers: { authorization: "Bearer one, Bearer two" } });
  });

  it("a body of no bytes is an empty body, announced, chunked or absent", async () => {
    const empty: Sent[] = [
      { method: "POST", body: "" },
      { method: "POST", headers: { "transfer-encoding": "chunked" } },
      { method: "POST" },
    ];
    for (const sent of empty) {
      const reply = await get("/bytes", sent);
      expect([reply.status, reply.body.length]).toEqual([201, 0]);
    }
  });

  it("a body without a content type arrives as bytes, and is refused by a JSON route with 415", async () => {
    expect((await get("/bytes", { method: "POST", body: "abc" })).text).toBe("abc");
    expect((await get("/json", { method: "POST", body: "{}" })).status).toBe(415);
  });

  it("malformed JSON is answered by the service, not by the host", async () => {
    const reply = await get("/json", { ...json(null), body: '{"secret":' });
    expect([reply.status, reply.text.includes("invalid_json")]).toEqual([400, true]);
  });

  it("HEAD has the head of GET, its length included, and no body", async () => {
    const body = (await get("/things/a")).body;
    const reply = await get("/things/a", { method: "HEAD" });
    expect(reply.status).toBe(200);
    // The answer names the method, so it is one byte longer.
    expect(reply.headers["content-length"]).toBe(String(body.length + 1));
    expect(reply.headers["content-type"]).toMatch("application/json");
    expect(reply.body.length).toBe(0);
    const stream = await get("/stream", { method: "HEAD" });
    expect([stream.status, stream.headers["content-length"]]).toEqual([200, undefined]);
  });

  it(`another method on a known path is 405 with Allow, and OPTIONS is ${leavesOptions ? "left to the host" : "204 with Allow"}`, async () => {
    const refused = await get("/things/a", { method: "PUT", body: "x" });
    expect([refused.status, refused.headers.allow]).toEqual([405, "GET, HEAD, DELETE, OPTIONS"]);
    const options = await get("/json", { method: "OPTIONS" });
    expect([options.status, options.headers.allow, options.text]).toEqual(
      leavesOptions ? [404, undefined, "host not found"] : [204, "POST, OPTIONS", ""],
    );
  });

  it("several values of one header stay several, and an answer without a body stays without", async () => {
    const cookies = await get("/cookies");
    expect(cookies.headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(cookies.headers["x-one"]).toBe("1");
    const empty = await get("/empty");
    expect([empty.status, empty.headers["x-empty"], empty.body.length]).toEqual([200, "yes", 0]);
  });

  it("a body announced too large is refused with 413 before it is read, and the connection is closed", async () => {
    const socket = await dial(host.origin);
    socket.write(`POST ${prefix}/bytes HTTP/1.1\r\nhost: a\r\ncontent-length: 9999999999\r\n\r\nabc`);
    const answer = await untilClosed(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*connection: close[\s\S]*body_too_large/i);
    await stillWorks();
  });

  it("a chunked body is refused with 413 where it passes the limit, however much is still to come", async () => {
    const socket = await dial(host.origin);
    const size = BODY_LIMIT + 1;
    socket.write(`POST ${prefix}/bytes HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n`);
    socket.write(`${size.toString(16)}\r\n${"x".repeat(size)}\r\n`);
    const answer = await untilClosed(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*connection: close[\s\S]*body_too_large/i);
    await stillWorks();
  });

  it("an answer given before the body has come closes the connection; one given after leaves it open", async () => {
    const early = await dial(host.origin);
    early.write(`POST ${prefix}/unread HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nabc`);
    expect(await untilClosed(early)).toMatch(/^HTTP\/1\.1 401 [\s\S]*not read/);

    const kept = await dial(host.origin);
    const closed = untilClosed(kept);
    kept.write(`POST ${prefix}/bytes HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc`);
    await once(kept, "data");
    kept.write(`GET ${prefix}/things/a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    expect(await closed).toMatch(/^HTTP\/1\.1 201 [\s\S]*HTTP\/1\.1 200 /);
  });

  it("an upload that the client aborts ends the reading, and the next request works", async () => {
    const socket = await dial(host.origin);
    socket.write(`POST ${prefix}/upload HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nabc`);
    expect(await service.next()).toBe("upload began");
    socket.destroy();
    expect(await service.next()).toBe("upload failed: request_aborted");
    await stillWorks();
  });

  it("a handler that waits learns that the client has left", async () => {
    const socket = await dial(host.origin);
    socket.write(`GET ${prefix}/hold HTTP/1.1\r\nhost: a\r\n\r\n`);
    expect(await service.next()).toBe("holding");
    socket.destroy();
    expect(await service.next()).toBe("client left");
    await stillWorks();
  });

  it("a streamed answer arrives whole", async () => {
    const reply = await get("/stream");
    expect(reply.body.length).toBe(8 * 16 * 1024);
    expect(reply.body.at(-1)).toBe(7);
    expect(await service.next()).toBe("stream closed");
  });

  it("a stream is closed when the client leaves in the middle of it", async () => {
    const response = await begin(host.origin, `${prefix}/endless`);
    await once(response, "readable");
    response.destroy();
    expect(await service.next()).toBe("stream closed");
    await stillWorks();
  });

  it("a stream that fails half-way cuts the connection, so that the client cannot take it for the whole", async () => {
    await expect(get("/cut-short")).rejects.toMatchObject({ code: "ECONNRESET" });
    await stillWorks();
  });

  it("a service that throws ends in the host's own error answer", async () => {
    const reply = await get("/broken");
    expect([reply.status, reply.text]).toEqual([500, "host error: the service is broken"]);
    await stillWorks();
  });
}
