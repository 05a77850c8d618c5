/** The commands for databases of storages. What needs a Postgres server is in test/databases. */

import { execFile } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import Database from "libsql";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { main } from "../../../adapters/cli/command-line.js";
import { createWebhooks } from "../../../src/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { sqliteStorage } from "../../../storage/sqlite/index.js";
import { fileLeaks } from "../../support/leak-check.js";

const COMMAND = join(import.meta.dirname, "../../../dist/cli.js");
const EVENT = { type: "patient.updated", account: "clinic", resource: { resourceType: "Patient" } } as const;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postbell-cli-databases-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function run(...args: readonly string[]) {
  const [out, errors] = [new PassThrough(), new PassThrough()];
  const code = await main(args, {
    ...{ stdin: Readable.from([]), stdout: out, stderr: errors, env: {} },
    openStorage: () => memoryStorage(),
    signal: new AbortController().signal,
  });
  const textOf = async (stream: PassThrough): Promise<string> =>
    Buffer.concat(await stream.end().toArray()).toString();
  const ended = { code, out: await textOf(out), errors: await textOf(errors) };
  fileLeaks.note(`postbell ${args[0]}`, ended);
  return ended;
}

/** A service whose endpoint is registered, and which delivers nothing because it is not started. */
function openService(file: string) {
  const database = new Database(file);
  const storage = sqliteStorage({ database });
  onTestFinished(async () => {
    await storage.close();
    database.close();
  });
  const access = { authenticate: () => null, canRead: () => true };
  const webhooks = createWebhooks({ storage, access });
  const register = async (): Promise<string> => {
    const url = "https://subscriber.example/hook";
    return (await webhooks.registrations.create({ subscriber: { id: "key", account: "clinic" }, url }))
      .webhook.id;
  };
  const countPending = async (webhookId: string): Promise<number> => {
    let [count, cursor]: [number, string | undefined] = [0, undefined];
    do {
      const page = await webhooks.deliveries.list({ webhookId, limit: 100, ...(cursor && { cursor }) });
      count += page.items.length;
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    return count;
  };
  return { storage, webhooks, register, countPending };
}

describe("postbell backup", () => {
  it("copies all that was stored when it began, while another process keeps writing", async () => {
    const [file, copy] = [join(folder, "own.db"), join(folder, "copy.db")];
    const { webhooks, register } = openService(file);
    const webhookId = await register();
    for (let stored = 0; stored < 50; stored++) await webhooks.emit(EVENT);

    let ended: { code: unknown; out: string } | undefined;
    const running = new Promise<void>((done) => {
      execFile(process.execPath, [COMMAND, "backup", file, copy, "--json"], (error, out) => {
        ended = { code: error ? error.code : 0, out };
        done();
      });
    });
    let written = 50;
    while (ended === undefined) {
      await webhooks.emit(EVENT);
      written++;
    }
    await running;
    expect(ended).toMatchObject({ code: 0 });
    expect(JSON.parse(ended.out)).toEqual({ output: copy, bytes: statSync(copy).size });

    const restored = openService(copy);
    expect(await restored.storage.check()).toMatchObject({ ok: true });
    const count = await restored.countPending(webhookId);
    expect(count).toBeGreaterThanOrEqual(50);
    expect(count).toBeLessThanOrEqual(written);
    await restored.webhooks.emit(EVENT);
    expect(await restored.countPending(webhookId)).toBe(count + 1);
  });

  it("makes a copy that only its owner may read, and says how large it is", async () => {
    const [file, copy] = [join(folder, "own.db"), join(folder, "copy.db")];
    await openService(file).register();
    const { code, out } = await run("backup", file, copy);
    expect(code).toBe(0);
    expect(out).toBe(`${copy}: ${statSync(copy).size} bytes.\n`);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).not.toContain("copy.db.part");
  });

  it("never writes over a file, nor beside the log of a deleted one", async () => {
    const file = join(folder, "own.db");
    await openService(file).register();
    for (const name of ["taken.db", "deleted.db-wal"]) writeFileSync(join(folder, name), "mine");
    for (const to of ["own.db", "taken.db", "deleted.db"]) {
      expect(await run("backup", file, join(folder, to))).toMatchObject({
        code: 1,
        errors: expect.stringMatching(/exists\. Remove it, or give another file to write/),
      });
    }
    expect(existsSync(join(folder, "deleted.db"))).toBe(false);
  });

  it("follows no link, neither to the file to copy nor to the file to write", async () => {
    const [file, target] = [join(folder, "own.db"), join(folder, "target.db")];
    await openService(file).register();
    const link = join(folder, "link.db");
    symlinkSync(file, link);
    expect(await run("backup", link, target)).toMatchObject({
      code: 2,
      errors: expect.stringMatching(/must not be a symbolic link/),
    });
    for (const name of ["copy.db", "copy.db-wal"]) {
      const dangling = join(folder, name);
      symlinkSync(target, dangling);
      expect(await run("backup", file, join(folder, "copy.db"))).toMatchObject({
        code: 1,
        errors: expect.stringMatching(/exists\. Remove it/),
      });
      unlinkSync(dangling);
    }
    // Whatever an interrupted backup, or somebody else, has left where the copy is written.
    for (const suffix of ["", "-journal", "-wal"]) symlinkSync(target, join(folder, `copy.db.part${suffix}`));
    expect(await run("backup", file, join(folder, "copy.db"))).toMatchObject({ code: 0 });
    expect(existsSync(target)).toBe(false);
  });

  it("leaves nothing behind when it fails", async () => {
    writeFileSync(join(folder, "damaged.db"), "this is no database, whatever its name says. ".repeat(100));
    writeFileSync(join(folder, "empty.db"), "");
    for (const name of ["damaged.db", "empty.db", "none.db"]) {
      const { code, errors } = await run("backup", join(folder, name), join(folder, "copy.db"));
      expect(code).toBe(1);
      expect(errors).toMatch(/not a database|damaged|no tables|There is no file/);
    }
    expect(readdirSync(folder).sort()).toEqual(["damaged.db", "empty.db"]);
  });

  it("refuses wrong arguments", async () => {
    expect(await run("backup")).toMatchObject({
      code: 2,
      errors: expect.stringMatching(/to copy is missing/),
    });
    expect(await run("backup", "a")).toMatchObject({ code: 2, errors: expect.stringMatching(/to write/) });
    expect(await run("backup", "a", "b", "c")).toMatchObject({
      code: 2,
      errors: expect.stringMatching(/unexpected argument: 'c'/),
    });
  });
});

describe("postbell migrate", () => {
  it("prints the SQL without a server", async () => {
    const { code, out } = await run("migrate", "--print", "--schema", "bell");
    expect(code).toBe(0);
    expect(out).toMatch(/^-- Layout 1\nBEGIN;\n.*CREATE SCHEMA "bell";.*\n[\s\S]*\nCOMMIT;\n$/);
    const { schema, migrations } = JSON.parse((await run("migrate", "--print", "--json")).out);
    expect(schema).toBe("postbell");
    expect(migrations[0]).toEqual({ version: 1, sql: expect.stringMatching(/"postbell"/) });
  });

  it("refuses wrong arguments", async () => {
    const refusals: readonly (readonly [RegExp, ...string[]])[] = [
      [/--postgres is missing, and POSTBELL_POSTGRES is not set/],
      [/a postgres:\/\/ URL/, "--postgres", "redis://localhost"],
      [/the name of a schema/, "--print", "--schema", 'a"; DROP'],
      [/unexpected argument: 'now'/, "now"],
    ];
    for (const [message, ...args] of refusals) {
      expect(await run("migrate", ...args)).toMatchObject({
        code: 2,
        errors: expect.stringMatching(message),
      });
    }
  });
});
