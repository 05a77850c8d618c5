import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installPackedPackage } from "../support/packed-package.js";

const root = resolve(import.meta.dirname, "../..");
const { name, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  name: string;
  exports: Record<string, unknown>;
};
const entries = Object.keys(exports)
  .filter((path) => path !== "./package.json")
  .map((path) => name + path.slice(1));

/**
 * A consumer's folder with the packed tarball unpacked into it, and what the package needs at run
 * time beside it.
 */
let consumer: string;
let tarball: string;

beforeAll(() => {
  // With the peers that two entries cannot be loaded without.
  ({ folder: consumer, tarball } = installPackedPackage("@opentelemetry/api", "prom-client"));
});

afterAll(() => rmSync(consumer, { recursive: true, force: true }));

// A plain Node process: inside Vitest `require` exists in ESM too, which hides broken bundles.
const node = (...args: string[]): string =>
  execFileSync(process.execPath, args, { cwd: consumer, encoding: "utf8" }).trim();

describe("the packed tarball", () => {
  it.each(entries)("gives the same names to import and to require: %s", (entry) => {
    const specifier = JSON.stringify(entry);
    const esm = node(
      "--input-type=module",
      "-e",
      `console.log(Object.keys(await import(${specifier})).sort().join())`,
    );
    const cjs = node("-e", `console.log(Object.keys(require(${specifier})).sort().join())`);
    expect(cjs).toBe(esm);
    expect(esm).not.toBe("");
  });

  it("delivers from CommonJS, where require cannot load ES modules", () => {
    const script = `
      const { createWebhooks } = require("postbell");
      const { memoryStorage } = require("postbell/memory");
      const send = async () => ({ kind: "response", status: 200, headers: {}, body: new Uint8Array(0), complete: true });
      const webhooks = createWebhooks({ storage: memoryStorage(), access: { authenticate: () => null, canRead: () => true }, delivery: { send } });
      (async () => {
        const { webhook } = await webhooks.registrations.create({ subscriber: { id: "k", account: "a" }, url: "https://example.com/" });
        await webhooks.start();
        await webhooks.emit({ type: "patient.created", account: "a", resource: { resourceType: "Patient" } });
        await webhooks.idle();
        const { items: deliveries } = await webhooks.deliveries.list({ webhookId: webhook.id });
        await webhooks.stop();
        console.log(deliveries.map(({ state }) => state).join());
      })();`;
    expect(node("--no-experimental-require-module", "-e", script)).toBe("delivered");
  });

  it("has one class of errors for all entries, both module systems and other copies", () => {
    const modules = join(consumer, "node_modules");
    cpSync(join(modules, name), join(modules, "copy"), { recursive: true });
    const refusing = {
      postbell: "createWebhooks",
      "postbell/memory": "memoryStorage",
      "postbell/receiver": "createReceiver",
      "postbell/images": "sharpImages",
      "postbell/postgres": "postgresStorage",
      "./node_modules/copy/dist/memory.js": "memoryStorage",
      "./node_modules/copy/dist/memory.cjs": "memoryStorage",
    };
    const judge = `
      const judge = async (load, { PostbellError, isPostbellError }) => {
        for (const [entry, call] of Object.entries(${JSON.stringify(refusing)})) {
          const module = await load(entry);
          try {
            module[call]({ nonsense: 1 });
          } catch (error) {
            const answers = [error instanceof PostbellError, isPostbellError(error, "invalid_option")];
            console.log(entry, error.constructor.name, ...answers);
          }
        }
      };`;
    const expected = Object.keys(refusing).map((entry) => `${entry} PostbellError true true`);
    const esm = `${judge} await judge((entry) => import(entry), await import("postbell"));`;
    const cjs = `${judge}
      const load = (entry) => entry.endsWith(".js") ? import(entry) : require(entry);
      void judge(load, require("postbell"));`;
    expect(node("--input-type=module", "-e", esm).split("\n")).toEqual(expected);
    expect(node("-e", cjs).split("\n")).toEqual(expected);
  });

  it.each([
    ["postbell/opentelemetry", "@opentelemetry", "@opentelemetry/api"],
    ["postbell/prometheus", "prom-client", "prom-client"],
  ])("needs the peer of %s for that entry alone, which says what is missing", (entry, folder, peer) => {
    const installed = join(consumer, "node_modules", folder);
    // prom-client needs the API of OpenTelemetry, too.
    const others = entries.filter((other) => ![entry, "postbell/prometheus"].includes(other));
    renameSync(installed, `${installed}-away`);
    try {
      const script = `
        for (const entry of ${JSON.stringify(others)}) await import(entry);
        console.log(await import("${entry}").catch(({ code, message }) => code + " " + message));`;
      const printed = node("--input-type=module", "-e", script);
      expect(printed).toMatch(/^ERR_MODULE_NOT_FOUND /);
      expect(printed).toContain(`'${peer}'`);
    } finally {
      renameSync(`${installed}-away`, installed);
    }
  });

  it("holds the build, the licence and the notes", () => {
    expect(packedFiles()).toEqual(
      expect.arrayContaining([
        ...["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "THIRD_PARTY_NOTICES.md"],
        ...["dist/index.js", "dist/index.cjs"],
      ]),
    );
  });

  it("holds no source, test, guide, example, picture or source map, and no path of a machine", () => {
    const files = packedFiles();
    const unwanted = /^(?:src|test|bench|scripts|docs|examples)\/|\.(?:map|png)$/;
    expect(files.filter((file) => unwanted.test(file))).toEqual([]);
    const built = files.filter((file) => /\.(?:c?js|d\.c?ts)$/.test(file));
    const leaks = built.filter((file) => {
      const text = readFileSync(join(consumer, "node_modules", name, file), "utf8");
      return text.includes(root) || text.includes("sourceMappingURL");
    });
    expect(built.length).toBeGreaterThan(100);
    expect(leaks).toEqual([]);
  });
});

/** The paths of the tarball, without the folder that npm puts around them. */
const packedFiles = (): string[] =>
  execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" })
    .trim()
    .split("\n")
    .map((file) => file.replace(/^package\//, ""));
