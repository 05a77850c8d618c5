import { afterAll, beforeAll } from "vitest";
import { postgresStorage } from "../../storage/postgres/index.js";
import { testHookContexts } from "../support/hook-context-suite.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

let server: DatabaseServer;

beforeAll(async () => {
  server = await startDatabase("postgres");
});
afterAll(() => server.stop());

testHookContexts("Postgres", async () => {
  if (!("port" in server.address)) throw new Error("Postgres listens on a port.");
  const url = `postgres://postgres@127.0.0.1:${server.address.port}/postgres`;
  const storage = postgresStorage({ url, time: "clock" });
  await storage.migrate();
  return storage;
});
