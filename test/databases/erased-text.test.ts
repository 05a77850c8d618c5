/**
 * Searches for the text of an erased person through everything that a storage has written: each
 * table, key, file and log. SECURITY.md lists where it may still be, and this is the proof.
 *
 * `SHOW_ERASED=<file>` writes the table of what was found where.
 */

import { appendFileSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { createWebhooks, type Storage } from "../../src/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { postgresStorage } from "../../storage/postgres/index.js";
import { redisStorage } from "../../storage/redis/index.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { startRedis } from "../support/redis-server.js";
import { createDatabaseFile, openDatabase } from "../support/sqlite.js";
import { response } from "../support/webhook-harness.js";
import { startDatabase } from "./support/database-server.js";

/** Of the person, of the account, and of what an endpoint has said about the person. */
const TEXTS = {
  family: "Zaphodquux",
  account: "clinic-erased-7",
  excerpt: "endpointsaidquux",
  tag: "taggedquux",
} as const;

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end();
});

const show = (line: string): void => {
  const file = process.env["SHOW_ERASED"];
  if (file) appendFileSync(file, `${line}\n`);
};

/** Fills an account on a storage, with a delivery that waits, one that ended and an audit log. */
async function fill(storage: Storage) {
  const webhooks = createWebhooks({
    storage,
    access: { authenticate: () => null, canRead: () => true },
    delivery: {
      excerptCharacters: 200,
      send: async ({ url }) => (url.endsWith("/good") ? response(200) : response(500, {}, TEXTS.excerpt)),
    },
    limits: { auditEntries: 100 },
    logger: false,
  });
  const subscriber = { id: "key-1", account: TEXTS.account };
  for (const name of ["good", "bad"])
    await webhooks.registrations.create({ subscriber, url: `https://hooks.example.com/${name}` });
  const emit = (account: string) =>
    webhooks.emit({
      type: "patient.updated",
      account,
      resource: { resourceType: "Patient", id: "7", name: [{ family: TEXTS.family }] },
      tags: [TEXTS.tag],
    });
  for (let count = 0; count < 20; count++) await emit(TEXTS.account);
  await webhooks.start();
  await webhooks.idle();
  await webhooks.stop();
  return webhooks;
}

/** Returns the names of the texts that some bytes contain. */
const findTexts = (bytes: Buffer | string): string[] => {
  const content = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
  return Object.entries(TEXTS).flatMap(([name, text]) => (content.includes(text) ? [name] : []));
};

/** Returns the texts that the files below a folder contain, by the kind of file. */
function searchFiles(folder: string, kindOf: (path: string) => string): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (!statSync(path).isFile()) continue;
    const texts = findTexts(readFileSync(path));
    if (texts.length === 0) continue;
    const kind = kindOf(name);
    found[kind] = [...new Set([...(found[kind] ?? []), ...texts])].sort();
  }
  return found;
}

const describeFound = (found: Record<string, string[]>): string =>
  Object.keys(found).length === 0
    ? "nowhere"
    : Object.entries(found)
        .map(([kind, texts]) => `${kind} (${texts.join(", ")})`)
        .join("; ");

const record = (storage: string, when: string, found: Record<string, string[]>): Record<string, string[]> => {
  show(`| ${storage} | ${when} | ${describeFound(found)} |`);
  return found;
};

describe("the text of an erased account", () => {
  it("is nowhere in the memory storage", async () => {
    const storage = memoryStorage();
    const webhooks = await fill(storage);
    await webhooks.accounts.erase(TEXTS.account);
    expect((await webhooks.deliveries.list({ account: TEXTS.account })).items).toEqual([]);
    const { items } = await webhooks.accounts.list();
    expect(record("memory", "after erasing", { ...(items.length > 0 && { accounts: ["account"] }) })).toEqual(
      {},
    );
  });

  it("is in no table of SQLite, and in no file once the log was checkpointed and the file vacuumed", async () => {
    const { path, destroy } = createDatabaseFile();
    cleanUp.push(destroy);
    const database = openDatabase(path);
    const storage = sqliteStorage({ database });
    const webhooks = await fill(storage);
    const search = (when: string) =>
      record(
        "SQLite",
        when,
        searchFiles(dirname(path), (name) => name.replace("postbell", "file")),
      );
    const tables = () => {
      const names = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as {
        name: string;
      }[];
      return Object.fromEntries(
        names.flatMap(({ name }) => {
          const texts = findTexts(JSON.stringify(database.prepare(`SELECT * FROM "${name}"`).all()));
          return texts.length === 0 ? [] : [[name.replace("postbell_", ""), texts]];
        }),
      ) as Record<string, string[]>;
    };
    expect(Object.keys(record("SQLite", "tables before erasing", tables()))).toContain("bodies");
    await webhooks.accounts.erase(TEXTS.account);
    expect(record("SQLite", "tables after erasing", tables())).toEqual({});
    search("files after erasing");
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    search("files after wal_checkpoint(TRUNCATE)");
    database.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    expect(search("files after VACUUM and a checkpoint")).toEqual({});
    await storage.close();
    database.close();
    expect(search("files after close")).toEqual({});
  });

  it("is in no file of SQLite after a checkpoint if secure_delete was on from the start", async () => {
    const { path, destroy } = createDatabaseFile();
    cleanUp.push(destroy);
    const database = openDatabase(path);
    database.exec("PRAGMA secure_delete = ON");
    const storage = sqliteStorage({ database });
    const webhooks = await fill(storage);
    await webhooks.accounts.erase(TEXTS.account);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    const found = searchFiles(dirname(path), (name) => name.replace("postbell", "file"));
    expect(record("SQLite", "files after a checkpoint, secure_delete ON", found)).toEqual({});
    await storage.close();
    database.close();
  });

  it("is in no key of Redis, and in no file once the append-only file was rewritten", async () => {
    const server = await startRedis({ persistence: "aof-always" });
    cleanUp.push(() => server.stop());
    const storage = redisStorage({ url: server.url, prefix: "erased" });
    cleanUp.push(() => storage.close());
    const webhooks = await fill(storage);
    const keys = async (): Promise<Record<string, string[]>> => {
      const found: Record<string, string[]> = {};
      for (const key of (await server.cli("KEYS", "*")).split("\n").filter(Boolean)) {
        const type = (await server.cli("TYPE", key)).trim();
        const read = { hash: ["HGETALL", key], zset: ["ZRANGE", key, "0", "-1"], string: ["GET", key] }[type];
        const texts = findTexts(await server.cli(...(read ?? ["TYPE", key])));
        if (texts.length > 0) found[key.replace(/^.*:/, "")] = texts;
      }
      return found;
    };
    const files = (when: string) =>
      record(
        "Redis",
        when,
        searchFiles(server.dir, (name) => (name.includes("aof") ? "append-only file" : name)),
      );
    expect(Object.keys(record("Redis", "keys before erasing", await keys()))).toContain("events");
    await webhooks.accounts.erase(TEXTS.account);
    expect(record("Redis", "keys after erasing", await keys())).toEqual({});
    expect(Object.keys(files("files after erasing"))).toEqual(["append-only file"]);
    await server.cli("BGREWRITEAOF");
    await expect
      .poll(async () => (await server.cli("INFO", "persistence")).includes("aof_rewrite_in_progress:0"), {
        timeout: 20_000,
      })
      .toBe(true);
    await expect.poll(() => searchFiles(server.dir, () => "files"), { timeout: 20_000 }).toEqual({});
    files("files after BGREWRITEAOF");
    await server.cli("SAVE");
    expect(files("files after SAVE")).toEqual({});
  });

  it("is in no table of Postgres, and in its files until they are vacuumed and the log is recycled", async () => {
    const server = await startDatabase("postgres");
    cleanUp.push(() => server.stop());
    const pool = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 4 });
    cleanUp.push(() => pool.end());
    const storage = postgresStorage({ pool, schema: "webhooks" });
    await storage.migrate();
    const webhooks = await fill(storage);
    const tables = async (): Promise<Record<string, string[]>> => {
      const { rows } = await pool.query<{ tablename: string }>(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'webhooks'",
      );
      const found: Record<string, string[]> = {};
      for (const { tablename } of rows) {
        const all = await pool.query(`SELECT * FROM webhooks."${tablename}"`);
        const texts = findTexts(JSON.stringify(all.rows));
        if (texts.length > 0) found[tablename] = texts;
      }
      return found;
    };
    const folder = String((await pool.query("SHOW data_directory")).rows[0]?.data_directory);
    const files = (when: string) =>
      record(
        "Postgres",
        when,
        searchFiles(folder, (name) =>
          name.startsWith("pg_wal") ? "WAL" : name.startsWith("base") ? "pages" : name,
        ),
      );
    expect(Object.keys(record("Postgres", "tables before erasing", await tables()))).toContain("bodies");
    await webhooks.accounts.erase(TEXTS.account);
    expect(record("Postgres", "tables after erasing", await tables())).toEqual({});
    await pool.query("CHECKPOINT");
    files("files after a checkpoint");
    await pool.query("VACUUM FULL");
    await pool.query("CHECKPOINT");
    expect(files("files after VACUUM FULL and a checkpoint")["pages"]).toBeUndefined();
  });
});
