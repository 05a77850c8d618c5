/** `postbell backup` and `postbell migrate`, as installed, in processes of their own. */

import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createWebhooks } from "../../src/index.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { createDatabaseFile, openDatabase } from "../support/sqlite.js";

const COMMAND = resolve(import.meta.dirname, "../../dist/cli.js");

const run = (...args: readonly string[]): Promise<{ code: unknown; out: string; errors: string }> =>
  new Promise((done) => {
    const options = { env: { ...process.env, NODE_NO_WARNINGS: "1", DATABASE_URL: "" } };
    execFile(process.execPath, [COMMAND, ...args], options, (error, out, errors) =>
      done({ code: error ? error.code : 0, out, errors }),
    );
  });

const access = { authenticate: () => null, canRead: () => true } as const;
const owner = { id: "key", account: "clinic" } as const;

function createFile() {
  const { path, destroy } = createDatabaseFile();
  onTestFinished(destroy);
  return { path, to: join(dirname(path), "copy.db") };
}

/** Opens a service on a file, and closes both when the test has finished. */
function openService(path: string) {
  const database = openDatabase(path);
  const storage = sqliteStorage({ database });
  onTestFinished(async () => {
    await storage.close();
    database.close();
  });
  return createWebhooks({ storage, access });
}

it("backup copies a file that a process has open, and the copy works as a storage", async () => {
  const { path, to } = createFile();
  const { webhook } = await openService(path).registrations.create(owner, {
    url: "https://subscriber.example/hook",
  });
  const { code, out } = await run("backup", path, to, "--json");
  expect({ code, copy: JSON.parse(out).copy }).toEqual({ code: 0, copy: to });
  expect(existsSync(`${to}.part`)).toBe(false);
  expect((await openService(to).registrations.get(webhook.id))?.url).toBe("https://subscriber.example/hook");
});

it("backup refuses a file that does not exist, one that is no database, and a copy that exists", async () => {
  const { path, to } = createFile();
  expect(await run("backup", path, to)).toMatchObject({ code: 2, out: "" });
  expect(existsSync(path)).toBe(false);
  expect(await run("backup", path)).toMatchObject({ code: 2 });

  writeFileSync(path, "this is no database".repeat(1_000));
  expect(await run("backup", path, to)).toMatchObject({ code: 1 });
  expect(existsSync(to)).toBe(false);

  writeFileSync(to, "precious");
  const refused = await run("backup", path, to);
  expect(refused).toMatchObject({ code: 2 });
  expect(refused.errors).toContain("exists already");
  expect(readFileSync(to, "utf8")).toBe("precious");
});

it("migrate prints the SQL without a server, and says what is missing", async () => {
  const { code, out } = await run("migrate", "--print", "--schema", "clinic_hooks");
  expect(code).toBe(0);
  expect(out).toContain('CREATE TABLE "clinic_hooks"."deliveries"');
  expect(await run("migrate")).toMatchObject({ code: 2, out: "" });
  for (const wrong of [
    ["--postgres", "mysql://root:hunter2@localhost"],
    ["--postgres", "postgres://localhost/x", "--schema", "a;b"],
  ]) {
    const refused = await run("migrate", ...wrong);
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.errors).not.toContain("hunter2");
  }
});
