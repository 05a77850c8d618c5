import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { afterEach, assert, describe, expect, it } from "vitest";
import { createOutboundClient, type OutboundClientOptions } from "../../src/outbound/client.js";
import { createGuardedGet, type GetRequest, type GuardedGetOptions } from "../../src/outbound/guarded-get.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import {
  type Endpoint,
  type EndpointOptions,
  reply,
  startEndpoint,
  turns,
  until,
} from "../support/https-endpoint.js";

const DEADLINE_MS = 5_000;
const MAX_BYTES = 1_000;
const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()));
});

async function start(options: EndpointOptions): Promise<Endpoint & { readonly origin: string }> {
  const endpoint = await startEndpoint(options);
  cleanUps.push(endpoint.close);
  return { ...endpoint, origin: `http://127.0.0.1:${endpoint.port}` };
}

function getter(
  options: Partial<OutboundClientOptions> = {},
  { anyPort = true }: Partial<GuardedGetOptions> = {},
) {
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const policy = { allowPrivateNetworks: true, allowHttp: true };
  const client = createOutboundClient({ clock, policy, resolve: async () => ["127.0.0.1"], ...options });
  cleanUps.push(() => client.close());
  const guardedGet = createGuardedGet({ client, clock, anyPort });
  const get = (url: string, more: Partial<GetRequest> = {}) =>
    guardedGet({ url, maxBytes: MAX_BYTES, deadlineMs: DEADLINE_MS, ...more });
  /** Status and body, or the code of what went wrong. */
  const read = async (url: string, more: Partial<GetRequest> = {}) => {
    const result = await get(url, more);
    if (result.kind !== "response") return result.code;
    return buffer(result.body).then(
      (body) => `${result.status} ${String(body)}`,
      (error: { code: string }) => `${result.status} ${error.code}`,
    );
  };
  return { clock, client, get, read };
}

const pathOf = ({ head }: { readonly head: string }): string => head.split(" ")[1] ?? "";

describe("a guarded GET", () => {
  it("gives status, headers and body, and sends nothing but what is needed", async () => {
    const { origin, requests } = await start({
      respond: (socket) => socket.write(reply(200, "page", { "X-Kind": "a", "set-cookie": "a=1" })),
    });
    const { get } = getter();
    for (const _ of [1, 2]) {
      const result = await get(`${origin}/a?b=c#d`, { accept: "text/html" });
      assert(result.kind === "response");
      expect(result).toMatchObject({ status: 200, url: `${origin}/a?b=c#d`, headers: { "x-kind": "a" } });
      expect(String(await buffer(result.body))).toBe("page");
    }
    for (const { head } of requests) {
      expect(head.split("\r\n")).toEqual([
        "GET /a?b=c HTTP/1.1",
        `host: ${origin.slice(7)}`,
        "connection: keep-alive",
        "accept-encoding: identity",
        "accept: text/html",
        "user-agent: Postbell",
      ]);
    }
    // Read to its end, a connection is used again.
    expect(new Set(requests.map(({ connection }) => connection)).size).toBe(1);
  });

  it("follows three redirects, relative ones too, and answers the fourth as it is", async () => {
    const { origin, requests } = await start({
      respond: (socket, request) => {
        const step = Number(pathOf(request).slice(1));
        socket.write(
          step === 9
            ? reply(200, "there")
            : reply([301, 302, 303, 307, 308][step % 5] ?? 301, "", { location: `/${step + 1}` }),
        );
      },
    });
    const { get, read } = getter();
    expect(await read(`${origin}/6`)).toBe("200 there");
    expect(await get(`${origin}/6`)).toMatchObject({ url: `${origin}/9` });
    const before = requests.length;
    expect(await read(`${origin}/5`)).toBe("307 ");
    expect(requests.slice(before).map(pathOf)).toEqual(["/5", "/6", "/7", "/8"]);
    expect(await read(`${origin}/8`, { maxRedirects: 0 })).toBe("307 ");
  });

  it("checks every hop, so that no redirect leads where the first URL could not", async () => {
    const inner = await start({});
    const targets = [
      `http://127.0.0.1:${inner.port}/`,
      `http://[::ffff:127.0.0.1]:${inner.port}/`,
      "http://169.254.169.254/latest/",
      "file:///etc/passwd",
      "ftp://example.com/",
      "http://user:word@public.example/",
      "//localhost/",
    ];
    const outer = await start({
      respond: (socket, request) =>
        socket.write(reply(302, "", { location: targets[Number(pathOf(request).slice(1))] as string })),
    });
    // The first name is let through as if it were public; every other address is judged.
    const { client } = getter();
    const strict = getter({ policy: { allowHttp: true } }).client;
    const guardedGet = createGuardedGet({
      client: {
        send: (request, receiver) =>
          (request.url.startsWith("http://public.example:") ? client : strict).send(request, receiver),
        isResolverDown: async () => false,
        close: async () => {},
      },
      clock: manualClock(0),
      anyPort: true,
    });
    for (const index of targets.keys()) {
      const url = `http://public.example:${outer.port}/${index}`;
      expect(await guardedGet({ url, maxBytes: 10, deadlineMs: 10 })).toMatchObject({ kind: "refused" });
    }
    expect(outer.requests).toHaveLength(targets.length);
    expect(inner.connections()).toBe(0);
  });

  it("refuses ports, schemes and addresses before a connection is made", async () => {
    const { port, connections } = await start({});
    const strict = getter({ policy: {} }, { anyPort: false });
    expect(await strict.read(`https://public.example:${port}/`)).toBe("R8");
    expect(await strict.read("http://public.example/")).toBe("R3");
    expect(await strict.read("https://public.example/")).toBe("R5");
    expect(await strict.read("https://[::1]/")).toBe("R5");
    expect(await strict.read("nonsense")).toBe("R2");
    expect(connections()).toBe(0);
  });

  it("caps what it reads, and drops the connection", async () => {
    const { origin, openConnections } = await start({
      respond: (socket, request) => {
        if (pathOf(request) === "/exact") socket.write(reply(200, "a".repeat(MAX_BYTES)));
        else {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          const pour = (): void => {
            if (!socket.destroyed) socket.write("a".repeat(65_536), () => setImmediate(pour));
          };
          pour();
        }
      },
    });
    const { read } = getter();
    expect(await read(`${origin}/endless`)).toBe("200 BODY_TOO_LARGE");
    await until(() => openConnections() === 0);
    expect(await read(`${origin}/endless`, { beyond: "end" })).toBe(`200 ${"a".repeat(MAX_BYTES)}`);
    await until(() => openConnections() === 0);
    expect(await read(`${origin}/exact`)).toBe(`200 ${"a".repeat(MAX_BYTES)}`);
  });

  it("decompresses gzip up to the cap, and refuses other encodings", async () => {
    const bodies: Record<string, Buffer> = {
      "/small": reply(200, gzipSync("packed"), { "content-encoding": "GZIP" }),
      "/bomb": reply(200, gzipSync(Buffer.alloc(500_000)), { "content-encoding": "gzip" }),
      "/broken": reply(200, "no gzip", { "content-encoding": "gzip" }),
      "/twice": reply(200, "x", { "content-encoding": "gzip, gzip" }),
      "/other": reply(200, "x", { "content-encoding": "br" }),
    };
    const { origin } = await start({
      respond: (socket, request) => socket.write(bodies[pathOf(request)] as Buffer),
    });
    const { read } = getter();
    expect(await read(`${origin}/small`)).toBe("200 packed");
    expect(await read(`${origin}/bomb`)).toBe("200 BODY_TOO_LARGE");
    expect(await read(`${origin}/bomb`, { beyond: "end" })).toBe(`200 ${"\0".repeat(MAX_BYTES)}`);
    expect(await read(`${origin}/broken`)).toBe("200 Z_DATA_ERROR");
    expect(await read(`${origin}/twice`)).toBe("CONTENT_ENCODING");
    expect(await read(`${origin}/other`)).toBe("CONTENT_ENCODING");
  });

  it("has one deadline for all hops and the last byte", async () => {
    const { origin, requests, openConnections } = await start({
      respond: (socket, request) => {
        if (pathOf(request) === "/slow") socket.write("HTTP/1.1 200 OK\r\n\r\nabc");
        else if (pathOf(request) === "/hop") socket.write(reply(302, "", { location: "/silent" }));
      },
    });
    const { clock, get, read } = getter();
    const silent = read(`${origin}/hop`);
    await until(() => requests.length === 2);
    await clock.advance(DEADLINE_MS);
    expect(await silent).toBe("DEADLINE");

    const slow = await get(`${origin}/slow`);
    assert(slow.kind === "response");
    const [cutOff] = await Promise.all([
      buffer(slow.body).catch((error: { code: string }) => error.code),
      clock.advance(DEADLINE_MS),
    ]);
    expect(cutOff).toBe("BODY_CUT_OFF");
    await until(() => openConnections() === 0);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it("says that a body is cut off by the other side", async () => {
    const { origin } = await start({
      respond: (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"),
    });
    const { read } = getter();
    expect(await read(origin)).toBe("200 BODY_CUT_OFF");
  });

  it("reads no faster than its reader, and stops when that one leaves", async () => {
    let written = 0;
    const { origin, openConnections } = await start({
      respond: (socket) => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        const pour = (): void => {
          written += 65_536;
          if (!socket.destroyed) socket.write(Buffer.alloc(65_536), pour);
        };
        pour();
      },
    });
    const { get } = getter();
    const result = await get(origin, { maxBytes: 2 ** 40 });
    assert(result.kind === "response");
    let before = -1;
    // Until the buffers on the way are full.
    while (before !== written) {
      before = written;
      await turns(200);
    }
    expect(written).toBeLessThan(64 * 2 ** 20);
    for await (const _ of result.body) {
      if (written > before) break;
    }
    await until(() => openConnections() === 0);
  });
});
