/**
 * Errors of a connection say if the command was sent. The client of these tests never connects or
 * replies by itself.
 */

import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../src/testing/manual-clock.js";
import type { RedisClient } from "../../../storage/redis/clients.js";
import { createRedisConnection } from "../../../storage/redis/connection.js";

const LIMIT_MS = 3_500;
/** After the call that was given up first. */
const SILENCE_MS = 6_500;

class HeldClient extends EventEmitter {
  status = "ready";
  isCluster = false;
  readonly sent: string[] = [];
  reconnects = 0;
  /** Answers a command; by default no reply ever comes. */
  answer: () => Promise<unknown> = () => new Promise(() => {});

  call(command: string): Promise<unknown> {
    this.sent.push(command);
    return this.answer();
  }

  /** Its connection never ends, as that to a host which is gone. */
  disconnect(): void {
    this.reconnects += 1;
  }
}

function setUp() {
  const client = new HeldClient();
  const clock = manualClock(0);
  const connection = createRedisConnection(client as unknown as RedisClient, clock, false);
  /** Resolves with the error of a command, once the limit has passed. */
  const failingCall = async (): Promise<unknown> => {
    const failed = connection.call("SET", "key", "value").catch((error: unknown) => error);
    await clock.advance(LIMIT_MS);
    return failed;
  };
  return { client, clock, connection, failingCall };
}

const notExecuted = (reason: string) => ({
  code: "storage_unavailable",
  message: `Redis is not available (${reason}); the command was not executed, so nothing was changed. Try again later.`,
  effect: "none",
});
const unknown = (reason: string) => ({
  code: "storage_unavailable",
  message: `Redis is not available (${reason}); the command may or may not have been executed. Try again later.`,
  effect: "unknown",
});

describe("the error of a command that was not executed says that nothing was changed:", () => {
  it("without a connection", async () => {
    const { client, failingCall } = setUp();
    client.status = "reconnecting";
    expect(await failingCall()).toMatchObject(notExecuted("no connection in time"));
    expect(client.sent).toEqual([]);
  });

  it("without a connection, with the reason that the client gave", async () => {
    const { client, failingCall } = setUp();
    client.status = "reconnecting";
    client.emit("error", Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));
    expect(await failingCall()).toMatchObject(notExecuted("no connection: ECONNREFUSED"));
    expect(client.sent).toEqual([]);
  });

  it("at once if waiting does not help, with what to change", async () => {
    const { client, connection } = setUp();
    client.status = "connecting";
    const waiting = connection.call("GET", "key").catch((error: unknown) => error);
    client.emit("error", new Error("WRONGPASS invalid username-password pair or user is disabled."));
    client.emit("error", Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
    client.status = "reconnecting";
    const later = connection.call("GET", "key").catch((error: unknown) => error);
    // The clock stands still.
    for (const failed of [waiting, later]) {
      expect(await failed).toMatchObject({
        message:
          "Redis refuses this process (no connection: WRONGPASS); the command was not executed, so nothing was changed. Correct the user name and the password of the connection.",
        effect: "none",
        isPermanent: true,
        isOutage: true,
      });
    }
    client.status = "ready";
    client.emit("ready");
    client.answer = async () => "value";
    expect(await connection.call("GET", "key")).toBe("value");
  });

  it("without a connection, with the reply that ioredis 5 wraps", async () => {
    const { client, connection } = setUp();
    client.status = "connecting";
    const waiting = connection.call("GET", "key").catch((error: unknown) => error);
    client.emit("error", new Error("Ready check failed: NOAUTH Authentication required."));
    expect(await waiting).toMatchObject({ reason: "NOAUTH", isPermanent: true });
  });

  it("as a user without the privilege, which names the command", async () => {
    const { client, failingCall } = setUp();
    client.answer = () =>
      Promise.reject(new Error("NOPERM User default has no permissions to run the 'evalsha' command"));
    expect(await failingCall()).toMatchObject({
      message: expect.stringMatching(/^Redis refuses this process \(NOPERM evalsha\);.*ACL SETUSER/),
      reason: "NOPERM evalsha",
      effect: "none",
      isPermanent: true,
      isOutage: undefined,
    });
  });

  it("on a client that was closed", async () => {
    const { client, failingCall } = setUp();
    client.status = "end";
    expect(await failingCall()).toMatchObject(notExecuted("the client is closed"));
  });

  it("on a connection that does not reply to earlier commands", async () => {
    const { client, failingCall } = setUp();
    await Promise.all(Array.from({ length: 4 }, failingCall));
    expect(await failingCall()).toMatchObject(notExecuted("it does not reply to earlier commands"));
    expect(client.sent).toHaveLength(4);
  });

  it("on a server that refuses it while it loads its data", async () => {
    const { client, failingCall } = setUp();
    client.answer = () => Promise.reject(new Error("LOADING Redis is loading the dataset in memory"));
    expect(await failingCall()).toMatchObject(notExecuted("it refuses commands: LOADING"));
    expect(client.sent.length).toBeGreaterThan(1);
  });

  it.each([
    ["is an outage if no node is connected", "reconnecting", true],
    ["is no outage if others are connected", "ready", false],
  ])("in a Cluster, and %s", async (_, status, isOutage) => {
    const { client, failingCall } = setUp();
    client.isCluster = true;
    client.status = status;
    client.answer = () => Promise.reject(new Error("CLUSTERDOWN Hash slot not served"));
    expect(await failingCall()).toMatchObject({ code: "storage_unavailable", isOutage });
  });

  it("when the storage is closed before there is a connection", async () => {
    const { client, connection } = setUp();
    client.status = "connecting";
    const failed = connection.call("SET", "key", "value").catch((error: unknown) => error);
    connection.close();
    expect(await failed).toMatchObject(notExecuted("the storage was closed"));
  });
});

describe("the error of a command whose result is unknown says that it may have been executed:", () => {
  it("without a reply in time", async () => {
    const { client, failingCall } = setUp();
    expect(await failingCall()).toMatchObject(unknown("no reply in time"));
    expect(client.sent).toEqual(["SET"]);
  });

  it("on a connection that was lost meanwhile", async () => {
    const { client, clock, connection } = setUp();
    const failed = connection.call("SET", "key", "value").catch((error: unknown) => error);
    await clock.advance(100);
    client.status = "reconnecting";
    client.emit("error", Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
    await clock.advance(LIMIT_MS);
    expect(await failed).toMatchObject(unknown("no connection: ECONNRESET"));
  });

  it("refused after a reconnect, when an earlier transmission may have been executed", async () => {
    const { client, failingCall } = setUp();
    client.answer = () => {
      client.emit("close");
      return Promise.reject(new Error("READONLY You can't write against a read only replica."));
    };
    expect(await failingCall()).toMatchObject(unknown("it refuses commands: READONLY"));
  });

  it("with an error of the client that leaves it open", async () => {
    const { client, failingCall } = setUp();
    client.answer = () => Promise.reject(new Error("Connection is closed."));
    expect(await failingCall()).toMatchObject(unknown("CONNECTION_CLOSED"));
  });

  it("when the storage is closed before the reply", async () => {
    const { clock, connection } = setUp();
    const failed = connection.call("SET", "key", "value").catch((error: unknown) => error);
    await clock.advance(100);
    connection.close();
    expect(await failed).toMatchObject(unknown("the storage was closed"));
  });
});

describe("a client of the host whose connection is silent", () => {
  const callAfter = async ({ clock, connection }: ReturnType<typeof setUp>, ms: number): Promise<void> => {
    await clock.advance(ms);
    void connection.call("GET", "key").catch(() => {});
  };

  it("reconnects at the first call ten seconds after one without a reply, and again while it stays silent", async () => {
    const scene = setUp();
    await Promise.all(Array.from({ length: 4 }, scene.failingCall));
    await callAfter(scene, SILENCE_MS - 1);
    expect(scene.client.reconnects).toBe(0);
    await callAfter(scene, 1);
    expect(scene.client.reconnects).toBe(1);
    await callAfter(scene, SILENCE_MS);
    expect(scene.client.reconnects).toBe(2);
  });

  it("reconnects also if calls come one after the other", async () => {
    const { client, failingCall } = setUp();
    for (let calls = 0; calls < 3; calls++) await failingCall();
    expect(client.reconnects).toBe(1);
  });

  it("keeps a connection on which the late reply comes, and one that the client replaced", async () => {
    const { client, clock, failingCall } = setUp();
    let reply: (text: string) => void = () => {};
    client.answer = () =>
      new Promise((resolve) => {
        reply = resolve;
      });
    await failingCall();
    reply("late");
    await clock.advance(SILENCE_MS);
    await failingCall();
    client.emit("close");
    await clock.advance(SILENCE_MS);
    await failingCall();
    expect(client.reconnects).toBe(0);
  });

  it("in a Cluster gives up the nodes that do not answer PING, and no other", async () => {
    const { client, clock, failingCall } = setUp();
    const [silent, answering, unused] = [new HeldClient(), new HeldClient(), new HeldClient()];
    answering.answer = async () => "PONG";
    unused.status = "wait";
    const nodes = [silent, answering, unused];
    Object.assign(client, { isCluster: true, nodes: () => nodes });
    for (let calls = 0; calls < 3; calls++) await failingCall();
    await clock.advance(LIMIT_MS);
    expect(nodes.map(({ reconnects }) => reconnects)).toEqual([1, 0, 0]);
    expect(client.reconnects).toBe(0);
    expect(unused.sent).toEqual([]);
  });
});
