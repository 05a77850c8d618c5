/** The storages on which a test of the content service runs: what holds for one holds for all. */

import { onTestFinished } from "vitest";
import type { ContentStorage } from "../../src/content/store.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { redisStorage } from "../../storage/redis/index.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { freshPrefix, redisUrl } from "./redis.js";
import { createDatabaseFile, openDatabase } from "./sqlite.js";

/** To be opened within a test, which closes it. */
export const CONTENT_STORAGES: readonly (readonly [name: string, open: () => ContentStorage])[] = [
  ["memory", memoryStorage],
  [
    "Redis",
    () => {
      const storage = redisStorage({ url: redisUrl(), prefix: freshPrefix() });
      onTestFinished(() => storage.close());
      return storage;
    },
  ],
  [
    "SQLite",
    () => {
      const { path, destroy } = createDatabaseFile();
      const database = openDatabase(path);
      const storage = sqliteStorage({ database });
      onTestFinished(async () => {
        await storage.close();
        database.close();
        destroy();
      });
      return storage;
    },
  ],
];
