import { AsyncLocalStorage } from "node:async_hooks";
import { expect, it, onTestFinished } from "vitest";
import { createWebhooks, type Storage } from "../../src/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { redisStorage } from "../../storage/redis/index.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { testHookContexts } from "../support/hook-context-suite.js";
import { freshPrefix, redisUrl } from "../support/redis.js";
import { access } from "../support/registration-api.js";
import { createDatabaseFile } from "../support/sqlite.js";

testHookContexts("memory", memoryStorage);
testHookContexts("SQLite", () => {
  const { path, destroy } = createDatabaseFile();
  onTestFinished(destroy);
  return sqliteStorage({ file: path });
});
testHookContexts("Redis", () => redisStorage({ url: redisUrl(), prefix: freshPrefix(), time: "clock" }));

it("a line of the storage has the context of createWebhooks(), not that of the request", async () => {
  const tenants = new AsyncLocalStorage<string>();
  const contexts: unknown[] = [];
  const note = (): void => void contexts.push(tenants.getStore());
  const memory = memoryStorage();
  const storage: Storage = {
    webhooks(context) {
      const store = memory.webhooks(context);
      const listWebhooks: typeof store.listWebhooks = (request) => {
        for (const level of ["debug", "info", "warn", "error"] as const) context.logger[level]({}, "a line");
        return store.listWebhooks(request);
      };
      return { ...store, listWebhooks };
    },
    close: () => memory.close(),
  };
  const logger = { debug: note, info: note, warn: note, error: note };
  const webhooks = tenants.run("service", () => createWebhooks({ storage, access, logger }));
  await tenants.run("clinic-a", () => webhooks.registrations.list({ account: "clinic-a" }));
  expect(contexts).toEqual(Array(4).fill("service"));
});
