/** Which driver opens a file, in a folder where some are installed, and who may read the file. */

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createWebhooks } from "../../../src/index.js";
import { sqliteStorage } from "../../../storage/sqlite/index.js";
import { installPackedPackage } from "../../support/packed-package.js";
import { hasNodeSqlite } from "../../support/sqlite.js";

const libsql = createRequire(import.meta.url).resolve("libsql");

describe("a file is opened by", () => {
  let consumer: string;
  beforeAll(() => {
    ({ folder: consumer } = installPackedPackage());
  });
  afterAll(() => rmSync(consumer, { recursive: true }));
  afterEach(() => {
    for (const name of ["libsql", "better-sqlite3"])
      rmSync(join(consumer, "node_modules", name), { recursive: true, force: true });
  });

  function install(name: string, code: string): void {
    const folder = join(consumer, "node_modules", name);
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name, main: "index.js" }));
    writeFileSync(join(folder, "index.js"), code);
  }
  /** A driver that prints its name when it opens a file. */
  const installWorking = (name: string): void =>
    install(
      name,
      `module.exports = class extends require(${JSON.stringify(libsql)}) {
        constructor(path) { super(path); if (path !== ":memory:") console.log("${name}"); }
      };`,
    );
  const installBroken = (name: string): void =>
    install(name, `module.exports = class { constructor() { throw new Error("built for another Node"); } };`);

  const HIDE = `const own = process.getBuiltinModule;
    process.getBuiltinModule = (name) => name === "node:sqlite" ? undefined : own(name);`;
  const USE = `const storage = sqliteStorage({ file: "own.db" });
    storage.check().then(({ ok }) => console.log(ok), ({ code, message }) => console.log(code + ": " + message))
      .then(() => storage.close());`;
  const HOSTS = {
    mjs: `import { sqliteStorage } from "postbell/sqlite"; ${USE}`,
    cjs: `const { sqliteStorage } = require("postbell/sqlite"); ${USE}`,
  };

  /** Node 21 and 22.0 to 22.2 lack the function. */
  const REMOVE = "process.getBuiltinModule = undefined;";

  function run(file: string, { before = HIDE } = {}): string {
    const options = before === "" ? [] : ["--import", `data:text/javascript,${encodeURIComponent(before)}`];
    return execFileSync(process.execPath, [...options, file], { cwd: consumer, encoding: "utf8" });
  }
  function runHost(form: keyof typeof HOSTS, options?: { readonly before: string }): string {
    writeFileSync(join(consumer, `host.${form}`), HOSTS[form]);
    return run(`host.${form}`, options);
  }

  it.each(["mjs", "cjs"] as const)("libsql, or else better-sqlite3, in a host of form %s", (form) => {
    installWorking("better-sqlite3");
    expect(runHost(form)).toBe("better-sqlite3\ntrue\n");
    installWorking("libsql");
    expect(runHost(form)).toBe("libsql\ntrue\n");
  });

  it("the next driver if one is installed that does not work", () => {
    installBroken("libsql");
    installWorking("better-sqlite3");
    expect(runHost("mjs")).toBe("better-sqlite3\ntrue\n");
  });

  it("the SQLite of Node where there is one, whatever is installed", () => {
    installWorking("libsql");
    expect(runHost("mjs", { before: "" })).toBe(hasNodeSqlite ? "true\n" : "libsql\ntrue\n");
  });

  it("an installed driver in a Node that cannot say which modules it has", () => {
    installWorking("libsql");
    expect(runHost("mjs", { before: REMOVE })).toBe("libsql\ntrue\n");
  });

  it("nobody without a driver, and the error names the package to install", () => {
    expect(runHost("mjs")).toBe(
      "invalid_option: A SQLite file needs a driver, and this version of Node has none. Install one: npm install libsql. Or use Node 22.13 or newer.\n",
    );
    installBroken("better-sqlite3");
    expect(runHost("cjs")).toMatch(/better-sqlite3 is installed, but cannot be loaded\. Install one: npm/);
  });

  it.each(["esm", "cjs"] as const)(
    "the installed driver in a host that esbuild bundles as %s",
    async (format) => {
      installWorking("libsql");
      writeFileSync(join(consumer, "host.mjs"), HOSTS.mjs);
      const outfile = join(consumer, `bundle.${format === "esm" ? "mjs" : "cjs"}`);
      const { warnings } = await build({
        ...{ entryPoints: [join(consumer, "host.mjs")], outfile, format, bundle: true },
        ...{ platform: "node", target: "node20.19", logLevel: "silent" },
      });
      expect(warnings).toEqual([]);
      expect(run(outfile)).toBe("libsql\ntrue\n");
    },
  );
});

describe("a file", () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "postbell-modes-"));
    file = join(folder, "own.db");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const modeOf = (path: string): number => statSync(path).mode & 0o777;
  async function emit(): Promise<void> {
    const storage = sqliteStorage({ file });
    try {
      const access = { authenticate: () => null, canRead: () => true };
      const webhooks = createWebhooks({ storage, access });
      const resource = { resourceType: "Patient", id: "1" } as const;
      await webhooks.emit({ type: "patient.updated", account: "clinic", resource });
      for (const suffix of ["-wal", "-shm"]) expect(modeOf(file + suffix)).toBe(modeOf(file));
    } finally {
      await Promise.all([storage.close(), storage.close()]);
    }
  }

  it("can be read by its owner only, and so can the files beside it", async () => {
    await emit();
    expect(modeOf(file)).toBe(0o600);
    // The file itself has everything: the log is empty or gone.
    const log = `${file}-wal`;
    expect(existsSync(log) ? statSync(log).size : 0).toBe(0);
  });

  it("that exists keeps its mode", async () => {
    writeFileSync(file, "");
    chmodSync(file, 0o640);
    await emit();
    expect(modeOf(file)).toBe(0o640);
  });

  it.each(["", "-wal", "-shm", "-journal"])(
    "is refused if own.db%s is a link, whether its target exists or not",
    async (suffix) => {
      const target = join(folder, "target");
      symlinkSync(target, file + suffix);
      const refused = {
        code: "invalid_option",
        field: "file",
        message: expect.stringContaining(
          `must not be a symbolic link, nor may the files that SQLite keeps next to it ("${file}${suffix}" is one)`,
        ),
      };
      await expect(emit()).rejects.toMatchObject(refused);
      expect(existsSync(target)).toBe(false);
      writeFileSync(target, "");
      await expect(emit()).rejects.toMatchObject(refused);
      expect(statSync(target).size).toBe(0);
      expect(lstatSync(file + suffix).isSymbolicLink()).toBe(true);
    },
  );

  it.each(["a\ud800.db", "a\u0000.db", ""])("whose path is %j is refused", (path) => {
    expect(() => sqliteStorage({ file: path })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "file" }),
    );
  });

  it("whose folder does not exist, or that is a folder, is reported as such", async () => {
    const message = "The SQLite file cannot be opened. Create its folder, and let this process write to it.";
    const unavailable = { code: "storage_unavailable", message };
    for (file of [join(folder, "none/own.db"), folder])
      await expect(emit()).rejects.toMatchObject(unavailable);
  });
});
