import { describe, expect, it } from "vitest";
import { importFromPackage } from "../../src/core/import-package.js";

const MISSING = { message: "It needs the package driver: npm install driver.", field: "url" };
const importDriver = (module: unknown): Promise<unknown> =>
  importFromPackage(() => Promise.resolve(module), "Driver", MISSING);

class Driver {}
/** A CommonJS package that exports a class with itself and others as its properties, as ioredis. */
const classWithNames = Object.assign(class Base {}, { Driver });
/** A CommonJS package that exports a function, as sharp. */
const tool = (): string => "tool";

describe("a package of the host", () => {
  it.each<[string, unknown]>([
    ["an ES module, or CommonJS whose names Node detects", { Driver, default: { Driver } }],
    ["Node with names it does not detect", { default: { Driver } }],
    ["webpack with a package that is a class", { default: classWithNames }],
    [
      "esbuild with a package that calls itself an ES module",
      { default: { __esModule: true, default: { Driver } } },
    ],
    [
      "webpack with a package that calls itself an ES module",
      { default: { __esModule: true, Driver, default: {} } },
    ],
    ["a bundler without interop", { Driver }],
    ["a bundler without interop, and a package that is a class", classWithNames],
  ])("gives its export in the form of %s", async (_, module) => {
    expect(await importDriver(module)).toBe(Driver);
  });

  it.each<[string, unknown]>([
    ["Node and webpack", { default: tool }],
    ["esbuild", { default: { __esModule: true, default: tool } }],
    ["a bundler without interop", tool],
  ])("gives itself if it is a function, in the form of %s", async (_, module) => {
    expect(await importFromPackage(() => Promise.resolve(module), "default", MISSING)).toBe(tool);
  });

  it("that is not installed is named, with the command that installs it", async () => {
    const cause = new Error("Cannot find package");
    await expect(importFromPackage(() => Promise.reject(cause), "Driver", MISSING)).rejects.toMatchObject({
      code: "invalid_option",
      field: "url",
      message: MISSING.message,
      cause,
    });
  });

  it.each<[string, unknown, string]>([
    ["an empty stub", {}, "it exports nothing"],
    ["a stub with other names", { default: { Other: 1 } }, "it exports default, Other"],
    ["a stub that is null", null, "it exports nothing"],
  ])(
    "that a bundler replaced by %s is not called: the error says what was found",
    async (_, module, found) => {
      await expect(importDriver(module)).rejects.toMatchObject({
        code: "invalid_option",
        message: expect.stringContaining(found),
      });
    },
  );
});
