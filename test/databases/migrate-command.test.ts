/** `postbell migrate` against a server. */

import { execFile } from "node:child_process";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

const COMMAND = join(import.meta.dirname, "../../dist/cli.js");

let server: DatabaseServer;
let pool: pg.Pool;
let url: string;
beforeAll(async () => {
  server = await startDatabase("postgres");
  if (!("port" in server.address)) throw new Error("Postgres listens on a port");
  url = `postgres://postgres@127.0.0.1:${server.address.port}/postgres`;
  pool = new pg.Pool({ connectionString: url });
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});

interface Ended {
  readonly code: unknown;
  readonly out: string;
  readonly errors: string;
}

const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  new Promise((done) => {
    execFile(
      process.execPath,
      [COMMAND, "migrate", ...args],
      { env: { ...process.env, ...env } },
      (error, out, errors) => done({ code: error ? error.code : 0, out, errors }),
    );
  });

const DESCRIBE = `SELECT table_name, column_name, data_type, is_nullable
  FROM information_schema.columns WHERE table_schema = $1 ORDER BY 1, 2`;
const describeTables = async (schema: string): Promise<unknown[]> =>
  (await pool.query(DESCRIBE, [schema])).rows;

test("it creates the tables in several processes at once, and can be repeated", async () => {
  const upToDate = { code: 0, out: "The schema bell is up to date: layout 1.\n" };
  const ended = await Promise.all([1, 2, 3].map(() => run(["--postgres", url, "--schema", "bell"])));
  for (const one of ended) expect(one).toMatchObject(upToDate);
  const again = await run(["--schema", "bell", "--json"], { POSTBELL_POSTGRES: url });
  expect(JSON.parse(again.out)).toEqual({ schema: "bell", version: 1 });
});

test("the SQL that it prints makes the same tables", async () => {
  const { out } = await run(["--print", "--schema", "printed"]);
  await pool.query(out);
  expect((await run(["--postgres", url, "--schema", "ran"])).code).toBe(0);
  const tables = await describeTables("printed");
  expect(tables.length).toBeGreaterThan(20);
  expect(tables).toEqual(await describeTables("ran"));
  expect((await run(["--postgres", url, "--schema", "printed"])).code).toBe(0);
});

test("it changes nothing in a schema of a newer version, and says so", async () => {
  await run(["--postgres", url, "--schema", "newer"]);
  await pool.query("INSERT INTO newer.layout (version) VALUES (99)");
  expect(await run(["--postgres", url, "--schema", "newer"])).toMatchObject({
    code: 2,
    errors: expect.stringMatching(/has layout 99.*Use the newer version/),
  });
});

test("it fails without a server", async () => {
  const { code, errors } = await run(["--postgres", "postgres://postgres@127.0.0.1:1/postgres"]);
  const cause = /^postbell: Postgres .*ECONNREFUSED 127\.0\.0\.1:1/;
  expect({ code, errors }).toEqual({ code: 1, errors: expect.stringMatching(cause) });
});

test("it fails in a database that does not exist, and says what to do", async () => {
  const { code, errors } = await run(["--postgres", url.replace(/postgres$/, "nowhere")]);
  const cause = /^postbell: .*3D000.*Create it, or correct its name/;
  expect({ code, errors }).toEqual({ code: 1, errors: expect.stringMatching(cause) });
  expect(errors).not.toMatch(/later/);
});
