/** When the storage replaces connections, its own and those of a host's client. */

import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { createRedisClients, listClientWarnings, type RedisClient } from "../../../storage/redis/clients.js";

const HANDSHAKE_MS = 10_000;
const OLD_MASTER = { remoteAddress: "10.0.0.1", remotePort: 6379 };
const NEW_MASTER = { remoteAddress: "10.0.0.2", remotePort: 6379 };
const SENTINELS = { sentinels: [{ host: "10.0.0.9", port: 26379 }], name: "clinic" };

class HostClient extends EventEmitter {
  status = "ready";
  stream = OLD_MASTER;
  disconnects: unknown[] = [];
  readonly options: object;
  constructor(options: object = {}) {
    super();
    this.options = options;
  }
  duplicate(changes: object): HostClient {
    return new HostClient({ ...this.options, ...changes });
  }
  disconnect(reconnect = false): void {
    this.disconnects.push(reconnect);
  }
}

function setUp(options: object = {}) {
  const client = new HostClient(options);
  const clock = manualClock(0);
  const host = client as unknown as RedisClient;
  const clients = createRedisClients({ client: host }, { debug: () => {}, clock: () => clock });
  const second = async () => (await clients.second()) as unknown as HostClient;
  return { client, clock, clients, second };
}

describe("a client of the host with Sentinels", () => {
  it("follows when the storage's own client is connected to another master", async () => {
    const { client, second } = setUp(SENTINELS);
    const own = await second();
    expect(own.options).toMatchObject({ failoverDetector: true, sentinelCommandTimeout: 3_000 });
    own.emit("ready");
    expect(client.disconnects).toEqual([]);
    own.stream = NEW_MASTER;
    own.emit("ready");
    expect(client.disconnects).toEqual([true]);
  });

  it("is left alone while it connects by itself", async () => {
    const { client, second } = setUp(SENTINELS);
    const own = await second();
    client.status = "connecting";
    own.stream = NEW_MASTER;
    own.emit("ready");
    expect(client.disconnects).toEqual([]);
  });

  it.each<[string, object, readonly RegExp[]]>([
    ["none without Sentinels", {}, []],
    ["what it lacks", SENTINELS, [/failoverDetector: true/, /sentinelCommandTimeout: 3000/]],
    ["none if it has both", { ...SENTINELS, failoverDetector: true, sentinelCommandTimeout: 2_000 }, []],
  ])("has warnings: %s", (_, options, expected) => {
    const warnings = listClientWarnings(new HostClient(options) as unknown as RedisClient);
    expect(warnings).toEqual(expected.map((text) => expect.stringMatching(text)));
  });
});

it("a client of the host without Sentinels stays where it is when the own client is connected elsewhere", async () => {
  const { client, second } = setUp();
  const own = await second();
  expect(own.options).not.toHaveProperty("failoverDetector");
  own.stream = NEW_MASTER;
  own.emit("ready");
  expect(client.disconnects).toEqual([]);
});

describe("a connection that is open and not ready", () => {
  it("is replaced after ten seconds, but not if it was ready or closed meanwhile", async () => {
    const { client, clock, clients } = setUp();
    await clients.main();
    for (const event of ["ready", "close"]) {
      client.status = "connect";
      client.emit("connect");
      await clock.advance(HANDSHAKE_MS - 1);
      client.emit(event);
      await clock.advance(HANDSHAKE_MS);
    }
    expect(client.disconnects).toEqual([]);
    client.emit("connect");
    await clock.advance(HANDSHAKE_MS);
    expect(client.disconnects).toEqual([true]);
  });

  it("is replaced too if it was open before the storage got the client, and never after close()", async () => {
    const { client, clock, clients } = setUp();
    client.status = "connect";
    await clients.main();
    await clock.advance(HANDSHAKE_MS);
    expect(client.disconnects).toEqual([true]);
    client.emit("connect");
    clients.close();
    await clock.advance(HANDSHAKE_MS);
    client.emit("connect");
    await clock.advance(HANDSHAKE_MS);
    expect(client.disconnects).toEqual([true]);
    expect(["connect", "ready", "close"].map((event) => client.listenerCount(event))).toEqual([0, 0, 0]);
  });
});
