import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startDatabase } from "./support/database-server.js";

const root = resolve(import.meta.dirname, "..", "..");

/** Runs an example to its end on a Postgres of its own. */
async function runOnPostgres(name: string): Promise<string> {
  const server = await startDatabase("postgres");
  onTestFinished(() => server.stop());
  if (!("port" in server.address)) throw new Error("Postgres listens on a port");
  return execFileSync(process.execPath, [join(root, "examples", name), "--once"], {
    encoding: "utf8",
    env: { ...process.env, DATABASE_URL: `postgres://postgres@127.0.0.1:${server.address.port}/postgres` },
  });
}

it("runs the example on Postgres: what is rolled back is not emitted", async () => {
  expect(await runOnPostgres("outbox.js")).toMatch(
    /On Postgres\.[\s\S]*Outbox: 2 emitted, 0 waiting, 0 parked\.\nDone: /,
  );
});

it("runs the whole host: Postgres, the outbox, Redis and an orderly stop", async () => {
  expect(await runOnPostgres("production.js")).toMatch(/Saved and delivered: p1, p2\.\nStopped\.\n$/);
});

it("loses nothing to kill -9 with the storage on Postgres, and sends nothing that was rolled back", async () => {
  expect(await runOnPostgres("postgres.js")).toMatch(
    /grace, killed before the commit: SIGKILL\njoan, killed after the commit: SIGKILL\nmary: 204\nDelivered: ada, joan, mary\. Sent for what was not committed: nothing\.\n$/,
  );
});

it("runs a shop with its own events and a clinic in one process, each with its own bytes", async () => {
  const output = await runOnPostgres("shop-and-clinic.js");
  const [, shop = "", clinic = ""] = output.split(/^--- .*\n/m);
  const bodies = [shop, clinic].map((request) => JSON.parse(request.split("\n\n")[1] ?? "") as unknown);
  expect(bodies).toEqual([
    {
      id: expect.any(String),
      type: "order.paid",
      timestamp: expect.any(String),
      data: { order: "7", total: 42 },
    },
    { id: expect.any(String), timestamp: expect.any(String), event: expect.any(Object) },
  ]);
  expect(clinic).toMatch(/"hub\.event":"patient\.created".*"resourceType":"Bundle".*"family":"Chalmers"/);
  expect(shop).not.toMatch(/hub\.|Bundle|resourceType/);
  expect([shop, clinic].map((request) => /^webhook-signature: v1,/m.test(request))).toEqual([true, false]);
});
