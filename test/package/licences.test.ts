import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import tsupConfig from "../../tsup.config.js";

interface Locked {
  readonly license?: string;
  readonly dev?: boolean;
  readonly peer?: boolean;
}

const { packages } = JSON.parse(
  readFileSync(resolve(import.meta.dirname, "../../package-lock.json"), "utf8"),
) as { readonly packages: Record<string, Locked> };
const locked = Object.entries(packages).filter(([path]) => path !== "");
const nameOf = (path: string): string => path.slice(path.lastIndexOf("node_modules/") + 13);

/**
 * All packages that a user installs: dependencies with their own, and packages compiled into the
 * build.
 */
const configurations = typeof tsupConfig === "function" ? await tsupConfig({}) : tsupConfig;
const compiledIn = new Set(
  [configurations].flat().flatMap((options) => ("noExternal" in options ? options.noExternal : [])),
);
const shipped = locked.filter(
  ([path, { dev, peer }]) => !(dev || peer) || compiledIn.has(path.replace("node_modules/", "")),
);

const PERMISSIVE = new Set([
  "MIT",
  "ISC",
  "0BSD",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "Apache-2.0",
  "BlueOak-1.0.0",
]);
/** Their package.json states none; their readme does. */
const STATED_ELSEWHERE = new Map([["only", "MIT"]]);
const licenceOf = (path: string, { license }: Locked): string =>
  license ?? STATED_ELSEWHERE.get(nameOf(path)) ?? "unknown";

describe("the licences of what the lockfile names", () => {
  it("are known, and none is of the GPL, AGPL or SSPL", () => {
    expect(locked.length).toBeGreaterThan(300);
    const refused = locked
      .map(([path, entry]) => `${nameOf(path)}: ${licenceOf(path, entry)}`)
      .filter((line) => /\bA?GPL|SSPL|unknown|UNLICENSED|SEE LICENSE/.test(line));
    expect(refused).toEqual([]);
  });

  it("are permissive wherever it reaches a user of the package", () => {
    const names = shipped.map(([path]) => nameOf(path));
    expect(names).toEqual(
      expect.arrayContaining(["sanitize-html", "fastify-plugin", "lru-cache", "p-queue"]),
    );
    expect(names).not.toContain("vitest");
    const refused = shipped
      .map(([path, entry]) => `${nameOf(path)}: ${licenceOf(path, entry)}`)
      .filter((line) => !PERMISSIVE.has(line.split(": ")[1] ?? ""));
    expect(refused).toEqual([]);
  });
});
