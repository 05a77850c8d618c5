/** `error` events of what a host has passed: without a listener, each would end its process. */

import { EventEmitter } from "node:events";
import { Readable } from "node:stream";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { createWebhooks } from "../../src/index.js";
import { manualClock } from "../../src/testing/index.js";
import { pgSource } from "../../storage/outbox/index.js";
import { postgresStorage } from "../../storage/postgres/index.js";
import { contentSite } from "../support/content-site.js";
import { recordingLogger } from "../support/registration-api.js";

/** A pool that connects to nothing. */
const openPool = (): pg.Pool => new pg.Pool({ host: "127.0.0.1", port: 1 });
const loss = (): Error => Object.assign(new Error("terminating connection"), { code: "57P01" });

/** As `pg` reports that an idle connection has ended. */
const loseIdle = (pool: pg.Pool): void => void pool.emit("error", loss(), new pg.Client());

describe("a pool of the host", () => {
  it("may lose idle connections from the moment it is passed to a storage, until that is closed", async () => {
    const pool = openPool();
    expect(() => loseIdle(pool)).toThrow("terminating connection");
    const storage = postgresStorage({ pool });
    loseIdle(pool);
    await storage.close();
    expect(pool.eventNames()).toEqual([]);
    await storage.close();
  });

  it("has one listener however many storages use it, until the last of them is closed", async () => {
    const pool = openPool();
    const storages = Array.from({ length: 20 }, (_, index) => postgresStorage({ pool, schema: `s${index}` }));
    for (const storage of storages) {
      expect(["error", "acquire"].map((event) => pool.listenerCount(event))).toEqual([1, 1]);
      loseIdle(pool);
      await storage.close();
      await storage.close();
    }
    expect(pool.eventNames()).toEqual([]);
    await postgresStorage({ pool }).close();
    expect(pool.eventNames()).toEqual([]);
  });

  it("of an outbox keeps one listener, also if a storage on it is closed", async () => {
    const pool = openPool();
    const storage = postgresStorage({ pool });
    for (let sources = 0; sources < 20; sources++) pgSource({ pool });
    await storage.close();
    expect(pool.listenerCount("error")).toBe(1);
    loseIdle(pool);
  });

  it("may lose a connection that the host has borrowed, also after the storage is closed", async () => {
    const pool = openPool();
    const storage = postgresStorage({ pool });
    const lent = new EventEmitter();
    for (let loans = 0; loans < 20; loans++) pool.emit("acquire", lent);
    lent.emit("error", loss());
    await storage.close();
    lent.emit("error", loss());
    expect(lent.listenerCount("error")).toBe(1);
  });

  it("that loses all connections at once is logged in one line a minute, without a stack", async () => {
    const pool = openPool();
    const { logger, log } = recordingLogger();
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const storage = postgresStorage({ pool });
    createWebhooks({ storage, clock, logger, access: { authenticate: () => null, canRead: () => true } });
    const lines = () => log.filter(({ message }) => message.includes("connection to Postgres"));
    for (let lost = 0; lost < 8; lost++) loseIdle(pool);
    expect(lines()).toEqual([{ level: "info", fields: { code: "57P01" }, message: expect.any(String) }]);
    await clock.advance(60_000);
    for (let lost = 0; lost < 8; lost++) loseIdle(pool);
    expect(lines().map(({ fields }) => fields)).toEqual([{ code: "57P01" }, { code: "57P01", omitted: 7 }]);
    await storage.close();
  });
});

describe("what is passed to a call", () => {
  it("may be a client whose connection ends in the host's transaction, between statements of add()", async () => {
    const client = Object.assign(new EventEmitter(), { query: async () => ({ rows: [] }) });
    const source = pgSource({ pool: openPool() });
    const event = { type: "patient.updated", account: "clinic", resource: { resourceType: "Patient" } };
    for (let added = 0; added < 20; added++) await source.add(client, event);
    client.emit("error", loss());
    expect(client.listenerCount("error")).toBe(1);
  });

  it("may be a stream that fails while the import looks up its user", async () => {
    const stream = new Readable({ read() {} });
    const failed = new Promise((resolve) => stream.once("close", resolve));
    const admin = { id: 1, slug: "admin", name: "Admin", roles: ["administrator"] };
    const site = contentSite({
      users: {
        async get() {
          stream.destroy(new Error("no such file"));
          await failed;
          return admin;
        },
        list: () => ({ users: [admin], total: 1 }),
      },
    });
    await expect(site.import(stream, { as: 1 })).rejects.toThrow("no such file");
  });
});
