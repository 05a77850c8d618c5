// The storages on which the cases are played. Each starts what it needs; `open` then returns an
// empty storage, and `stop` ends what was started.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStorage } from "postbell/memory";
import { postgresStorage } from "postbell/postgres";
import { redisStorage } from "postbell/redis";
import { sqliteStorage } from "postbell/sqlite";
import { startPostgres } from "../../scripts/private-postgres.js";
import { startRedis } from "../../scripts/private-redis.js";

const createName = () => `conformance_${randomUUID().replaceAll("-", "")}`;

export const STORAGES = {
  memory: async () => ({ open: async () => memoryStorage(), stop: async () => {} }),
  async SQLite() {
    const dir = mkdtempSync(join(tmpdir(), "postbell-conformance-"));
    const remove = () => rmSync(dir, { recursive: true, force: true });
    process.once("exit", remove);
    return {
      open: async () => sqliteStorage({ file: join(dir, `${createName()}.db`) }),
      stop: async () => remove(),
    };
  },
  async Redis() {
    const server = await startRedis();
    return {
      open: async () => redisStorage({ url: server.url, prefix: createName() }),
      stop: async () => server.stop(),
    };
  },
  async Postgres() {
    const server = await startPostgres();
    return {
      async open() {
        const storage = postgresStorage({ url: server.url, schema: createName() });
        await storage.migrate();
        return storage;
      },
      stop: () => server.stop(),
    };
  },
};
