/**
 * Redis that refuses a process, or cannot be reached when it starts: messages name the cause and
 * the remedy, and no secret.
 */

import { createServer, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createContent } from "../../../src/content/index.js";
import { createWebhooks } from "../../../src/index.js";
import { type RedisClient, redisStorage } from "../../../storage/redis/index.js";
import { issue, makeAuthority } from "../../support/certificates.js";
import { eventually } from "../../support/eventually.js";
import { type RedisServer, startRedis } from "../../support/redis-server.js";
import { listenInTest, startRefused } from "../../support/refused-start.js";

const SECRET = "s3cret-of-redis";
const WRONG = "wrong-s3cret";

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis({ args: ["--requirepass", SECRET] });
  const admin = new Redis(redis.port, "127.0.0.1", { password: SECRET });
  await admin.call(
    "ACL",
    "SETUSER",
    "reader",
    "on",
    ">reader",
    "~*",
    "&*",
    "+@read",
    "+@connection",
    "+info",
  );
  admin.disconnect();
});
afterAll(() => redis.stop());

type Source = { readonly url: string } | { readonly client: RedisClient };

async function refusalOf(kind: "webhooks" | "content", source: Source) {
  const storage = redisStorage(source);
  onTestFinished(() => storage.close());
  const { service, refused, log, listLines } = await startRefused(kind, storage);
  const status = await service.handle({
    ...{ method: "GET", query: "", body: null, baseUrl: "https://api.example.com" },
    path: kind === "webhooks" ? "/v1/webhooks" : "/core/v2/posts",
    headers: { authorization: "Bearer key" },
  });
  await eventually(() => listLines().length > 0, "the log tells of it");
  await service.stop();
  return { refused, lines: listLines(), log, status: status?.status };
}

const through = (options: object): Source => {
  const client = new Redis({ ...options, lazyConnect: true, retryStrategy: () => 100 } as object);
  client.on("error", () => {});
  onTestFinished(() => client.disconnect());
  return { client: client as unknown as RedisClient };
};

function listen(server: Server): Promise<number> {
  server.on("tlsClientError", () => {});
  return listenInTest(server);
}

describe.each(["webhooks", "content"] as const)("start() of %s on Redis", (kind) => {
  it.each<[string, string, RegExp, () => Source]>([
    [
      "with a wrong password",
      "WRONGPASS",
      /Correct the user name and the password/,
      () => ({ url: `redis://:${WRONG}@127.0.0.1:${redis.port}` }),
    ],
    [
      "with an unknown user",
      "WRONGPASS",
      /Correct the user name and the password/,
      () => ({ url: `redis://nobody:${WRONG}@127.0.0.1:${redis.port}` }),
    ],
    ["without a password", "NOAUTH", /Redis requires a password/, () => ({ url: redis.url })],
    [
      "as a user without the privileges",
      "NOPERM",
      /ACL SETUSER/,
      () => ({ url: `redis://reader:reader@127.0.0.1:${redis.port}` }),
    ],
  ])("%s rejects for good with the cause, which the log names once", async (_, code, advice, source) => {
    const { refused, lines } = await refusalOf(kind, source());
    expect(refused).toMatchObject({ code: "storage_unavailable", isPermanent: true, effect: "none" });
    expect(refused.reason?.split(" ")[0]).toBe(code);
    expect(refused.message).toContain(code);
    expect(refused.message).toMatch(advice);
    expect(refused.message).not.toMatch(/later/);
    const about = lines.filter(({ fields }) => JSON.stringify(fields).includes(code));
    expect(about.length).toBeGreaterThan(0);
    expect(about.length).toBeLessThan(3);
    expect(JSON.stringify([refused.message, refused.reason, lines])).not.toMatch(/s3cret|:reader@/);
  });

  it.each<[string, string, RegExp, () => Promise<Source>]>([
    [
      "that signs its certificate itself",
      "DEPTH_ZERO_SELF_SIGNED_CERT",
      /`ca` in the TLS options/,
      async () => {
        const own = await issue({ names: ["127.0.0.1"] });
        return { url: `rediss://127.0.0.1:${await listen(createTlsServer(own))}` };
      },
    ],
    [
      "whose certificate is for another host",
      "ERR_TLS_CERT_ALTNAME_INVALID",
      /for another host name/,
      async () => {
        const authority = await makeAuthority();
        const other = await issue({ authority, names: ["redis.example.com"] });
        const port = await listen(createTlsServer(other));
        return through({ host: "127.0.0.1", port, tls: { ca: authority.cert } });
      },
    ],
    [
      "whose certificate has expired",
      "CERT_HAS_EXPIRED",
      /Renew the certificate/,
      async () => {
        const authority = await makeAuthority();
        const old = await issue({ authority, names: ["127.0.0.1"], expired: true });
        return through({
          host: "127.0.0.1",
          port: await listen(createTlsServer(old)),
          tls: { ca: authority.cert },
        });
      },
    ],
    [
      "that does not speak TLS on this port",
      "ERR_SSL_",
      /Connect without TLS/,
      async () => {
        const port = await listen(createServer((socket) => socket.end("-ERR Protocol error\r\n")));
        return { url: `rediss://127.0.0.1:${port}` };
      },
    ],
  ])("%s rejects for good, and names what to change", async (_, code, advice, open) => {
    const { refused } = await refusalOf(kind, await open());
    expect(refused).toMatchObject({ code: "storage_unavailable", isPermanent: true, effect: "none" });
    expect(refused.message).toContain(code);
    expect(refused.message).toMatch(advice);
  });

  it("works again once the password is corrected on the server", async () => {
    const own = await startRedis({ args: ["--requirepass", SECRET] });
    const storage = redisStorage({ url: `redis://:${WRONG}@127.0.0.1:${own.port}` });
    onTestFinished(async () => {
      await storage.close();
      await own.stop();
    });
    const service =
      kind === "webhooks"
        ? createWebhooks({
            storage,
            logger: false,
            access: { authenticate: () => null, canRead: () => true },
          })
        : createContent({
            ...{ storage, logger: false, users: [], authenticate: () => null, awaitStorage: true },
            site: { name: "Example", url: "https://www.example.org" },
          });
    await expect(service.start()).rejects.toMatchObject({ reason: "WRONGPASS" });
    const admin = new Redis(own.port, "127.0.0.1", { password: SECRET });
    await admin.config("SET", "requirepass", WRONG);
    admin.disconnect();
    const starts = (): Promise<boolean> =>
      service.start().then(
        () => true,
        () => false,
      );
    await eventually(starts, "it starts");
    await service.stop();
  });
});

/** Each start waits 3.5 s for Redis, so all of them wait together. */
it("start() of a service whose Redis cannot be reached names the last error of the connection", async () => {
  const resetting = await listen(createServer((socket) => socket.resetAndDestroy()));
  const refusals = (url: string) =>
    Promise.all((["webhooks", "content"] as const).map((kind) => refusalOf(kind, { url })));
  const [reset, refusing, nameless] = await Promise.all([
    refusals(`redis://127.0.0.1:${resetting}`),
    refusals("redis://127.0.0.1:1"),
    refusals("redis://redis.invalid:6379"),
  ]);
  for (const { refused } of reset) {
    expect(refused.message).toMatch(/ECONNRESET.*begin the URL with rediss:/);
    expect(refused.isPermanent).toBe(false);
  }
  const named = [
    ...refusing.map((refusal) => [refusal, "ECONNREFUSED 127.0.0.1:1"] as const),
    ...nameless.map((refusal) => [refusal, "ENOTFOUND redis.invalid"] as const),
  ];
  const services = ["webhooks", "content", "webhooks", "content"];
  for (const [index, [{ refused, lines }, reason]] of named.entries()) {
    const { message: cause } = refused;
    const fields = { service: services[index], reason, cause };
    expect(refused).toMatchObject({ code: "storage_unavailable", reason, effect: "none", isOutage: true });
    expect(cause).toContain(reason);
    expect(lines).toEqual([{ level: "error", message: "the storage is unavailable", fields }]);
  }
  expect(named.map(([{ status }]) => status)).toEqual([401, 503, 401, 503]);
});
