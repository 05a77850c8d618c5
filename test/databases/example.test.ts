import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startDatabase } from "./support/database-server.js";

const root = resolve(import.meta.dirname, "..", "..");

it("runs the example on Postgres: what is rolled back is not emitted", async () => {
  const server = await startDatabase("postgres");
  onTestFinished(() => server.stop());
  if (!("port" in server.address)) throw new Error("Postgres listens on a port");
  const output = execFileSync(process.execPath, [join(root, "examples", "outbox.js"), "--once"], {
    encoding: "utf8",
    env: { ...process.env, DATABASE_URL: `postgres://postgres@127.0.0.1:${server.address.port}/postgres` },
  });
  expect(output).toMatch(/On Postgres\.[\s\S]*Outbox: 2 emitted, 0 waiting, 0 parked\.\nDone: /);
});
