/**
 * Postgres that refuses a process, or cannot be reached when it starts: messages name the cause and
 * the remedy, and no secret.
 */

import { appendFile, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { createSecureContext, TLSSocket } from "node:tls";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { postgresStorage } from "../../storage/postgres/index.js";
import { type Certificate, issue, makeAuthority } from "../support/certificates.js";
import { listenInTest, startRefused } from "../support/refused-start.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

const WRONG = "wrong-s3cret";

let server: DatabaseServer;
let admin: pg.Pool;
let port = 0;

const urlOf = (user: string, { password = "", database = "postgres", query = "" } = {}): string =>
  `postgres://${user}${password && `:${password}`}@127.0.0.1:${port}/${database}${query}`;

beforeAll(async () => {
  server = await startDatabase("postgres");
  if (!("port" in server.address)) throw new Error("Postgres listens on a port.");
  ({ port } = server.address);
  admin = new pg.Pool({ connectionString: urlOf("postgres") });
  await admin.query("CREATE ROLE secretive LOGIN PASSWORD 's3cret'");
  await admin.query("CREATE ROLE poor LOGIN");
  const { rows } = await admin.query<{ file: string }>("SELECT current_setting('hba_file') AS file");
  const file = rows[0]?.file ?? "";
  const rules = await readFile(file, "utf8");
  const own = [
    "host all secretive 127.0.0.1/32 scram-sha-256",
    "hostssl all encrypted 127.0.0.1/32 trust",
    "host all encrypted 127.0.0.1/32 reject",
  ];
  await writeFile(file, `${own.join("\n")}\n`);
  await appendFile(file, rules);
  await admin.query("SELECT pg_reload_conf()");
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

async function refusalOf(kind: "webhooks" | "content", options: Parameters<typeof postgresStorage>[0]) {
  const storage = postgresStorage(options);
  onTestFinished(() => storage.close());
  const { service, refused, listLines } = await startRefused(kind, storage);
  await service.stop();
  return { refused, lines: listLines() };
}

/** A server that agrees to TLS as Postgres does, with this certificate. */
const startTlsServer = (certificate: Certificate): Promise<number> =>
  listenInTest(
    createServer((socket) => {
      socket.once("data", () => {
        socket.write("S");
        const secureContext = createSecureContext(certificate);
        new TLSSocket(socket, { isServer: true, secureContext }).on("error", () => {});
      });
    }),
  );

describe.each(["webhooks", "content"] as const)("start() of %s on Postgres", (kind) => {
  it.each<[string, string, RegExp, () => string]>([
    [
      "with a wrong password",
      "28P01",
      /Correct the user name and the password/,
      () => urlOf("secretive", { password: WRONG }),
    ],
    ["without a password", "NO_PASSWORD", /Postgres requires a password/, () => urlOf("secretive")],
    ["as a role that does not exist", "28000", /The role does not exist/, () => urlOf("nobody")],
    ["without TLS where it is required", "28000", /sslmode=require/, () => urlOf("encrypted")],
    [
      "with TLS where the server has none",
      "NO_TLS",
      /ssl = on/,
      () => urlOf("postgres", { query: "?sslmode=verify-full" }),
    ],
    [
      "with an authority whose file is missing",
      "ENOENT",
      /cannot be read. Correct its path/,
      () => urlOf("postgres", { query: "?sslmode=verify-full&sslrootcert=/nowhere/ca.pem" }),
    ],
    [
      "in a database that does not exist",
      "3D000",
      /Create it/,
      () => urlOf("postgres", { database: "nowhere" }),
    ],
  ])("%s rejects for good with the cause, which the log names once", async (_, code, advice, url) => {
    const { refused, lines } = await refusalOf(kind, { url: url() });
    expect(refused).toMatchObject({
      code: "storage_unavailable",
      reason: code,
      effect: "none",
      isPermanent: true,
      isOutage: true,
    });
    expect(refused.message).toContain(code);
    expect(refused.message).toMatch(advice);
    expect(refused.message).not.toMatch(/later/);
    expect(lines).toEqual([
      {
        level: "error",
        message: "the storage is unavailable until its configuration is changed",
        fields: { service: kind, reason: code, cause: refused.message },
      },
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/s3cret|postgres:\/\//);
  });

  it("with a server that signs its certificate itself says so", async () => {
    const own = await startTlsServer(await issue({ names: ["127.0.0.1"] }));
    const { refused } = await refusalOf(kind, {
      url: `postgres://a:b@127.0.0.1:${own}/c?sslmode=verify-full`,
    });
    expect(refused).toMatchObject({ reason: "DEPTH_ZERO_SELF_SIGNED_CERT", isPermanent: true });
    expect(refused.message).toMatch(/`ca` in the TLS options/);
  });

  it("with a certificate for another host says so", async () => {
    const authority = await makeAuthority();
    const own = await startTlsServer(await issue({ authority, names: ["db.example.com"] }));
    const pool = new pg.Pool({ host: "127.0.0.1", port: own, user: "a", ssl: { ca: authority.cert } });
    onTestFinished(() => pool.end());
    const { refused } = await refusalOf(kind, { pool });
    expect(refused).toMatchObject({ reason: "ERR_TLS_CERT_ALTNAME_INVALID", isPermanent: true });
    expect(refused.message).toMatch(/for another host name/);
  });

  it.each([
    ["refuses connections", "postgres://a:b@127.0.0.1:1/c", "ECONNREFUSED 127.0.0.1:1"],
    ["has no address", "postgres://a:b@db.invalid/c", "ENOTFOUND db.invalid"],
  ])("with a server that %s names the error of the connection", async (_, url, reason) => {
    const { refused } = await refusalOf(kind, { url });
    expect(refused).toMatchObject({ reason, effect: "none", isPermanent: false, isOutage: true });
    expect(refused.message).toContain(reason);
  });
});

describe("a pool that the host has ended", () => {
  it("is named, with what to do", async () => {
    const pool = new pg.Pool({ connectionString: urlOf("postgres") });
    await pool.end();
    const { refused } = await refusalOf("webhooks", { pool });
    expect(refused).toMatchObject({ reason: "POOL_ENDED", isPermanent: true, effect: "none" });
    expect(refused.message).toMatch(/Call storage.close\(\) before pool.end\(\)/);
  });
});

describe("a role that lacks privileges", () => {
  const migrate = async (schema: string): Promise<unknown> => {
    const storage = postgresStorage({ url: urlOf("poor"), schema });
    try {
      return await storage.migrate();
    } catch (error) {
      return error;
    } finally {
      await storage.close();
    }
  };
  const grantOf = (refused: unknown): string =>
    /GRANT [A-Z, ]+ ON (?:DATABASE|SCHEMA) \S+ TO \w+/.exec((refused as Error).message)?.[0] ?? "";

  it("is told which one a migration takes, until it has it", async () => {
    await admin.query("CREATE SCHEMA own; GRANT USAGE ON SCHEMA own TO poor");
    const noSchema = await migrate("missing");
    expect(noSchema).toMatchObject({ code: "storage_unavailable", reason: "42501", isPermanent: true });
    expect((noSchema as Error).message).toMatch(/lacks the privilege CREATE on the database postgres/);
    const noTables = await migrate("own");
    expect((noTables as Error).message).toMatch(/lacks the privilege CREATE or USAGE on the schema "own"/);
    await admin.query(grantOf(noTables));
    // It may still create no schema, and does not have to.
    expect(await migrate("own")).toEqual({ version: 1 });
    await admin.query(grantOf(noSchema));
    expect(await migrate("missing")).toEqual({ version: 1 });
    await admin.query("REVOKE CREATE ON DATABASE postgres FROM poor");
  });

  it("can have the schema created by the owner of the database", async () => {
    const refused = (await migrate("made")) as Error;
    const statement = /CREATE SCHEMA "made" AUTHORIZATION poor;/.exec(refused.message)?.[0] ?? "";
    await admin.query(statement);
    expect(await migrate("made")).toEqual({ version: 1 });
  });

  it("is told what a service takes", async () => {
    const storage = postgresStorage({ url: urlOf("postgres"), schema: "others" });
    await storage.migrate();
    await storage.close();
    const { refused } = await refusalOf("webhooks", { url: urlOf("poor"), schema: "others" });
    expect(refused).toMatchObject({ reason: "42501", effect: "none", isPermanent: true });
    expect(refused.message).toMatch(/GRANT USAGE ON SCHEMA/);
  });
});

it("a schema without tables is refused until it is migrated", async () => {
  const schema = "unmigrated";
  const { refused } = await refusalOf("webhooks", { url: urlOf("postgres"), schema });
  expect(refused).toMatchObject({ code: "invalid_option" });
  expect(refused.message).toMatch(
    /the schema unmigrated has no tables of Postbell\. Call storage\.migrate\(\)/,
  );
  const storage = postgresStorage({ url: urlOf("postgres"), schema });
  onTestFinished(() => storage.close());
  expect(await storage.migrate()).toEqual({ version: 1 });
  const { refused: none } = await refusalOf("webhooks", { url: urlOf("postgres"), schema }).catch(() => ({
    refused: undefined,
  }));
  expect(none).toBeUndefined();
});
