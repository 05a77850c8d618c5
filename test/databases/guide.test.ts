import { mkdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { programsOf, run } from "../support/guide-programs.js";
import { guides } from "../support/markdown.js";
import { startDatabase } from "./support/database-server.js";

const programs = guides
  .flatMap(programsOf)
  .filter(({ note, language }) => note === "postgres" && language === "js");

it("runs what the guides do on Postgres: the row of the host and the event are there together", async () => {
  expect(programs.map(({ path }) => path)).toEqual([
    "docs/guides/choose-a-storage.md",
    "docs/guides/outbox.md",
  ]);
  const server = await startDatabase("postgres");
  onTestFinished(() => server.stop());
  if (!("port" in server.address)) throw new Error("Postgres listens on a port");
  const databaseUrl = `postgres://postgres@127.0.0.1:${server.address.port}/postgres`;
  const folder = resolve(import.meta.dirname, "..", ".guides", "postgres");
  mkdirSync(folder, { recursive: true });
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const program of programs)
    expect(await run(program, { folder, redisUrl: "", databaseUrl }, async () => {})).toBe("");
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query(
    "SELECT (SELECT count(*)::int FROM patients) AS patients, (SELECT count(*)::int FROM postbell_outbox) AS events, (SELECT count(*)::int FROM postbell.remembered) AS emitted",
  );
  await client.end();
  expect(rows).toEqual([{ patients: 2, events: 1, emitted: 1 }]);
});
