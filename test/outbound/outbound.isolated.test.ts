import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterEach, assert, beforeAll, describe, expect, it, vi } from "vitest";
import { createDeadlines } from "../../src/core/clock.js";
import { checkUrl } from "../../src/outbound/address-policy.js";
import { createChannel } from "../../src/outbound/channel.js";
import {
  createAfterPoll,
  createOutboundClient,
  type OutboundClientOptions,
} from "../../src/outbound/client.js";
import { createAddressPolicy } from "../../src/outbound/destination-options.js";
import { classifyError, type Phase } from "../../src/outbound/failure.js";
import { Names } from "../../src/outbound/resolver.js";
import type { OutboundClient, OutboundRequest, OutboundResponse } from "../../src/outbound/types.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";
import { type Certificate, issue, makeAuthority } from "../support/certificates.js";
import {
  drip,
  type Endpoint,
  type EndpointOptions,
  reply,
  startEndpoint,
  turns,
  until,
} from "../support/https-endpoint.js";

const NAME = "hooks.example.com";
const BODY = Buffer.from('{"resourceType":"Bundle","secret":"s3cr3t"}');
const DEADLINE_MS = 15_000;
const MAX_BODY_BYTES = 16 * 1024;

let authority: Certificate;
let certificate: Certificate;
const cleanUps: (() => Promise<void>)[] = [];

beforeAll(async () => {
  authority = await makeAuthority();
  certificate = await issue({ authority, names: [NAME, "localhost", "127.0.0.1"] });
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()));
});

interface Sender {
  readonly clock: ManualClock;
  readonly client: OutboundClient;
  readonly send: (request?: Partial<OutboundRequest>) => ReturnType<OutboundClient["send"]>;
}

/** A client that finds the endpoint on loopback under {@link NAME} and trusts the test CA. */
function sender(port: number, options: Partial<OutboundClientOptions> = {}): Sender {
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const client = createOutboundClient({
    clock,
    policy: { allowPrivateNetworks: true, allowHttp: true },
    ca: authority.cert,
    resolve: async () => ["127.0.0.1"],
    ...options,
  });
  cleanUps.push(() => client.close());
  const send = (request: Partial<OutboundRequest> = {}) =>
    client.send({
      url: `https://${NAME}:${port}/in?a=1`,
      method: "POST",
      headers: { "content-type": "application/json" },
      body: BODY,
      deadlineMs: DEADLINE_MS,
      maxBodyBytes: MAX_BODY_BYTES,
      ...request,
    });
  return { clock, client, send };
}

async function start(options: EndpointOptions = {}): Promise<Endpoint> {
  const endpoint = await startEndpoint({ certificate, ...options });
  cleanUps.push(endpoint.close);
  return endpoint;
}

/**
 * An endpoint that answers its first request as told and every later one with 204, and a client for
 * it.
 */
async function startOnce(respond: (socket: net.Socket) => void, options: EndpointOptions = {}) {
  const endpoint = await start({
    respond: (socket) => {
      if (endpoint.requests.length === 1) respond(socket);
      else socket.write(reply(204));
    },
    ...options,
  });
  return { endpoint, ...sender(endpoint.port) };
}

/** Sockets that are opened from now on say that they are connected to this address. */
function pretendPeer(address: string): void {
  const connect = net.connect;
  vi.spyOn(net, "connect").mockImplementation(((options: net.TcpNetConnectOpts) =>
    Object.defineProperty(connect(options), "remoteAddress", { value: address })) as typeof net.connect);
}

describe("the option destinations.allow", () => {
  const policyOf = (...allow: string[]) => createAddressPolicy({ allow, allowHttp: true });

  it.each([[NAME], ["*.example.com"], ["127.0.0.0/8"]])(
    "%s opens a name with a private address",
    async (entry) => {
      const endpoint = await start({ respond: (socket) => socket.write(reply(204)) });
      const { send } = sender(endpoint.port, { policy: policyOf(entry) });
      expect(await send()).toMatchObject({ kind: "response", status: 204 });
      expect(endpoint.requests).toHaveLength(1);
    },
  );

  it.each([
    ["another name", ["other.example.com"], ["127.0.0.1"], "R5"],
    ["another block", ["10.0.0.0/8"], ["127.0.0.1"], "R5"],
    ["one address of two in the block", ["127.0.0.0/8"], ["127.0.0.1", "10.0.0.1"], "R5"],
    ["a metadata address", [NAME], ["169.254.169.254"], "R7"],
    ["a metadata address in the block", ["0.0.0.0/0"], ["169.254.170.2"], "R7"],
    ["a metadata address after a private one", [NAME], ["127.0.0.1", "fd00:ec2::254"], "R7"],
    ["an unspecified address", [NAME, "0.0.0.0/0"], ["0.0.0.0"], "R5"],
  ])("opens no socket for %s", async (_, allow, addresses, code) => {
    const connect = vi.spyOn(net, "connect");
    const { send } = sender(443, { policy: policyOf(...allow), resolve: async () => addresses });
    expect(await send()).toMatchObject({ kind: "refused", code });
    expect(connect).not.toHaveBeenCalled();
  });

  it.each([
    ["127.0.0.0/8", "10.0.0.1", "R5"],
    [NAME, "169.254.169.254", "R7"],
    [NAME, "::ffff:168.63.129.16", "R7"],
  ])("%s: a peer that turns out to be %s is checked before a byte is sent", async (entry, peer, code) => {
    const endpoint = await start({ certificate: undefined, respond: (socket) => socket.write(reply(204)) });
    const { send } = sender(endpoint.port, { policy: policyOf(entry) });
    pretendPeer(peer);
    const result = await send({ url: `http://${NAME}:${endpoint.port}/` });
    expect(result).toMatchObject({ kind: "refused", code });
    expect(endpoint.requests).toHaveLength(0);
  });
});

describe("a private peer of a name that destinations.allow lists", () => {
  it("receives the request", async () => {
    const endpoint = await start({ certificate: undefined, respond: (socket) => socket.write(reply(204)) });
    const policy = createAddressPolicy({ allow: [NAME], allowHttp: true });
    const { send } = sender(endpoint.port, { policy });
    pretendPeer("10.0.0.1");
    expect(await send({ url: `http://${NAME}:${endpoint.port}/` })).toMatchObject({ status: 204 });
    expect(endpoint.requests).toHaveLength(1);
  });
});

describe("a peer that turns out to be a metadata service", () => {
  it("receives nothing, also where private networks are allowed", async () => {
    const endpoint = await start({ certificate: undefined, respond: (socket) => socket.write(reply(204)) });
    const { send } = sender(endpoint.port);
    pretendPeer("169.254.169.254");
    expect(await send({ url: `http://${NAME}:${endpoint.port}/` })).toMatchObject({
      kind: "refused",
      code: "R7",
    });
    expect(endpoint.requests).toHaveLength(0);
  });
});

describe("a request", () => {
  it("arrives byte for byte, with what was asked for and no more", async () => {
    const endpoint = await start({
      respond: (socket) => socket.write(reply(200, "thanks", { "X-Seen": "a", "x-seen": "b" })),
    });
    const { send } = sender(endpoint.port);
    const sent = { "content-type": "application/json", "x-service-signature": "t=1, s=2" };
    const { kind, status, headers, body, complete } = (await send({ headers: sent })) as OutboundResponse;
    expect({ kind, status, headers, body, complete }).toEqual({
      kind: "response",
      status: 200,
      headers: { "x-seen": "a, b", "content-length": "6" },
      body: Buffer.from("thanks"),
      complete: true,
    });
    const [request] = endpoint.requests;
    expect(request?.body).toEqual(BODY);
    expect(request?.head.split("\r\n")).toEqual([
      "POST /in?a=1 HTTP/1.1",
      `host: ${NAME}:${endpoint.port}`,
      "connection: keep-alive",
      "accept-encoding: identity",
      "content-type: application/json",
      "x-service-signature: t=1, s=2",
      `content-length: ${BODY.length}`,
    ]);
  });

  it("can be a GET without a body, over plain HTTP where the host allows it", async () => {
    const endpoint = await start({
      certificate: undefined,
      respond: (socket) => socket.write(reply(200, "page")),
    });
    const { send } = sender(endpoint.port);
    const result = await send({
      url: `http://127.0.0.1:${endpoint.port}/page`,
      method: "GET",
      body: null,
      headers: {},
    });
    expect(result).toMatchObject({ status: 200, body: Buffer.from("page") });
    expect(endpoint.requests[0]?.head).toMatch(/^GET \/page HTTP\/1\.1\r\n/);
    expect(endpoint.requests[0]?.head).not.toMatch(/content-length/i);
  });

  it("goes to an address written in the URL, whose certificate must name it", async () => {
    const endpoint = await start();
    const { send } = sender(endpoint.port);
    expect(await send({ url: `https://127.0.0.1:${endpoint.port}/` })).toMatchObject({ status: 204 });
    const other = await start({ certificate: await issue({ authority, names: [NAME] }) });
    expect(await send({ url: `https://127.0.0.1:${other.port}/` })).toMatchObject({
      kind: "tls",
      code: "ERR_TLS_CERT_ALTNAME_INVALID",
    });
  });

  it("names the host and HTTP/1.1 in the handshake", async () => {
    const named: unknown[] = [];
    const endpoint = await start({
      tlsOptions: {
        ALPNCallback: ({ servername, protocols }) => {
          named.push(servername, ...protocols);
          return "http/1.1";
        },
      },
    });
    expect(await sender(endpoint.port).send({ url: `https://${NAME}.:${endpoint.port}/` })).toMatchObject({
      status: 204,
    });
    expect(named).toEqual([NAME, "http/1.1"]);
  });

  it.each([
    ["x-bad", "a\r\nb: c"],
    ["x-bad", "a\n"],
    ["x-bad", "\0"],
    ["x-bad", "\x7f"],
    ["x-bad", "\u0100"],
    ["x-bad", "\u010a"],
    ["x bad", "a"],
    ["x-bad:", "a"],
    ["x-bad\r\n", "a"],
    ["", "a"],
    ["Host", "elsewhere.example.com"],
    ["Content-Length", "1"],
    ["transfer-encoding", "chunked"],
    ["connection", "close"],
    ["Upgrade", "h2c"],
    ["expect", "100-continue"],
    ["accept-encoding", "gzip"],
  ])("with the header %j: %j fails without a rejection, and the next one works", async (name, value) => {
    const endpoint = await start();
    const { send } = sender(endpoint.port);
    expect(await send({ headers: { [name]: value } })).toMatchObject({
      kind: "http",
      code: "INVALID_HEADER",
    });
    expect(endpoint.bytes()).toBe(0);
    expect(await send()).toMatchObject({ status: 204 });
  });

  it("carries the bytes of header values as they are", async () => {
    const endpoint = await start();
    const value = "\t!~\x80\xa0\xff";
    expect(await sender(endpoint.port).send({ headers: { "x-odd": value } })).toMatchObject({ status: 204 });
    expect(endpoint.requests[0]?.head.split("\r\n")).toContain(`x-odd: ${value}`);
  });

  it("is not sent through a proxy that the environment names", async () => {
    const endpoint = await start();
    const proxy = await start({ certificate: undefined });
    for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]) {
      vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`);
    }
    vi.stubEnv("NO_PROXY", "");
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    expect(await sender(endpoint.port).send()).toMatchObject({ status: 204 });
    expect(proxy.connections()).toBe(0);
  });
});

describe("connections", () => {
  it("are used again, one after the other, and keep the answers apart", async () => {
    const endpoint = await start({
      respond: (socket, { head }) => socket.write(reply(200, head.split(" ")[1])),
    });
    const { send } = sender(endpoint.port);
    for (let sent = 0; sent < 20; sent++) {
      const path = `/${"x".repeat(sent % 3)}${sent}`;
      expect(await send({ url: `https://${NAME}:${endpoint.port}${path}` })).toMatchObject({
        body: Buffer.from(path),
      });
    }
    expect(endpoint.connections()).toBe(1);
  });

  it("leave the headers of earlier answers as they were, whenever those are read", async () => {
    const endpoint = await start({
      respond: (socket) => socket.write(reply(204, "", { "x-number": String(endpoint.requests.length) })),
    });
    const { send } = sender(endpoint.port);
    const results = [await send(), await send(), await send()];
    expect(endpoint.connections()).toBe(1);
    expect(results.map((result) => result.kind === "response" && result.headers)).toEqual([
      { "x-number": "1" },
      { "x-number": "2" },
      { "x-number": "3" },
    ]);
  });

  it("are as many as concurrent sends, and no more", async () => {
    const endpoint = await start();
    const { send } = sender(endpoint.port);
    for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 4 }, () => send()));
    expect(endpoint.requests).toHaveLength(20);
    expect(endpoint.connections()).toBe(4);
  });

  it("are not shared between the names of one host", async () => {
    const endpoint = await start();
    const { send } = sender(endpoint.port);
    await send();
    await send({ url: `https://localhost:${endpoint.port}/` });
    expect(endpoint.connections()).toBe(2);
  });

  it.each(["https", "http"])(
    "are reopened if the endpoint closed an idle one, just now or a while ago, over %s",
    async (scheme) => {
      const endpoint = await start({
        ...(scheme === "http" ? { certificate: undefined } : {}),
        respond: (socket) => void socket.end(reply(204)),
      });
      const { send } = sender(endpoint.port);
      for (let sent = 0; sent < 6; sent++) {
        if (sent > 3) await until(() => endpoint.openConnections() === 0);
        if (sent > 4) await turns(20);
        expect(await send({ url: `${scheme}://${NAME}:${endpoint.port}/` })).toMatchObject({ status: 204 });
      }
      expect(endpoint.connections()).toBe(6);
    },
  );

  it("are closed once idle for long, also after an exchange that took longer", async () => {
    const held: net.Socket[] = [];
    const endpoint = await start({ certificate: undefined, respond: (socket) => held.push(socket) });
    const connect = vi.spyOn(net, "connect");
    const { send } = sender(endpoint.port);
    const sent = send({ url: `http://${NAME}:${endpoint.port}/` });
    await until(() => held.length === 1);
    const socket = connect.mock.results[0]?.value as net.Socket;
    socket.emit("timeout");
    expect(socket.destroyed).toBe(false);
    held[0]?.write(reply(204));
    expect(await sent).toMatchObject({ status: 204 });
    expect(socket.destroyed).toBe(false);
    socket.emit("timeout");
    expect(socket.destroyed).toBe(true);
  });

  it("are forgotten once the endpoint has closed them", async () => {
    const endpoint = await start({
      certificate: undefined,
      respond: (socket) => void socket.end(reply(204)),
    });
    const verdict = checkUrl(`http://${NAME}:${endpoint.port}/`, { allowHttp: true });
    assert(verdict.ok);
    const seen: string[] = [];
    const clock = manualClock(0);
    const channel = createChannel(
      verdict.target,
      {
        clock,
        deadlines: createDeadlines(clock),
        afterPoll: createAfterPoll(),
        policy: { allowPrivateNetworks: true },
        names: new Names(clock, async () => ["127.0.0.1"]),
        secureContext: () => tls.createSecureContext(),
      },
      { onIdle: () => seen.push("idle"), onGone: () => seen.push("gone") },
    );
    await channel.exchange(
      { url: "", method: "GET", headers: {}, body: null, deadlineMs: 1, maxBodyBytes: 0 },
      "/",
    );
    await until(() => seen.length > 1);
    expect(seen).toEqual(["idle", "gone"]);
  });

  it("are reopened after a response with connection: close", async () => {
    const endpoint = await start({
      respond: (socket) => socket.write(reply(200, "x", { connection: "close" })),
    });
    const { send } = sender(endpoint.port);
    expect(await send()).toMatchObject({ status: 200 });
    expect(await send()).toMatchObject({ status: 200 });
    expect(endpoint.connections()).toBe(2);
    await until(() => endpoint.openConnections() === 0);
  });

  it("are kept for the origins used last only", async () => {
    const first = await start();
    const second = await start();
    const { send } = sender(first.port, { maxOrigins: 1 });
    const toSecond = { url: `https://${NAME}:${second.port}/` };
    await send();
    await send(toSecond);
    await until(() => first.openConnections() === 0);
    expect(second.openConnections()).toBe(1);
    await send(toSecond);
    expect(second.connections()).toBe(1);
  });

  it("of a dropped origin finish what they carry, and are closed then", async () => {
    const held: net.Socket[] = [];
    const first = await start({ respond: (socket) => held.push(socket) });
    const second = await start();
    const { send } = sender(first.port, { maxOrigins: 1 });
    const underWay = send();
    await until(() => held.length === 1);
    await send({ url: `https://${NAME}:${second.port}/` });
    held[0]?.write(reply(204));
    expect(await underWay).toMatchObject({ status: 204 });
    await until(() => first.openConnections() === 0);
  });
});

describe("a connection between two requests", () => {
  /**
   * An endpoint over plain HTTP that answers every request with its path, and our side of the
   * connections to it.
   */
  async function startPlain(
    respond?: EndpointOptions["respond"],
    options: Partial<OutboundClientOptions> = {},
  ) {
    const endpoint = await start({
      certificate: undefined,
      respond: respond ?? ((socket, { head }) => socket.write(reply(200, head.split(" ")[1]))),
    });
    const connect = vi.spyOn(net, "connect");
    const ours = (at: number): net.Socket => connect.mock.results[at]?.value as net.Socket;
    const { send, ...rest } = sender(endpoint.port, options);
    const sendTo = (path: string, more: Partial<OutboundRequest> = {}) =>
      send({ url: `http://${NAME}:${endpoint.port}${path}`, ...more });
    return { endpoint, ours, sendTo, ...rest };
  }
  const body = (text: string) => ({ body: Buffer.from(text), complete: true });
  const forged = Buffer.concat([reply(200, "forged"), reply(200, "forged")]);

  it("is dropped for bytes that nobody asked for, while it is idle", async () => {
    const { endpoint, ours, sendTo } = await startPlain();
    await sendTo("/1");
    await turns(4);
    ours(0).emit("data", forged);
    expect(ours(0).destroyed).toBe(true);
    expect(await sendTo("/2")).toMatchObject(body("/2"));
    expect(endpoint.requests.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it.each<[string, (socket: net.Socket) => unknown]>([
    ["sends bytes that nobody asked for", (socket) => socket.emit("data", forged)],
    ["ends", (socket) => socket.emit("end")],
    ["fails", (socket) => socket.destroy(new Error("reset"))],
  ])(
    "that %s while a request waits for it is given up, and the request is sent once",
    async (_name, lose) => {
      const { endpoint, ours, sendTo } = await startPlain();
      await sendTo("/1");
      const sent = sendTo("/2");
      lose(ours(0));
      expect(await sent).toMatchObject(body("/2"));
      expect(ours(0).destroyed).toBe(true);
      expect(endpoint.requests.map(({ head, connection }) => [head.split(" ")[1], connection])).toEqual([
        ["/1", 1],
        ["/2", 2],
      ]);
    },
  );

  it("writes nothing for a request that is ended while it waits", async () => {
    const { endpoint, client, sendTo } = await startPlain();
    await sendTo("/1");
    const sent = sendTo("/2");
    const closed = client.close();
    expect(await sent).toMatchObject({ code: "CLIENT_CLOSED" });
    await closed;
    await turns(10);
    await until(() => endpoint.openConnections() === 0);
    expect(endpoint.requests).toHaveLength(1);
  });

  it("opens nothing for a request that is ended while it waits for a lost one", async () => {
    const { endpoint, ours, client, sendTo } = await startPlain();
    await sendTo("/1");
    const sent = sendTo("/2");
    ours(0).emit("data", forged);
    await client.close();
    expect(await sent).toMatchObject({ code: "CLIENT_CLOSED" });
    await turns(10);
    expect(endpoint.connections()).toBe(1);
  });

  /** An endpoint whose first response is as usual, and whose later ones are `lose`. */
  async function startLosing(lose: (socket: net.Socket, connection: number) => unknown) {
    let repeats = 0;
    const started = await startPlain(
      (socket, { connection }) => {
        if (started.endpoint.requests.length === 1) socket.write(reply(204));
        else lose(socket, connection);
      },
      { onRepeat: () => repeats++ },
    );
    await started.sendTo("/1");
    const paths = () =>
      started.endpoint.requests.map(({ head, connection }) => [head.split(" ")[1], connection]);
    return { ...started, paths, repeats: () => repeats };
  }

  it.each<[string, (socket: net.Socket) => unknown]>([
    ["closes", (socket) => socket.destroy()],
    ["ends", (socket) => socket.end()],
    ["resets", (socket) => socket.resetAndDestroy()],
  ])(
    "that the endpoint %s when a request arrives: the request is repeated once, over a new one",
    async (_name, lose) => {
      const { sendTo, paths, repeats } = await startLosing((socket, connection) =>
        connection === 1 ? lose(socket) : socket.write(reply(200, "again")),
      );
      expect(await sendTo("/2", { body: BODY })).toMatchObject(body("again"));
      expect([paths(), repeats()]).toEqual([
        [
          ["/1", 1],
          ["/2", 1],
          ["/2", 2],
        ],
        1,
      ]);
    },
  );

  it("is not replaced a second time for one request", async () => {
    const { sendTo, paths } = await startLosing((socket) => socket.destroy());
    expect(await sendTo("/2")).toMatchObject({ kind: "http", code: "CONNECTION_CLOSED" });
    expect(paths().map(([, connection]) => connection)).toEqual([1, 1, 2]);
  });

  it("that is lost after one byte of the response ends the request", async () => {
    const { sendTo, paths, repeats } = await startLosing((socket) => void socket.end("H"));
    expect(await sendTo("/2")).toMatchObject({ kind: "http", code: "CONNECTION_CLOSED" });
    expect([paths().length, repeats()]).toEqual([2, 0]);
  });

  it("leaves a repeated request the deadline of the first try", async () => {
    const held: net.Socket[] = [];
    const { clock, sendTo } = await startLosing((socket) => held.push(socket));
    let result: unknown;
    const sent = sendTo("/2").then((settled) => (result = settled));
    await until(() => held.length === 1);
    await clock.advance(10_000);
    held[0]?.destroy();
    await until(() => held.length === 2 || result !== undefined);
    await clock.advance(DEADLINE_MS - 10_000 - 1);
    expect(result).toBeUndefined();
    await clock.advance(1);
    expect(await sent).toMatchObject({ kind: "timeout", code: "DEADLINE" });
  });

  it("is replaced after 30 seconds by one to the address that the name has then", async () => {
    const addresses: string[] = [];
    const { endpoint, clock, sendTo } = await startPlain(undefined, {
      resolve: async () => {
        addresses.push(endpoint.connections() === 0 ? "127.0.0.1" : "::ffff:127.0.0.1");
        return addresses.slice(-1);
      },
    });
    for (let sent = 0; sent < 61; sent++) {
      expect(await sendTo(`/${sent}`)).toMatchObject(body(`/${sent}`));
      await clock.advance(1_000);
    }
    expect(addresses).toEqual(["127.0.0.1", "::ffff:127.0.0.1"]);
    expect(endpoint.requests.map(({ connection }) => connection)).toEqual(
      Array.from({ length: 61 }, (_, at) => (at <= 31 ? 1 : 2)),
    );
  });

  it("that grows old during an exchange carries it to its end", async () => {
    const held: net.Socket[] = [];
    const { endpoint, clock, sendTo } = await startPlain((socket) => held.push(socket));
    const deadlineMs = 600_000;
    const sent = sendTo("/1", { deadlineMs });
    await until(() => held.length === 1);
    await clock.advance(300_000);
    held[0]?.write(reply(200, "late"));
    expect(await sent).toMatchObject(body("late"));
    await until(() => endpoint.openConnections() === 0);
  });

  it("keeps the process alive while it is in use, and not while it is idle", async () => {
    const held: net.Socket[] = [];
    const { ours, sendTo } = await startPlain((socket) => held.push(socket));
    const isAlive = (): boolean =>
      (ours(0) as unknown as { _handle: { hasRef(): boolean } })._handle.hasRef();
    for (let round = 1; round <= 3; round++) {
      const sent = sendTo("/");
      await until(() => held.length === round);
      expect(isAlive()).toBe(true);
      held[round - 1]?.write(reply(204));
      await sent;
      await turns(3);
      expect(isAlive()).toBe(false);
    }
  });

  it("gathers no listeners", async () => {
    const { endpoint, ours, sendTo } = await startPlain();
    const count = () =>
      ours(0)
        .eventNames()
        .map((name) => [name, ours(0).listenerCount(name)]);
    await sendTo("/1");
    await turns(4);
    const before = count();
    for (let sent = 0; sent < 10; sent++) await sendTo(`/${sent}`);
    await turns(4);
    expect(count()).toEqual(before);
    expect(endpoint.connections()).toBe(1);
  });

  it("is read again after a receiver that paused at the last byte", async () => {
    const { endpoint, client, sendTo } = await startPlain();
    const url = `http://${NAME}:${endpoint.port}/`;
    const request = { url, method: "GET", headers: {}, body: null, deadlineMs: 1, maxBodyBytes: 9 } as const;
    const result = await client.send(request, { onHead: () => {}, onData: () => false });
    expect(result).toMatchObject({ status: 200, complete: true });
    expect(await sendTo("/2")).toMatchObject(body("/2"));
    expect(endpoint.connections()).toBe(1);
  });

  it("is not stopped by the receiver of an earlier response", async () => {
    const { endpoint, client, sendTo } = await startPlain();
    const url = `http://${NAME}:${endpoint.port}/`;
    const request = { url, method: "GET", headers: {}, body: null, deadlineMs: 1, maxBodyBytes: 9 } as const;
    let stop = (): void => {};
    const onHead = (head: { readonly stop: () => void }): void => {
      stop = head.stop;
    };
    await client.send(request, { onHead, onData: () => true });
    stop();
    const sent = sendTo("/2");
    stop();
    await until(() => endpoint.requests.length === 2);
    stop();
    expect(await sent).toMatchObject(body("/2"));
    expect(endpoint.connections()).toBe(1);
  });
});

describe("closing the client", () => {
  it("settles running sends, closes idle connections, and refuses later sends, however often it is called", async () => {
    const endpoint = await start({
      respond: (socket) => endpoint.requests.length === 1 && socket.write(reply(204)),
    });
    const { client, send } = sender(endpoint.port);
    const idle = await send();
    const [underWay, opening] = [send(), send()];
    await until(() => endpoint.requests.length === 3);
    await Promise.all([client.close(), client.close()]);
    await client.close();
    expect(idle).toMatchObject({ status: 204 });
    expect([await underWay, await opening, await send()]).toEqual(
      Array.from({ length: 3 }, () => expect.objectContaining({ kind: "connect", code: "CLIENT_CLOSED" })),
    );
    await until(() => endpoint.openConnections() === 0);
  });

  it("settles a send whose name is still being resolved, and opens no socket later", async () => {
    const endpoint = await start();
    let answer: (addresses: string[]) => void = () => {};
    const { client, send } = sender(endpoint.port, {
      resolve: () => new Promise((resolve) => (answer = resolve)),
    });
    const underWay = send();
    await client.close();
    expect(await underWay).toMatchObject({ code: "CLIENT_CLOSED" });
    const connect = vi.spyOn(net, "connect");
    answer(["127.0.0.1"]);
    await turns(10);
    expect(connect).not.toHaveBeenCalled();
  });
});

describe("answers", () => {
  it.each([200, 201, 202, 204, 299, 301, 302, 304, 307, 308, 400, 404, 410, 429, 500, 503])(
    "with status %i are given as they are, and the connection is kept",
    async (status) => {
      const elsewhere = await start();
      const location = `https://${NAME}:${elsewhere.port}/`;
      const body = status === 204 || status === 304 ? "" : "text";
      const { endpoint, send } = await startOnce((socket) =>
        socket.write(status === 304 ? "HTTP/1.1 304 x\r\n\r\n" : reply(status, body, { location })),
      );
      expect(await send()).toMatchObject({
        kind: "response",
        status,
        body: Buffer.from(body),
        complete: true,
      });
      await send();
      expect(endpoint.connections()).toBe(1);
      expect(elsewhere.connections()).toBe(0);
    },
  );

  it("may be chunked, or end with the connection", async () => {
    const chunked = await startOnce((socket) =>
      drip(
        socket,
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
      ),
    );
    expect(await chunked.send()).toMatchObject({ body: Buffer.from("hello world"), complete: true });
    const untilClose = await startOnce((socket) =>
      drip(socket, "HTTP/1.1 200 OK\r\n\r\nhello", () => socket.end()),
    );
    expect(await untilClose.send()).toMatchObject({ body: Buffer.from("hello"), complete: true });
  });

  it("may have interim responses before them, which decide nothing", async () => {
    const { endpoint, send } = await startOnce((socket) =>
      socket.write(
        `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${reply(500, "no").toString()}`,
      ),
    );
    expect(await send()).toMatchObject({
      status: 500,
      headers: { "content-length": "2" },
      body: Buffer.from("no"),
    });
    await send();
    expect(endpoint.connections()).toBe(1);
  });

  it("keep the names the endpoint chose, whatever they are", async () => {
    const { send } = await startOnce((socket) =>
      socket.write(reply(200, "", { constructor: "a", __PROTO__: "b", ToString: "c" })),
    );
    const result = await send();
    expect(result.kind === "response" && Object.entries(result.headers)).toEqual([
      ["constructor", "a"],
      ["__proto__", "b"],
      ["tostring", "c"],
      ["content-length", "0"],
    ]);
  });

  it("are never decompressed", async () => {
    const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024));
    const { send } = await startOnce((socket) =>
      socket.write(reply(200, bomb, { "content-encoding": "gzip" })),
    );
    const result = await send();
    expect(result).toMatchObject({ complete: true, headers: { "content-encoding": "gzip" } });
    expect(result.kind === "response" && gunzipSync(result.body).length).toBe(8 * 1024 * 1024);
  });
});

describe("an answer that goes wrong after its status", () => {
  const pump = (socket: net.Socket, chunk: string | Buffer): void => {
    if (socket.destroyed) return;
    if (socket.write(chunk)) setImmediate(() => pump(socket, chunk));
    else socket.once("drain", () => pump(socket, chunk));
  };

  it.each([
    ["endless", "HTTP/1.1 200 OK\r\n\r\n", "x".repeat(1000)],
    [
      "endless in chunks",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
      `64\r\n${"x".repeat(100)}\r\n`,
    ],
    ["of 1 GB", "HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n", "x".repeat(1000)],
  ])("is read up to the cap: a body that is %s", async (_name, head, chunk) => {
    const { endpoint, send } = await startOnce((socket) => {
      socket.write(head);
      pump(socket, chunk);
    });
    expect(await send()).toMatchObject({
      status: 200,
      complete: false,
      body: Buffer.alloc(MAX_BODY_BYTES, "x"),
    });
    await until(() => endpoint.openConnections() === 0);
    expect(await send()).toMatchObject({ status: 204 });
    expect(endpoint.connections()).toBe(2);
  });

  it("may fill the cap exactly", async () => {
    const { endpoint, send } = await startOnce((socket) => socket.write(reply(200, "12345")));
    expect(await send({ maxBodyBytes: 5 })).toMatchObject({ body: Buffer.from("12345"), complete: true });
    await send();
    expect(endpoint.connections()).toBe(1);
  });

  it("may be cut at nothing", async () => {
    const { send } = await startOnce((socket) => socket.write(reply(200, "12345")));
    expect(await send({ maxBodyBytes: 0 })).toMatchObject({
      status: 200,
      body: Buffer.alloc(0),
      complete: false,
    });
  });

  it.each([
    ["is too short for its content length", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"],
    ["stops within a chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nhello"],
    [
      "has a chunk without a size",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
    ],
  ])("counts, and the connection does not: the body %s", async (_name, bytes) => {
    const { endpoint, send } = await startOnce((socket) => void socket.end(bytes));
    expect(await send()).toMatchObject({ status: 200, body: Buffer.from("hello"), complete: false });
    expect(await send()).toMatchObject({ status: 204 });
    expect(endpoint.connections()).toBe(2);
  });

  it.each([
    ["has more bytes than its content length", `${reply(200, "hello").toString()}and more`, "hello"],
    ["is a 204 with a body", `${reply(204).toString()}hello`, ""],
    ["comes twice", `${reply(200, "hello").toString()}${reply(200, "forged").toString()}`, "hello"],
  ])("counts, and the connection does not: the answer %s", async (_name, bytes, body) => {
    const { endpoint, send } = await startOnce((socket) => socket.write(bytes, "latin1"));
    expect(await send()).toMatchObject({ body: Buffer.from(body), complete: true });
    expect(await send()).toMatchObject({ status: 204 });
    expect(endpoint.connections()).toBe(2);
  });

  it("does not use the connection again where the answer came before the request was read", async () => {
    const endpoint = await start({
      onConnection: (socket) => {
        // Answers and reads no further.
        socket.once("readable", () => socket.write(reply(413, "too large")));
      },
    });
    const { send } = sender(endpoint.port);
    expect(await send({ body: Buffer.alloc(8 * 1024 * 1024) })).toMatchObject({
      status: 413,
      complete: true,
    });
    expect(await send()).toMatchObject({ status: 413 });
    expect(endpoint.connections()).toBe(2);
  });

  it.each([
    [
      "one byte at a time",
      (socket: net.Socket) => drip(socket, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello"),
    ],
  ])("counts at the deadline: the body comes %s", async (_name, respond) => {
    const { endpoint, clock, send } = await startOnce(respond);
    let result: unknown;
    const sent = send().then((settled) => (result = settled));
    await until(() => endpoint.requests.length === 1);
    await turns(200);
    await clock.advance(DEADLINE_MS - 1);
    expect(result).toBeUndefined();
    await clock.advance(1);
    expect(await sent).toMatchObject({ status: 200, body: Buffer.from("hello"), complete: false });
    await until(() => endpoint.openConnections() === 0);
  });
});

describe("no answer", () => {
  it.each<[string, (socket: net.Socket) => void, string]>([
    ["closes at once", (socket) => socket.destroy(), "CONNECTION_CLOSED"],
    ["half-closes", (socket) => void socket.end(), "CONNECTION_CLOSED"],
    ["closes within the status line", (socket) => void socket.end("HTTP/1.1 20"), "CONNECTION_CLOSED"],
    [
      "closes within the head",
      (socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-type: te"),
      "CONNECTION_CLOSED",
    ],
    [
      "closes after an interim response",
      (socket) => void socket.end("HTTP/1.1 103 Early Hints\r\n\r\n"),
      "CONNECTION_CLOSED",
    ],
    ["speaks HTTP/0.9", (socket) => void socket.end("<html>200 OK</html>"), "BAD_RESPONSE"],
    [
      "sends garbage",
      (socket) => socket.write(Buffer.from([0, 1, 2, 255, 254, 13, 10, 13, 10])),
      "BAD_RESPONSE",
    ],
    ["sends an invalid status", (socket) => socket.write("HTTP/1.1 2x0 OK\r\n\r\n"), "BAD_RESPONSE"],
    [
      "sends two lengths",
      (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx"),
      "BAD_RESPONSE",
    ],
    [
      "switches protocols",
      (socket) => socket.write("HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"),
      "BAD_RESPONSE",
    ],
    [
      "sends 20,000 headers",
      (socket) => socket.write(`HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}\r\n`),
      "HEADERS_TOO_LARGE",
    ],
    [
      "sends a header of 1 MB",
      (socket) => socket.write(`HTTP/1.1 200 OK\r\na: ${"b".repeat(2 ** 20)}\r\n\r\n`),
      "HEADERS_TOO_LARGE",
    ],
    [
      "sends interim responses without end",
      (socket) => {
        const pump = (): void =>
          void (socket.destroyed || socket.write("HTTP/1.1 103 x\r\n\r\n", () => setImmediate(pump)));
        pump();
      },
      "TOO_MANY_INTERIM_RESPONSES",
    ],
  ])("is a failure where the endpoint %s, and the connection is dropped", async (_name, respond, code) => {
    const { endpoint, send } = await startOnce(respond);
    expect(await send()).toEqual({
      kind: "http",
      code,
      message: `The endpoint did not give a valid HTTP response (${code}).`,
    });
    await until(() => endpoint.openConnections() === 0);
    expect(await send()).toMatchObject({ status: 204 });
    expect(endpoint.connections()).toBe(2);
  });

  it("is a failure where the endpoint resets the connection", async () => {
    const endpoint = await start({
      certificate: undefined,
      respond: (socket) => void socket.resetAndDestroy(),
    });
    const { send } = sender(endpoint.port);
    expect(await send({ url: `http://${NAME}:${endpoint.port}/` })).toMatchObject({
      kind: "http",
      code: "ECONNRESET",
    });
  });

  it("is a failure where nobody listens", async () => {
    const endpoint = await start();
    await endpoint.close();
    expect(await sender(endpoint.port).send()).toMatchObject({ kind: "connect", code: "ECONNREFUSED" });
  });

  it.each<[string, EndpointOptions]>([
    ["mute", { respond: () => {} }],
    ["slow in its status line", { respond: (socket) => drip(socket, "HTTP/1.1 20") }],
    ["slow in its head", { respond: (socket) => drip(socket, "HTTP/1.1 200 OK\r\ncontent-type: text/pl") }],
    [
      "forever about to answer",
      { respond: (socket) => drip(socket, "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3)) },
    ],
  ])("within the deadline is a failure: the endpoint is %s", async (_name, options) => {
    const endpoint = await start(options);
    const { clock, send } = sender(endpoint.port);
    let result: unknown;
    const sent = send().then((settled) => (result = settled));
    await until(() => endpoint.requests.length === 1);
    await turns(200);
    await clock.advance(DEADLINE_MS - 1);
    expect(result).toBeUndefined();
    await clock.advance(1);
    expect(await sent).toEqual({
      kind: "timeout",
      code: "DEADLINE",
      message: "The endpoint ran into the deadline of 15000 ms before the head of a response was complete.",
    });
    await until(() => endpoint.openConnections() === 0);
  });

  it("leaves no timer behind once it has come", async () => {
    const endpoint = await start();
    const { clock, send } = sender(endpoint.port);
    await send();
    expect(clock.nextTimerAt()).toBeUndefined();
  });
});

describe("TLS", () => {
  it.each<[string, () => Promise<EndpointOptions>, string]>([
    [
      "has expired",
      async () => ({ certificate: await issue({ authority, names: [NAME], expired: true }) }),
      "CERT_HAS_EXPIRED",
    ],
    [
      "signed itself",
      async () => ({ certificate: await issue({ names: [NAME] }) }),
      "DEPTH_ZERO_SELF_SIGNED_CERT",
    ],
    [
      "is of another CA",
      async () => ({
        certificate: await issue({ authority: await makeAuthority("Another CA"), names: [NAME] }),
      }),
      "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    ],
    [
      "is for another name",
      async () => ({ certificate: await issue({ authority, names: ["example.com"] }) }),
      "ERR_TLS_CERT_ALTNAME_INVALID",
    ],
    [
      "comes over TLS 1.1",
      async () => ({
        tlsOptions: { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" },
      }),
      "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
    ],
  ])("is a failure, and no byte is sent, where the certificate %s", async (_name, options, code) => {
    const endpoint = await start(await options());
    const result = await sender(endpoint.port).send();
    expect(result).toMatchObject({ kind: "tls", code });
    await until(() => endpoint.openConnections() === 0);
    expect(endpoint.connections()).toBe(1);
    expect(endpoint.bytes()).toBe(0);
  });

  it("cannot be switched off by NODE_TLS_REJECT_UNAUTHORIZED", async () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    const endpoint = await start({ certificate: await issue({ names: [NAME] }) });
    const unguarded = await new Promise((resolve, reject) => {
      const request = https.request({ host: "127.0.0.1", port: endpoint.port }, (response) =>
        resolve(response.statusCode),
      );
      request.on("error", reject).end();
    });
    expect(unguarded).toBe(204);
    const before = endpoint.bytes();
    expect(await sender(endpoint.port).send()).toMatchObject({
      kind: "tls",
      code: "DEPTH_ZERO_SELF_SIGNED_CERT",
    });
    expect(endpoint.bytes()).toBe(before);
  });

  it("trusts the host's CA beside the built-in roots, and nobody else's", async () => {
    const endpoint = await start();
    expect(await sender(endpoint.port, { ca: undefined }).send()).toMatchObject({ kind: "tls" });
    expect(await sender(endpoint.port, { ca: Buffer.from(authority.cert) }).send()).toMatchObject({
      status: 204,
    });
    const { cert } = await makeAuthority("Another CA");
    const createSecureContext = vi.spyOn(tls, "createSecureContext");
    expect(await sender(endpoint.port, { ca: cert }).send()).toMatchObject({ kind: "tls" });
    expect(createSecureContext.mock.calls[0]?.[0]?.ca).toEqual([...tls.rootCertificates, cert]);
  });

  it("fails, and nothing is rejected, where the host's CA cannot be read", async () => {
    const endpoint = await start();
    const ca = "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n";
    expect(await sender(endpoint.port, { ca }).send()).toMatchObject({ kind: "tls" });
    expect(endpoint.bytes()).toBe(0);
  });

  it("fails where the endpoint speaks plain HTTP", async () => {
    const endpoint = await start({
      certificate: undefined,
      onConnection: (socket) => socket.write(reply(200, "x")),
    });
    expect(await sender(endpoint.port).send()).toMatchObject({
      kind: "tls",
      code: "ERR_SSL_WRONG_VERSION_NUMBER",
    });
  });

  it("fails where the endpoint hangs up during the handshake", async () => {
    const endpoint = await start({ certificate: undefined, onConnection: (socket) => socket.destroy() });
    expect(await sender(endpoint.port).send()).toMatchObject({ kind: "tls", code: "ECONNRESET" });
  });

  it("runs into the deadline where the endpoint is mute in the handshake", async () => {
    const seen: Buffer[] = [];
    const endpoint = await start({
      certificate: undefined,
      onConnection: (socket) => void socket.on("data", (chunk: Buffer) => seen.push(chunk)),
    });
    const { clock, send } = sender(endpoint.port);
    const sent = send();
    await until(() => seen.length > 0);
    await clock.advance(DEADLINE_MS);
    expect(await sent).toMatchObject({
      kind: "timeout",
      message: expect.stringContaining("during the TLS handshake"),
    });
    await until(() => endpoint.openConnections() === 0);
    const bytes = Buffer.concat(seen);
    // One TLS record, the ClientHello, and nothing behind it.
    expect(bytes[0]).toBe(22);
    expect(bytes).toHaveLength(5 + bytes.readUInt16BE(3));
    expect(bytes.includes("s3cr3t")).toBe(false);
  });
});

describe("names", () => {
  const rejecting = (code: string) => async () => {
    throw Object.assign(new Error("the resolver says no"), { code });
  };

  it.each(["ENOTFOUND", "ESERVFAIL", "ETIMEOUT", "ENODATA"])(
    "that end in %s are a failure, without a socket",
    async (code) => {
      const connect = vi.spyOn(net.Socket.prototype, "connect");
      const { send } = sender(443, { resolve: rejecting(code) });
      expect(await send({ url: `https://${NAME}/` })).toEqual({
        kind: "dns",
        code,
        message: `The host name could not be resolved (${code}).`,
      });
      expect(connect).not.toHaveBeenCalled();
    },
  );

  it("without an address are a failure", async () => {
    expect(await sender(443, { resolve: async () => [] }).send()).toMatchObject({
      kind: "dns",
      code: "ENODATA",
    });
  });

  it("are resolved within the deadline", async () => {
    let isAsked = false;
    const { clock, send } = sender(443, {
      resolve: () => {
        isAsked = true;
        return new Promise(() => {});
      },
    });
    const sent = send({ deadlineMs: 2_000 });
    await until(() => isAsked);
    await clock.advance(2_050);
    expect(await sent).toMatchObject({
      kind: "timeout",
      message: expect.stringContaining("while its name was resolved"),
    });
  });

  it("are asked for once for each connection, without their last dot", async () => {
    const asked: string[] = [];
    const endpoint = await start();
    const { send } = sender(endpoint.port, {
      resolve: async (hostname) => {
        asked.push(hostname);
        return ["127.0.0.1"];
      },
    });
    const url = `https://${NAME}.:${endpoint.port}/`;
    await send({ url });
    await send({ url });
    expect(asked).toEqual([NAME]);
  });

  it.each([
    ["a private one among public ones", ["93.184.215.14", "10.0.0.5"]],
    [
      "a private one after a thousand public ones",
      [...Array.from({ length: 1000 }, (_, at) => `93.184.${at >> 8}.${at & 255}`), "10.0.0.5"],
    ],
    ["an IPv4-mapped one", ["::ffff:93.184.215.14"]],
    ["one that is no address", ["hooks.example.org"]],
  ])("are refused for one bad answer, without a socket: %s", async (_name, answers) => {
    const connect = vi.spyOn(net.Socket.prototype, "connect");
    const { send } = sender(443, { policy: {}, resolve: async () => answers });
    expect(await send({ url: `https://${NAME}/` })).toMatchObject({ kind: "refused", code: "R5" });
    expect(connect).not.toHaveBeenCalled();
  });

  it("with a thousand answers reach the endpoint", async () => {
    const endpoint = await start();
    const answers = Array.from({ length: 1000 }, () => "127.0.0.1");
    expect(await sender(endpoint.port, { resolve: async () => answers }).send()).toMatchObject({
      status: 204,
    });
  });

  it("with a dead address first reach the endpoint at the next one", async () => {
    const endpoint = await start();
    const { send } = sender(endpoint.port, { resolve: async () => ["::1", "127.0.0.1"] });
    expect(await send()).toMatchObject({ status: 204 });
  });

  it("with an address that hangs are tried at the next one after 250 ms, and the first is given up", async () => {
    const endpoint = await start();
    const hanging = new net.Socket();
    const connect = net.connect;
    const spy = vi
      .spyOn(net, "connect")
      .mockImplementation(((options: net.TcpNetConnectOpts) =>
        spy.mock.calls.length === 1 ? hanging : connect(options)) as typeof net.connect);
    const { clock, send } = sender(endpoint.port, { resolve: async () => ["127.0.0.9", "127.0.0.1"] });
    const sent = send();
    await until(() => spy.mock.calls.length === 1);
    await clock.advance(249);
    expect(spy).toHaveBeenCalledTimes(1);
    await clock.advance(1);
    expect(await sent).toMatchObject({ status: 204 });
    expect(hanging.destroyed).toBe(true);
  });

  it("with a hundred dead addresses are tried at eight of them, of both families", async () => {
    const endpoint = await start();
    const tried: unknown[] = [];
    const connect = net.connect;
    vi.spyOn(net, "connect").mockImplementation(((options: net.TcpNetConnectOpts) => {
      options.lookup?.("", {}, (_error, address) => tried.push(address));
      return connect(options);
    }) as typeof net.connect);
    const ipv4 = Array.from({ length: 50 }, (_, at) => `127.0.1.${at}`);
    const addresses = [...ipv4, ...ipv4.map((address) => `::ffff:${address}`)];
    const { send } = sender(endpoint.port, { resolve: async () => addresses });
    expect(await send()).toMatchObject({ kind: "connect", code: "ECONNREFUSED" });
    expect(tried).toEqual(ipv4.slice(0, 4).flatMap((address) => [address, `::ffff:${address}`]));
  });

  it.each([
    ["is down if neither a name nor the root is answered", [NAME, "."], `https://${NAME}/`, true],
    ["is not down if only that name is not answered", [NAME], `https://${NAME}/`, false],
    ["does not matter for an address", [NAME, "."], "https://93.184.216.34/", false],
    ["does not matter for a refused URL", [NAME, "."], "ftp://nobody", false],
  ])("tell that the resolver %s", async (_, silent, url, isDown) => {
    const client = createOutboundClient({
      clock: manualClock(0),
      async find(hostname) {
        if (silent.includes(hostname)) throw Object.assign(new Error("timeout"), { code: "ETIMEOUT" });
        return { addresses: [] };
      },
    });
    expect(await client.isResolverDown(url)).toBe(isDown);
    await client.close();
  });

  it("whose second family comes late reach the endpoint there, if the first one does not answer", async () => {
    const endpoint = await start();
    const late = new Promise<string[]>((resolve) => setImmediate(resolve, ["127.0.0.1"]));
    const { send } = sender(endpoint.port, {
      resolve: undefined,
      find: async () => ({ addresses: ["127.0.0.9"], otherFamily: late }),
    });
    expect(await send()).toMatchObject({ status: 204 });
  });

  it("whose second family comes late fail with the error of the first, if there is no second", async () => {
    const { send } = sender(1, {
      resolve: undefined,
      find: async () => ({ addresses: ["127.0.0.9"], otherFamily: Promise.resolve([]) }),
    });
    const endpoint = await start();
    await endpoint.close();
    expect(await send({ url: `https://${NAME}:${endpoint.port}/` })).toMatchObject({
      kind: "connect",
      code: "ECONNREFUSED",
    });
  });

  it.each<[string, EndpointOptions]>([
    ["while it is connected", { onConnection: (socket) => void socket.resume() }],
    ["before it is connected", {}],
  ])("are refused for a bad address that comes late, %s", async (when, options) => {
    const endpoint = await start({ certificate: undefined, ...options });
    if (when.startsWith("before"))
      vi.spyOn(net, "connect").mockImplementation((() => new net.Socket()) as typeof net.connect);
    let answer: (addresses: string[]) => void = () => {};
    const late = new Promise<string[]>((resolve) => (answer = resolve));
    const { send } = sender(endpoint.port, {
      resolve: undefined,
      find: async () => ({ addresses: ["127.0.0.1"], otherFamily: late }),
    });
    const sent = send();
    if (when.startsWith("while")) await until(() => endpoint.openConnections() === 1);
    answer(["169.254.169.254"]);
    expect(await sent).toMatchObject({ kind: "refused", code: "R7" });
    await until(() => endpoint.openConnections() === 0);
    expect(endpoint.requests).toHaveLength(0);
  });

  it("of an outage of the resolver are told apart, also if no lookup ends", async () => {
    const { clock, send } = sender(443, { resolve: () => new Promise(() => {}) });
    const results = [send({ url: "https://hooks.one.test/" }), send({ url: "https://hooks.two.test/" })];
    await turns(2);
    await clock.advance(DEADLINE_MS);
    expect(await Promise.all(results)).toMatchObject([
      { kind: "dns", code: "ETIMEOUT" },
      { kind: "dns", code: "RESOLVER_UNAVAILABLE" },
    ]);
  });

  it("whose socket ends at a refused address get no byte", async () => {
    const endpoint = await start();
    const connect = net.connect;
    vi.spyOn(net, "connect").mockImplementation(() => connect({ host: "127.0.0.1", port: endpoint.port }));
    const { send } = sender(endpoint.port, { policy: {}, resolve: async () => ["93.184.215.14"] });
    expect(await send()).toMatchObject({ kind: "refused", code: "R5" });
    await until(() => endpoint.connections() === 1 && endpoint.openConnections() === 0);
    expect(endpoint.bytes()).toBe(0);
  });
});

describe("the kind of a failure", () => {
  it.each<[unknown, Phase, string, string]>([
    [{ code: "ENOTFOUND" }, "dns", "dns", "ENOTFOUND"],
    [{ code: "ETIMEOUT" }, "dns", "dns", "ETIMEOUT"],
    [{ code: "ECONNREFUSED" }, "connect", "connect", "ECONNREFUSED"],
    [Object.assign(new AggregateError([]), { code: "ETIMEDOUT" }), "connect", "connect", "ETIMEDOUT"],
    [{ code: "CERT_HAS_EXPIRED" }, "tls", "tls", "CERT_HAS_EXPIRED"],
    [{ code: "ECONNRESET" }, "tls", "tls", "ECONNRESET"],
    [{ code: "ECONNRESET" }, "http", "http", "ECONNRESET"],
    [{ code: "CONNECTION_CLOSED" }, "http", "http", "CONNECTION_CLOSED"],
    [
      { code: "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED" },
      "http",
      "tls",
      "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED",
    ],
    [{ code: "secret in here" }, "http", "http", "BAD_RESPONSE"],
    [{ code: 7 }, "http", "http", "BAD_RESPONSE"],
    [new Error("secret in here"), "http", "http", "BAD_RESPONSE"],
    ["secret in here", "dns", "dns", "UNKNOWN"],
    [null, "connect", "connect", "UNKNOWN"],
    [undefined, "tls", "tls", "UNKNOWN"],
  ])("%j while in %s: %s, %s", (error, phase, kind, code) => {
    const failure = classifyError(error, phase);
    expect(failure).toMatchObject({ kind, code });
    expect(failure.message).not.toContain("secret");
  });
});
