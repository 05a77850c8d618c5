/** The library of functions is loaded where it is missing, and old versions of it are removed. */

import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RedisClient } from "../../../storage/redis/index.js";
import { LIBRARY_NAME } from "../../../storage/redis/library.js";
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

test("check() removes the libraries of other versions, and leaves those of others", async () => {
  const opened = openStore({ url: server.url });
  await opened.register();
  await loadForeign("postbell_0123456789ab");
  await loadForeign("elsewhere");
  expect(await listLibraries()).toEqual(["elsewhere", "postbell_0123456789ab", LIBRARY_NAME]);
  await opened.storage.check();
  expect(await listLibraries()).toEqual(["elsewhere", LIBRARY_NAME]);
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
