import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";

interface Locked {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly peer?: boolean;
}

const root = resolve(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(resolve(root, path), "utf8");

const { packages } = JSON.parse(read("package-lock.json")) as { readonly packages: Record<string, Locked> };
const locked = Object.entries(packages).filter(([path]) => path !== "");
const nameOf = (path: string): string => path.slice(path.lastIndexOf("node_modules/") + 13);

/** esbuild names each file of another package that it compiles in, except in the portal's page. */
const compiledIn = new Set([
  ...["preact", "diff", "lucide-preact", "regexparam"],
  ...readdirSync(resolve(root, "dist"))
    .filter((name) => /\.c?js$/.test(name))
    .flatMap((name) => [...read(`dist/${name}`).matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)\//gm)])
    .map(([, name = ""]) => name),
]);
/**
 * All packages that a user installs: dependencies with their own, and packages compiled into the
 * build.
 */
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
/** Their package.json states none; their readme or licence file does. */
const STATED_ELSEWHERE = new Map(
  ["busboy", "dicer", "humanize-number", "only", "streamsearch"].map((name) => [name, "MIT"]),
);
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

  it("are in the notices if the built files contain the package, with its version", () => {
    const noted = [...read("THIRD_PARTY_NOTICES.md").matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    const expected = [...compiledIn].map((name) => `${name} ${packages[`node_modules/${name}`]?.version}`);
    expect(expected).toContain("p-queue 9.3.5");
    expect(new Set(noted)).toEqual(new Set(expected));
  });

  it("are permissive wherever it reaches a user of the package", () => {
    const names = shipped.map(([path]) => nameOf(path));
    expect(names).toEqual(expect.arrayContaining(["htmlparser2", "fastify-plugin", "lru-cache", "p-queue"]));
    expect(names).not.toContain("vitest");
    const refused = shipped
      .map(([path, entry]) => `${nameOf(path)}: ${licenceOf(path, entry)}`)
      .filter((line) => !PERMISSIVE.has(line.split(": ")[1] ?? ""));
    expect(refused).toEqual([]);
  });
});
