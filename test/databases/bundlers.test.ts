/** The same hosts as in test/package/bundlers.thorough.test.ts, on Postgres. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBundledHost, esbuildCases, webpackCases } from "../support/bundled-host.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

let host: ReturnType<typeof createBundledHost>;
let server: DatabaseServer;
let url: string;

beforeAll(async () => {
  host = createBundledHost();
  server = await startDatabase("postgres");
  if (!("port" in server.address)) throw new Error("Postgres has no port");
  url = `postgres://postgres@${server.address.host}:${server.address.port}/postgres`;
});
afterAll(async () => {
  host.remove();
  await server.stop();
});

describe("a bundled host uses Postgres", () => {
  it.each(esbuildCases)("by esbuild as $format of $source with drivers $drivers", async (settings) => {
    const file = await host.withEsbuild(settings);
    expect(await host.run(file, { postgres: url })).toEqual(["postgres: delivered"]);
  });

  it.each(webpackCases)("by webpack of $source with drivers as $drivers", async (settings) => {
    const file = await host.withWebpack(settings);
    expect(await host.run(file, { postgres: url })).toEqual(["postgres: delivered"]);
  });
});
