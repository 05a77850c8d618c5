/** Hooks and an `AsyncLocalStorage` of the host: what requests share has the service's context. */

import { AsyncLocalStorage } from "node:async_hooks";
import { expect, it, onTestFinished } from "vitest";
import type { ContentStorage } from "../../src/content/store.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { redisStorage } from "../../storage/redis/index.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { callsOf } from "../support/content-call.js";
import { contentSite } from "../support/content-site.js";
import { freshPrefix, redisUrl } from "../support/redis.js";
import { createDatabaseFile } from "../support/sqlite.js";

const START = Date.UTC(2026, 2, 1, 12);
const ADMINISTRATOR = { id: 1, slug: "ann", name: "Ann", roles: ["administrator"] };

it.each<[string, () => ContentStorage]>([
  ["memory", memoryStorage],
  [
    "SQLite",
    () => {
      const { path, destroy } = createDatabaseFile();
      onTestFinished(destroy);
      return sqliteStorage({ file: path });
    },
  ],
  ["Redis", () => redisStorage({ url: redisUrl(), prefix: freshPrefix(), time: "clock" })],
])("hooks whose results requests share run in the context of the service: %s", async (_, open) => {
  const storage = open();
  const tenants = new AsyncLocalStorage<string>();
  const seen = new Map<string, Set<string | undefined>>();
  const note = (hook: string): void => {
    seen.set(hook, (seen.get(hook) ?? new Set()).add(tenants.getStore()));
  };
  const clock = manualClock(START);
  const site = tenants.run("service", () =>
    contentSite({
      storage,
      clock,
      users: {
        async get() {
          note("users.get");
          return ADMINISTRATOR;
        },
        async list() {
          note("users.list");
          return { users: [ADMINISTRATOR], total: 1 };
        },
      },
      render(raw) {
        note("render");
        return raw;
      },
      changed: ({ status }) => note(`changed to ${status.after}`),
      embeds: {
        destinations: {
          async resolve() {
            note("embeds.destinations.resolve");
            return ["10.0.0.1"];
          },
        },
      },
    }),
  );
  onTestFinished(async () => {
    await site.stop();
    await storage.close();
  });
  const call = callsOf(site);
  const embed = callsOf(site, "oembed/1.0");
  const post = { title: "A", content: "b", status: "future", date_gmt: "2026-03-01T12:05:00" };
  await tenants.run("author", () => call("POST /posts", { as: "administrator", body: post }));
  // No request runs meanwhile: the next one publishes what is due.
  await clock.advance(6 * 60_000);
  for (const visitor of ["visitor-a", "visitor-b"])
    await tenants.run(visitor, async () => {
      await call("GET /posts");
      await call("GET /users");
      await embed("GET /proxy", { as: "administrator", query: { url: "https://pages.example.org/" } });
    });
  const service = ["service"];
  expect(Object.fromEntries([...seen].map(([hook, found]) => [hook, [...found]]))).toEqual({
    "users.get": service,
    "users.list": service,
    render: service,
    "embeds.destinations.resolve": service,
    "changed to future": ["author"],
    "changed to publish": service,
  });
});
