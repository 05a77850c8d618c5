import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "./eventually.js";
import { turns } from "./https-endpoint.js";
import { freshPrefix, redisUrl } from "./redis.js";
import { type RedisServer, startCluster, startRedis } from "./redis-server.js";
import { startProxy, type TcpProxy } from "./tcp-proxy.js";

interface RawClient {
  readonly send: (line: string) => void;
  readonly received: () => string;
  /** The code of the error that ended the connection, or "end". */
  readonly ended: Promise<string>;
}

/** Speaks Redis's inline commands, so that a test sees each byte of the answer. */
function rawClient(port: number, host = "127.0.0.1"): RawClient {
  const socket = net.connect({ port, host, noDelay: true });
  let received = "";
  let failure = "end";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString();
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    failure = error.code ?? error.message;
  });
  const ended = new Promise<string>((resolve) => socket.once("close", () => resolve(failure)));
  onTestFinished(() => {
    socket.destroy();
  });
  return { send: (line) => socket.write(`${line}\r\n`), received: () => received, ended };
}

async function ask(port: number, line: string, host?: string): Promise<string> {
  const client = rawClient(port, host);
  client.send(line);
  client.send("QUIT");
  await client.ended;
  return client.received();
}

describe("a Redis server of a test's own", () => {
  it("keeps every write through kills where each is synced, and nothing where none is kept", async () => {
    const synced = await startRedis({ persistence: "aof-always" });
    const forgetful = await startRedis();
    onTestFinished(async () => {
      await Promise.all([synced.stop(), forgetful.stop()]);
    });
    const killedPid = synced.pid;
    for (const server of [synced, forgetful]) {
      await server.cli("SET", "key", "value");
      await server.kill();
      await server.restart();
    }
    expect(synced.pid).not.toBe(killedPid);
    expect(await synced.cli("GET", "key")).toBe("value");
    expect(await forgetful.cli("EXISTS", "key")).toBe("0");
  });

  it("saves a snapshot at an orderly end where it keeps snapshots", async () => {
    const server = await startRedis({ persistence: "rdb" });
    onTestFinished(server.stop);
    await server.cli("SET", "key", "value");
    await server.restart();
    expect(await server.cli("GET", "key")).toBe("value");
  });

  it("leaves neither process nor folder behind, also when it cannot start", async () => {
    const server = await startRedis();
    await server.stop();
    expect(existsSync(server.dir)).toBe(false);
    expect(() => process.kill(server.pid, 0)).toThrow("ESRCH");
    await expect(startRedis({ args: ["--no-such-setting", "1"] })).rejects.toThrow("no-such-setting");
  });

  it("goes, with its folder, when the process that started it is killed", async () => {
    const folder = mkdtempSync(join(tmpdir(), "postbell-orphan-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const name of ["redis-server", "tcp-proxy"]) {
      const source = readFileSync(join(import.meta.dirname, `${name}.ts`), "utf8");
      const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 };
      writeFileSync(join(folder, `${name}.js`), ts.transpileModule(source, { compilerOptions }).outputText);
    }
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    writeFileSync(
      join(folder, "parent.js"),
      'import { startRedis } from "./redis-server.js"; const { port, dir } = await startRedis(); console.log(JSON.stringify({ port, dir }));',
    );
    const parent = spawn(process.execPath, [join(folder, "parent.js")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    parent.stdout.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
    });
    await eventually(() => printed.endsWith("\n") || parent.exitCode !== null);
    expect(parent.exitCode).toBeNull();
    const { port, dir } = JSON.parse(printed) as { port: number; dir: string };
    expect(await ask(port, "PING")).toMatch(/^\+PONG/);

    parent.kill("SIGKILL");
    await eventually(() => !existsSync(dir));
    // The signal is on its way when the folder goes; the port closes once it arrives.
    await eventually(async () => (await rawClient(port).ended) === "ECONNREFUSED");
  });
});

describe("a cluster", () => {
  it("has every node agree on its state, and takes a key on the node that owns it", async () => {
    const cluster = await startCluster(3);
    onTestFinished(cluster.stop);
    expect(cluster.nodes).toHaveLength(3);
    const answers = await Promise.all(cluster.nodes.map(({ port }) => ask(port, "SET key value")));
    const [owner] = answers.flatMap((answer, index) => (answer.startsWith("+OK") ? [index] : []));
    const address = `127.0.0.1:${cluster.nodes[owner ?? -1]?.port}`;
    expect(answers.filter((answer) => answer.startsWith("-MOVED") && answer.includes(address))).toHaveLength(
      2,
    );
    for (const { port } of cluster.nodes) {
      expect(await ask(port, "CLUSTER INFO")).toMatch(/cluster_state:ok[\s\S]*cluster_slots_ok:16384/);
    }
  });
});

describe("the proxy", () => {
  let server: RedisServer;
  let proxy: TcpProxy;

  beforeAll(async () => {
    server = await startRedis();
    return server.stop;
  });

  async function freshProxy(pause?: (ms: number) => Promise<void>): Promise<void> {
    await server.cli("FLUSHALL");
    proxy = await startProxy({ host: "127.0.0.1", port: server.port, pause });
    onTestFinished(proxy.stop);
  }
  async function connected(): Promise<RawClient> {
    const client = rawClient(proxy.port);
    client.send("PING");
    await eventually(() => client.received() === "+PONG\r\n");
    return client;
  }

  it("passes requests and replies, and counts connections", async () => {
    await freshProxy();
    expect(await ask(proxy.port, "SET key value")).toBe("+OK\r\n+OK\r\n");
    await connected();
    expect([proxy.connections(), proxy.openConnections()]).toEqual([2, 1]);
  });

  it("swallows the replies to requests that took effect, and cuts the connection that lost them", async () => {
    await freshProxy();
    const client = await connected();
    await proxy.mode("swallow");
    client.send("SET key value");
    await eventually(async () => (await server.cli("EXISTS", "key")) === "1");
    await turns(3);
    await proxy.mode("pass");
    expect([await client.ended, client.received()]).toEqual(["ECONNRESET", "+PONG\r\n"]);
    expect(await ask(proxy.port, "GET key")).toContain("value");
  });

  it("forwards nothing into a black hole, and accepts connections to it", async () => {
    await freshProxy();
    const clients = [await connected()];
    await proxy.mode("black-hole");
    clients.push(rawClient(proxy.port));
    for (const client of clients) client.send("SET key value");
    await eventually(() => proxy.connections() === 2);
    await turns(3);
    await proxy.mode("pass");
    expect(await Promise.all(clients.map(({ ended }) => ended))).toEqual(["ECONNRESET", "ECONNRESET"]);
    expect(await server.cli("EXISTS", "key")).toBe("0");
  });

  it("refuses new connections only, and takes them again on the same port", async () => {
    await freshProxy();
    const client = await connected();
    await proxy.mode("refuse");
    expect(await rawClient(proxy.port).ended).toBe("ECONNREFUSED");
    client.send("SET key value");
    await eventually(() => client.received() === "+PONG\r\n+OK\r\n");
    await proxy.mode("pass");
    expect(await ask(proxy.port, "GET key")).toContain("value");
  });

  it("resets after exactly so many request bytes", async () => {
    await freshProxy();
    for (const [missing, exists] of [
      [1, "0"],
      [0, "1"],
    ] as const) {
      await proxy.mode("pass");
      const client = await connected();
      await proxy.mode({ resetAfterBytes: "SET key value\r\n".length - missing });
      client.send("SET key value");
      expect([await client.ended, client.received()]).toEqual(["ECONNRESET", "+PONG\r\n"]);
      await eventually(() => server.cli("CLIENT", "LIST").then((list) => list.split("\n").length === 1));
      expect(await server.cli("EXISTS", "key")).toBe(exists);
    }
  });

  it("delays both directions and keeps the order when the delay ends", async () => {
    const pauses: { readonly ms: number; readonly end: () => void }[] = [];
    await freshProxy((ms) => new Promise((end) => pauses.push({ ms, end })));
    const client = await connected();
    await proxy.mode({ delayMs: 40 });
    client.send("ECHO late");
    await eventually(() => pauses.length === 1);
    await turns(3);
    expect([client.received(), pauses[0]?.ms]).toEqual(["+PONG\r\n", 40]);
    pauses[0]?.end();
    await eventually(() => pauses.length === 2);
    await turns(3);
    expect([client.received(), pauses[1]?.ms]).toEqual(["+PONG\r\n", 40]);
    pauses[1]?.end();
    await eventually(() => client.received().includes("late"));

    client.send("ECHO first");
    await eventually(() => pauses.length === 3);
    await proxy.mode("pass");
    client.send("ECHO second");
    await turns(3);
    expect(client.received()).not.toContain("second");
    for (const { end } of pauses) end();
    await eventually(() => client.received().includes("second"));
    expect(client.received().match(/late|first|second/g)).toEqual(["late", "first", "second"]);
  });

  it("cuts every connection at once", async () => {
    await freshProxy();
    const clients = [await connected(), await connected()];
    proxy.cutAll();
    expect(await Promise.all(clients.map(({ ended }) => ended))).toEqual(["ECONNRESET", "ECONNRESET"]);
    await eventually(() => proxy.openConnections() === 0);
  });
});

describe("the shared server", () => {
  it("answers, and has room for every test", async () => {
    const { hostname, port } = new URL(redisUrl());
    // A server that was given may want a password first, and says so.
    expect(await ask(Number(port || 6379), "PING", hostname)).toMatch(/^(?:\+PONG|-NOAUTH)/);
    expect(freshPrefix()).not.toBe(freshPrefix());
  });
});
