/** The library of functions is loaded where it is missing, and old versions of it are removed. */

import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RedisClient } from "../../../storage/redis/index.js";
import { LIBRARY, LIBRARY_NAME } from "../../../storage/redis/library.js";
import { openStore } from "../../faults/support/redis-store.js";
import { codeOf, newEvent } from "../../faults/support/store-driver.js";
import { type RedisServer, startRedis } from "../../support/redis-server.js";

let server: RedisServer;
let admin: Redis;
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port);
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

const listLibraries = async (): Promise<string[]> => {
  const libraries = (await admin.call("FUNCTION", "LIST")) as [field: string, name: string][];
  return libraries.map(([, name]) => name).toSorted();
};

const loadForeign = (name: string) =>
  admin.call(
    "FUNCTION",
    "LOAD",
    `#!lua name=${name}\nredis.register_function('${name}_get', function() return 1 end)`,
  );

test("calls go on after the functions of the server were removed", async () => {
  const opened = openStore({ url: server.url });
  await opened.register();
  await opened.append(newEvent("clinic"));
  await admin.call("FUNCTION", "FLUSH");
  const events = Array.from({ length: 5 }, () => newEvent("clinic"));
  await Promise.all(events.map((event) => opened.append(event)));
  expect(await opened.drain()).toHaveLength(6);
  expect(await listLibraries()).toEqual([LIBRARY_NAME]);
  await opened.storage.close();
});

test("the name of the library is the hash of all text but the two lines that name it", () => {
  const [shebang, prefix, ...body] = LIBRARY.split("\n");
  const hash = createHash("sha1").update(body.join("\n")).digest("hex").slice(0, 12);
  expect(LIBRARY_NAME).toBe(`postbell_${hash}`);
  expect(shebang).toBe(`#!lua name=${LIBRARY_NAME}`);
  expect(prefix).toBe(`local FUNCTION_PREFIX, register = '${LIBRARY_NAME}_', redis.register_function`);
  expect(body[0]).toMatch(/^local PARTITION_KEYS = /);
});

test("check() removes the libraries of other versions, and leaves those of others", async () => {
  const opened = openStore({ url: server.url });
  await opened.register();
  const foreign = ["elsewhere", "postbell_0123456789abc", "postbell_counters", "postbell_older_versio"];
  for (const name of [...foreign, "postbell_0123456789ab"]) await loadForeign(name);
  expect(await listLibraries()).toEqual([...foreign, "postbell_0123456789ab", LIBRARY_NAME].toSorted());
  await opened.storage.check();
  expect(await listLibraries()).toEqual([...foreign, LIBRARY_NAME].toSorted());
  for (const name of foreign) await admin.call("FUNCTION", "DELETE", name);
  await opened.storage.close();
});

test("a server without functions is refused for good, and the error says which to use", async () => {
  const client = new Redis(server.port);
  const send: RedisClient["call"] = client.call.bind(client);
  const older = Object.assign(client, {
    call: (command: string, ...args: (string | number)[]) =>
      send(command === "FCALL" ? "FCALL6" : command, ...args),
  }) as unknown as RedisClient;
  const opened = openStore({ client: older });
  const error: unknown = await opened.append(newEvent("clinic")).catch((thrown: unknown) => thrown);
  expect(await codeOf(Promise.reject(error as Error))).toBe("storage_unavailable");
  expect(error).toMatchObject({
    effect: "none",
    isPermanent: true,
    message: expect.stringMatching(/NOCOMMAND.*Redis 7 or newer, Valkey 7\.2 or newer/),
  });
  await opened.storage.close();
  client.disconnect();
});

describe("a full Redis without the library", () => {
  test("delivers and frees memory, refuses what grows, and gets the library once it has room", async () => {
    const full = await startRedis({ args: ["--maxmemory-policy", "noeviction"] });
    const client = new Redis(full.port);
    onTestFinished(async () => {
      client.disconnect();
      await full.stop();
    });
    const first = openStore({ url: full.url });
    await first.register();
    for (let count = 0; count < 3; count++) await first.append(newEvent("clinic"));
    await first.storage.close();
    await client.call("FUNCTION", "FLUSH");
    await client.config("SET", "maxmemory", "1");

    const opened = openStore({ url: full.url, prefix: first.prefix });
    expect(await opened.store.stats()).toMatchObject({ pending: 3 });
    expect(await codeOf(opened.append(newEvent("clinic")))).toBe("storage_full");
    const claimed = await opened.drain();
    expect(claimed).toHaveLength(3);
    expect(await opened.store.stats()).toMatchObject({ pending: 0 });
    expect(await client.call("FUNCTION", "LIST")).toEqual([]);

    await client.config("SET", "maxmemory", "0");
    await opened.append(newEvent("clinic"));
    expect(await opened.drain()).toHaveLength(1);
    expect(await client.call("FUNCTION", "LIST")).toHaveLength(1);
    await opened.storage.close();
  });
});

describe("a Cluster with a master that refuses the library", () => {
  const REFUSED = "NOPERM User postbell has no permissions to run the 'function|load' command";

  /** A client of one server that pretends to be a Cluster with a master that refuses. */
  function clusterOf({ isServing }: { isServing: boolean }) {
    const client = new Redis(server.port);
    onTestFinished(() => client.disconnect());
    const refusing = { status: "ready", call: () => Promise.reject(new Error(REFUSED)) };
    const masters = isServing ? [refusing, client] : [refusing];
    return Object.assign(client, { nodes: () => masters }) as unknown as RedisClient;
  }

  test("calls to the other masters succeed", async () => {
    await admin.call("FUNCTION", "FLUSH");
    const opened = openStore({ client: clusterOf({ isServing: true }) });
    await opened.register();
    await opened.append(newEvent("clinic"));
    expect(await opened.drain()).toHaveLength(1);
    await opened.storage.close();
  });

  test("calls to the master that refuses fail with its refusal", async () => {
    await admin.call("FUNCTION", "FLUSH");
    const opened = openStore({ client: clusterOf({ isServing: false }) });
    await expect(opened.append(newEvent("clinic"))).rejects.toMatchObject({
      code: "storage_unavailable",
      isPermanent: true,
      message: expect.stringMatching(/NOPERM function\|load/),
    });
    await opened.storage.close();
  });
});
