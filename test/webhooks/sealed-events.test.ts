/** `sealEvents` on the storages that need no server of their own: memory, SQLite and Redis. */

import { Redis } from "ioredis";
import { silentLogger } from "../../src/core/logger.js";
import type { Storage } from "../../src/index.js";
import { manualClock } from "../../src/testing/index.js";
import type { AppendRequest } from "../../src/webhooks/store.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { redisStorage } from "../../storage/redis/index.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { freshPrefix, redisUrl } from "../support/redis.js";
import { type SealedData, testSealedEvents } from "../support/sealed-events.js";
import { createDatabaseFile, openDatabase } from "../support/sqlite.js";

/** Nobody can look into the heap, so it notes which events were stored, and reads them again. */
function openMemory(): SealedData {
  const storage = memoryStorage();
  const appended = new Map<string, { account: string; id: string }>();
  const noting: Storage = {
    webhooks(context) {
      const store = storage.webhooks(context);
      return Object.freeze({
        ...store,
        append(request: AppendRequest) {
          for (const { account, id } of request.events) appended.set(`${account} ${id}`, { account, id });
          return store.append(request);
        },
      });
    },
    close: async () => {},
  };
  return {
    connect: () => noting,
    async dump() {
      const retention = { keepMs: 1, events: 1 };
      const store = storage.webhooks({
        clock: manualClock(0),
        logger: silentLogger,
        perEndpoint: 1,
        retention,
      });
      const events = await Promise.all([...appended.values()].map((key) => store.getEvent(key)));
      return JSON.stringify(events);
    },
    destroy: () => storage.close(),
  };
}

function openSqlite(): SealedData {
  const { path, destroy } = createDatabaseFile();
  return {
    connect: (sealKeys) => sqliteStorage({ file: path, sealKeys }),
    async dump() {
      const database = openDatabase(path);
      const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as {
        name: string;
      }[];
      const rows = tables.map(({ name }) =>
        JSON.stringify(database.prepare(`SELECT * FROM "${name}"`).all()),
      );
      database.close();
      return rows.join("\n");
    },
    destroy,
  };
}

async function openRedis(): Promise<SealedData> {
  const prefix = freshPrefix();
  const client = new Redis(redisUrl());
  return {
    connect: (sealKeys) => redisStorage({ url: redisUrl(), prefix, sealKeys, time: "clock" }),
    async dump() {
      const texts: string[] = [];
      for (const key of await client.keys(`*${prefix}*`)) {
        const type = await client.type(key);
        if (type === "hash") texts.push(JSON.stringify(await client.hgetall(key)));
        else if (type === "zset") texts.push(JSON.stringify(await client.zrange(key, "0", "-1")));
        else texts.push((await client.get(key)) ?? "");
      }
      return texts.join("\n");
    },
    destroy: () => client.disconnect(),
  };
}

testSealedEvents({ name: "memory", hasSealKeys: false, open: openMemory });
testSealedEvents({ name: "SQLite", hasSealKeys: true, open: openSqlite });
testSealedEvents({ name: "Redis", hasSealKeys: true, open: openRedis });
