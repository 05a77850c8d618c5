/** `postbell migrate`, as installed, on a real Postgres. */

import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { postgresStorage } from "../../storage/postgres/index.js";
import { startDatabase } from "./support/database-server.js";

const COMMAND = resolve(import.meta.dirname, "../../dist/cli.js");

it("creates the tables once, whoever comes first, and by its printed SQL too", async () => {
  const server = await startDatabase("postgres");
  onTestFinished(() => server.stop());
  if (!("port" in server.address)) throw new Error("Postgres listens on a port");
  const url = `postgres://postgres@127.0.0.1:${server.address.port}/postgres`;
  const run = (...args: readonly string[]): string =>
    execFileSync(process.execPath, [COMMAND, "migrate", ...args], {
      encoding: "utf8",
      env: { ...process.env, DATABASE_URL: url },
    });
  const storages = [1, 2, 3].map(() => postgresStorage({ url, schema: "together" }));
  onTestFinished(async () => {
    await Promise.all(storages.map((storage) => storage.close()));
  });
  expect(await Promise.all(storages.map((storage) => storage.migrate()))).toEqual([
    { version: 1 },
    { version: 1 },
    { version: 1 },
  ]);
  expect(JSON.parse(run("--schema", "together", "--json"))).toEqual({ schema: "together", version: 1 });

  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(run("--schema", "by_hand", "--print"));
  const byHand = postgresStorage({ url, schema: "by_hand" });
  onTestFinished(() => byHand.close());
  expect(await byHand.check()).toMatchObject({ ok: true, warnings: [] });

  await client.query("INSERT INTO by_hand.layout VALUES (99)");
  await expect(byHand.migrate()).rejects.toMatchObject({ code: "invalid_option", field: "schema" });
  const newer = postgresStorage({ url, schema: "by_hand" });
  onTestFinished(() => newer.close());
  await expect(newer.check()).rejects.toThrow(/layout 99/);
});
