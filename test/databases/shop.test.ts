/** The shop of the guide: strict TypeScript, Drizzle, Postgres and zod. */

import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compile, programsOf } from "../support/guide-programs.js";
import { guides } from "../support/markdown.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

const [shop] = guides
  .flatMap(programsOf)
  .filter(({ note, language }) => note === "postgres" && language === "ts");
if (shop === undefined) throw new Error("the guide has no shop");
const folder = resolve(import.meta.dirname, "..", ".guides", "shop");
const surroundings = { folder, redisUrl: "" };

beforeAll(() => mkdirSync(folder, { recursive: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the types of the shop", () => {
  it("takes at most 40 lines, without an error of the compiler", async () => {
    expect(shop.code.trim().split("\n").length).toBeLessThanOrEqual(40);
    expect(await compile(shop, surroundings)).toBe("");
  });

  it.each([
    ["a misspelt event type", 'type: "order.paid"', 'type: "order.payed"', /"order.payed"/],
    [
      "a field of the wrong type",
      "data: order }",
      'data: { id: "A-1", total: "42" } }',
      /'string' is not assignable to type 'number'/,
    ],
    ["a missing field", "data: order }", 'data: { id: "A-1" } }', /'total' is missing/],
    [
      "Drizzle's own transaction",
      "transaction: fromDrizzle(tx)",
      "transaction: tx",
      /not assignable to type 'HostTransaction/,
    ],
    [
      "an option that does not exist",
      "transaction: fromDrizzle(tx)",
      "tx: fromDrizzle(tx)",
      /'tx' does not exist/,
    ],
  ])("refuses %s", async (_, right, wrong, message) => {
    expect(shop.code).toContain(right);
    const output = await compile({ ...shop, code: shop.code.replace(right, wrong) }, surroundings);
    expect(output).toMatch(message);
    expect(output.match(/error TS/g)).toHaveLength(1);
  });
});

/** Registers a subscriber, pays three times, and prints what has arrived. Two are rolled back. */
const VISIT = `
import { createServer } from "node:http";
const arrived = [];
const endpoint = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  arrived.push({ headers: request.rawHeaders, body });
  response.end();
}).listen(0, "127.0.0.1");
await new Promise((done) => endpoint.once("listening", done));
const url = "http://127.0.0.1:" + endpoint.address().port + "/hooks";
await webhooks.registrations.create({ subscriber: { id: "key-1", account: "shop-7" }, url });
await webhooks.start();
await payOrder({ id: "A-1", total: 4200 });
const again = await payOrder({ id: "A-1", total: 4200 }).catch((error) => error.cause.code);
const invalid = await payOrder({ id: "A-2", total: -1 }).catch((error) => error.code + " " + error.field);
await webhooks.idle();
const { rows } = await pool.query("SELECT id FROM orders");
await webhooks.stop();
endpoint.close();
endpoint.closeAllConnections();
await storage.close();
await pool.end();
console.log(JSON.stringify({ again, invalid, rows, arrived }));
`;

describe("the shop", () => {
  let server: DatabaseServer;
  beforeAll(async () => {
    server = await startDatabase("postgres");
  });
  afterAll(() => server.stop());

  it("delivers the order that is committed, and nothing of those that are rolled back", async () => {
    if (!("port" in server.address)) throw new Error("Postgres listens on a port");
    const { code } = await transform(shop.code + VISIT, { loader: "ts", format: "esm", target: "node20" });
    const file = join(folder, "shop.mjs");
    writeFileSync(file, code);
    const { stdout } = await promisify(execFile)(process.execPath, [file], {
      env: { ...process.env, DATABASE_URL: `postgres://postgres@127.0.0.1:${server.address.port}/postgres` },
    });
    const { again, invalid, rows, arrived } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
    expect([again, invalid, rows]).toEqual(["23505", "invalid_argument data.total", [{ id: "A-1" }]]);
    expect(arrived).toHaveLength(1);
    expect(JSON.parse(arrived[0].body)).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      type: "order.paid",
      timestamp: expect.stringMatching(/^20.*Z$/),
      data: { id: "A-1", total: 4200 },
    });
    if (process.env["SHOW"]) writeFileSync(process.env["SHOW"], JSON.stringify(arrived, null, 2));
  });
});
