import { memoryStorage } from "../../storage/memory/index.js";
import { redisStorage } from "../../storage/redis/index.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { testHookContexts } from "../support/hook-context-suite.js";
import { freshPrefix, redisUrl } from "../support/redis.js";
import { createDatabaseFile } from "../support/sqlite.js";

testHookContexts("memory", memoryStorage);
testHookContexts("SQLite", () => sqliteStorage({ file: createDatabaseFile().path }));
testHookContexts("Redis", () => redisStorage({ url: redisUrl(), prefix: freshPrefix(), time: "clock" }));
