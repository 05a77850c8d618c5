import type net from "node:net";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createPageGet } from "../../src/content/embeds/fetch-cache.js";
import { createOutboundClient, type OutboundClientOptions } from "../../src/outbound/client.js";
import { parseProxy } from "../../src/outbound/proxy.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { type Certificate, issue, makeAuthority } from "../support/certificates.js";
import { type ConnectProxy, ESTABLISHED, type ProxyOptions, startProxy } from "../support/connect-proxy.js";
import {
  drip,
  type Endpoint,
  type EndpointOptions,
  reply,
  startEndpoint,
  until,
} from "../support/https-endpoint.js";

const NAME = "hooks.example.com";
const PASSWORD = "s3cr3t/p@ss";
const DEADLINE_MS = 15_000;

let authority: Certificate;
let certificate: Certificate;
const cleanUps: (() => Promise<void>)[] = [];

beforeAll(async () => {
  authority = await makeAuthority();
  certificate = await issue({ authority, names: [NAME, "127.0.0.1"] });
});

afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()));
});

async function endpointWith(options: EndpointOptions = {}): Promise<Endpoint> {
  const endpoint = await startEndpoint({
    certificate,
    respond: (socket) => socket.write(reply(204)),
    ...options,
  });
  cleanUps.push(endpoint.close);
  return endpoint;
}

async function proxyWith(options: ProxyOptions = {}): Promise<ConnectProxy> {
  const proxy = await startProxy(options);
  cleanUps.push(proxy.close);
  return proxy;
}

/** A client that sends through the proxy, and finds {@link NAME} on loopback. */
function sender(proxyUrl: string, options: Partial<OutboundClientOptions> = {}) {
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const client = createOutboundClient({
    clock,
    policy: { allowPrivateNetworks: true, allowHttp: true },
    ca: authority.cert,
    resolve: async () => ["127.0.0.1"],
    proxy: parseProxy(proxyUrl),
    ...options,
  });
  cleanUps.push(() => client.close());
  const send = (url: string) =>
    client.send({
      url,
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer t0ken" },
      body: Buffer.from("{}"),
      deadlineMs: DEADLINE_MS,
      maxBodyBytes: 1_024,
    });
  return { clock, send };
}

describe("destinations.proxy", () => {
  it("carries TLS from end to end: the proxy sees an address, its own credentials and no request", async () => {
    const [endpoint, proxy] = [await endpointWith(), await proxyWith()];
    const { send } = sender(`http://us%20er:${encodeURIComponent(PASSWORD)}@127.0.0.1:${proxy.port}`);
    const url = `https://${NAME}:${endpoint.port}/in`;
    expect(await send(url)).toMatchObject({ kind: "response", status: 204 });
    const credentials = Buffer.from(`us er:${PASSWORD}`).toString("base64");
    expect(proxy.heads).toEqual([
      `CONNECT 127.0.0.1:${endpoint.port} HTTP/1.1\r\nhost: 127.0.0.1:${endpoint.port}\r\nproxy-authorization: Basic ${credentials}\r\n\r\n`,
    ]);
    expect(proxy.received()).not.toMatch(/POST|t0ken/);
    expect(endpoint.requests[0]?.head).toContain(`host: ${NAME}:${endpoint.port}`);
    expect(endpoint.requests[0]?.head).not.toMatch(/proxy/i);
  });

  it("keeps one tunnel for the requests to one endpoint", async () => {
    const [endpoint, proxy] = [await endpointWith(), await proxyWith()];
    const { send } = sender(`http://127.0.0.1:${proxy.port}`);
    for (let count = 0; count < 3; count++) await send(`https://${NAME}:${endpoint.port}/`);
    expect(endpoint.requests).toHaveLength(3);
    expect(proxy.connections()).toBe(1);
  });

  it("tunnels http: URLs, too", async () => {
    const [endpoint, proxy] = [await endpointWith({ certificate: undefined }), await proxyWith()];
    const { send } = sender(`http://127.0.0.1:${proxy.port}`);
    const result = await send(`http://${NAME}:${endpoint.port}/in`);
    expect(result).toMatchObject({ kind: "response", status: 204 });
    expect(proxy.heads[0]).toMatch(/^CONNECT 127\.0\.0\.1:/);
    expect(endpoint.requests[0]?.head).toMatch(/^POST \/in HTTP/);
  });

  it("may be reached over TLS, with a certificate that is verified", async () => {
    const [endpoint, proxy] = [await endpointWith(), await proxyWith({ certificate })];
    const { send } = sender(`https://127.0.0.1:${proxy.port}`);
    expect(await send(`https://${NAME}:${endpoint.port}/`)).toMatchObject({ status: 204 });
    expect(await send(`https://${NAME}:${endpoint.port}/`)).toMatchObject({ status: 204 });
    expect(proxy.connections()).toBe(1);
    const foreign = await proxyWith({ certificate: await issue({ names: ["127.0.0.1"] }) });
    const result = await sender(`https://127.0.0.1:${foreign.port}`).send(
      `https://${NAME}:${endpoint.port}/`,
    );
    expect(result).toMatchObject({
      kind: "connect",
      code: expect.stringMatching(/^PROXY_.*(?:SELF_SIGNED|VERIFY)/),
    });
    expect(foreign.heads).toEqual([]);
  });

  it.each([
    ["comes first", ["127.0.0.1"], ["::1"]],
    ["comes late", ["::1"], ["127.0.0.1"]],
    ["is the second of the list", ["::1", "127.0.0.1"], []],
  ])("is asked for the IPv4 address of a name, if that %s", async (_, addresses, more) => {
    const [endpoint, proxy] = [await endpointWith(), await proxyWith()];
    const pending = new Promise<string[]>((resolve) => setImmediate(resolve, more));
    const { send } = sender(`http://127.0.0.1:${proxy.port}`, {
      resolve: undefined,
      find: async () => ({ addresses, otherFamily: pending }),
    });
    expect(await send(`https://${NAME}:${endpoint.port}/`)).toMatchObject({ status: 204 });
    expect(proxy.heads[0]).toMatch(/^CONNECT 127\.0\.0\.1:/);
  });

  it.each([
    ["a private address", ["10.0.0.1"], "R5"],
    ["one private address of two", ["93.184.216.34", "127.0.0.1"], "R5"],
    ["a metadata service", ["169.254.169.254"], "R5"],
  ])("is not asked for %s", async (_, addresses, code) => {
    const proxy = await proxyWith();
    const { send } = sender(`http://127.0.0.1:${proxy.port}`, { policy: {}, resolve: async () => addresses });
    expect(await send(`https://${NAME}/`)).toMatchObject({ kind: "refused", code });
    expect(proxy.connections()).toBe(0);
  });

  it.each([
    ["https://10.0.0.1/", "R5"],
    ["https://169.254.169.254/", "R5"],
    ["https://[::ffff:127.0.0.1]/", "R5"],
  ])("is not asked for the address of %s", async (url, code) => {
    const proxy = await proxyWith();
    const { send } = sender(`http://127.0.0.1:${proxy.port}`, { policy: {} });
    expect(await send(url)).toMatchObject({ kind: "refused", code });
    expect(proxy.connections()).toBe(0);
  });

  it("is asked for the IPv6 address of a name that has no other, in brackets", async () => {
    const proxy = await proxyWith({ answer: (socket) => socket.end("HTTP/1.1 502 No\r\n\r\n") });
    const resolve = async (): Promise<string[]> => ["2606:4700::1111"];
    const { send } = sender(`http://127.0.0.1:${proxy.port}`, { policy: {}, resolve });
    expect(await send(`https://${NAME}/`)).toMatchObject({ kind: "connect", code: "PROXY_502" });
    expect(proxy.heads[0]).toMatch(
      /^CONNECT \[2606:4700::1111\]:443 HTTP\/1\.1\r\nhost: \[2606:4700::1111\]:443\r\n/,
    );
  });
});

describe("embeds.destinations.proxy", () => {
  it("carries the requests for pages of other sites", async () => {
    const respond = (socket: net.Socket): void => void socket.write(reply(200, "<p>page</p>"));
    const [site, proxy] = [await endpointWith({ respond }), await proxyWith()];
    const pages = createPageGet(manualClock(0), {
      allowPrivateNetworks: true,
      ca: authority.cert,
      resolve: async () => ["127.0.0.1"],
      proxy: `http://127.0.0.1:${proxy.port}`,
    });
    cleanUps.push(pages.close);
    const url = `https://${NAME}:${site.port}/page`;
    expect(await pages.get({ url, maxBytes: 1_024, deadlineMs: DEADLINE_MS })).toMatchObject({ status: 200 });
    expect(proxy.heads[0]).toMatch(/^CONNECT 127\.0\.0\.1:/);
    expect(site.requests[0]?.head).toMatch(/^GET \/page HTTP/);
  });
});

describe("a proxy that lies", () => {
  const write = (text: string) => (socket: net.Socket) => void socket.write(text, "latin1");
  const end = (text: string) => (socket: net.Socket) => void socket.end(text, "latin1");

  it.each<[string, (socket: net.Socket) => void, string]>([
    ["wants other credentials", end("HTTP/1.1 407 No\r\ncontent-length: 2\r\n\r\nno"), "PROXY_407"],
    ["forbids it", end("HTTP/1.1 403 No\r\n\r\n"), "PROXY_403"],
    ["reaches nobody", end("HTTP/1.0 502 Bad Gateway\r\n\r\n<html>"), "PROXY_502"],
    ["redirects", end("HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\n\r\n"), "PROXY_302"],
    ["switches protocols", write("HTTP/1.1 101 Switching\r\n\r\n"), "PROXY_101"],
    ["sends bytes after the head", write(`${ESTABLISHED}HTTP/1.1 200 OK\r\n\r\n`), "PROXY_RESPONSE"],
    ["sends no HTTP", write("220 mail ready\r\n\r\n"), "PROXY_RESPONSE"],
    ["sends bare line feeds", end("HTTP/1.1 200 OK\n\n"), "PROXY_CLOSED"],
    ["folds a header", write("HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n"), "PROXY_RESPONSE"],
    ["never ends its head", write(`HTTP/1.1 200 OK\r\nx: ${"a".repeat(20_000)}`), "PROXY_RESPONSE"],
    [
      "has a head beyond 16 KiB",
      write(`HTTP/1.1 200 OK\r\nx: ${"a".repeat(16_384)}\r\n\r\n`),
      "PROXY_RESPONSE",
    ],
    ["closes", (socket) => void socket.end(), "PROXY_CLOSED"],
    ["closes within its head", end("HTTP/1.1 200 O"), "PROXY_CLOSED"],
    ["resets the connection", (socket) => void socket.resetAndDestroy(), "PROXY_ECONNRESET"],
  ])("and %s makes a failed attempt without a request", async (_, answer, code) => {
    const [endpoint, proxy] = [await endpointWith(), await proxyWith({ answer })];
    for (const scheme of ["https", "http"]) {
      const { send } = sender(`http://user:${encodeURIComponent(PASSWORD)}@127.0.0.1:${proxy.port}`);
      const result = await send(`${scheme}://${NAME}:${endpoint.port}/`);
      expect(result).toMatchObject({ kind: "connect", code });
      expect(JSON.stringify(result)).not.toMatch(/s3cr3t|169\.254/);
    }
    expect(proxy.received()).not.toContain("POST");
    expect(endpoint.connections()).toBe(0);
  });

  it("and sends its head byte by byte is understood", async () => {
    const proxy = await proxyWith({ answer: (socket) => drip(socket, "HTTP/1.1 403 No\r\na: b\r\n\r\n") });
    const { send } = sender(`http://127.0.0.1:${proxy.port}`);
    expect(await send(`https://${NAME}/`)).toMatchObject({ code: "PROXY_403" });
  });

  it("and never answers runs into the deadline", async () => {
    const proxy = await proxyWith({ answer: () => {} });
    const { send, clock } = sender(`http://127.0.0.1:${proxy.port}`);
    const result = send(`https://${NAME}/`);
    await until(() => proxy.heads.length === 1);
    await clock.advance(DEADLINE_MS + 50);
    expect(await result).toMatchObject({
      kind: "timeout",
      code: "DEADLINE",
      message: expect.stringContaining("proxy"),
    });
  });

  it("and sends garbage in place of the endpoint's handshake fails in TLS, without a request", async () => {
    const answer = (socket: net.Socket): void => {
      socket.write(ESTABLISHED);
      socket.on("data", () => socket.write("HTTP/1.1 204 No Content\r\n\r\n"));
    };
    const proxy = await proxyWith({ answer });
    const { send } = sender(`http://127.0.0.1:${proxy.port}`);
    expect(await send(`https://${NAME}/`)).toMatchObject({ kind: "tls" });
    expect(proxy.received()).not.toContain("POST");
  });

  it("and connects to another host cannot pass it for the endpoint", async () => {
    const other = await endpointWith({
      certificate: await issue({ authority, names: ["other.example.com"] }),
    });
    const proxy = await proxyWith({ misleadTo: other.port });
    const { send } = sender(`http://127.0.0.1:${proxy.port}`);
    const result = await send(`https://${NAME}/`);
    expect(result).toMatchObject({ kind: "tls", code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    expect(other.requests).toEqual([]);
  });

  it("and is not there makes a failed attempt", async () => {
    const proxy = await startProxy();
    await proxy.close();
    const { send } = sender(`http://127.0.0.1:${proxy.port}`);
    expect(await send(`https://${NAME}/`)).toMatchObject({ kind: "connect", code: "PROXY_ECONNREFUSED" });
  });
});
