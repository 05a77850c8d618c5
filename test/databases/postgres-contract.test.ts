/** The contracts of storage and content store on Postgres, over two pools, like two processes. */

import pg from "pg";
import { afterAll, beforeAll, describe, onTestFinished, test } from "vitest";
import { contentStoreContract, storageContract } from "../../src/testing/index.js";
import { postgresStorage } from "../../storage/postgres/index.js";
import { hostileRequestsContract } from "../contracts/hostile-requests.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

let server: DatabaseServer;
let admin: pg.Pool;
let made = 0;

beforeAll(async () => {
  server = await startDatabase("postgres");
  admin = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 1 });
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

const createPair = (connections: "session" | "transaction") => async () => {
  const schema = `contract_${++made}`;
  const pools = [1, 2].map(
    () =>
      new pg.Pool({
        ...server.address,
        user: "postgres",
        database: "postgres",
        max: 4,
        pipeline: connections === "session",
      }),
  );
  const [storage, peer] = pools.map((pool) => postgresStorage({ pool, schema, connections, time: "clock" }));
  if (!storage || !peer) throw new Error("two pools make two storages");
  await storage.migrate();
  return {
    storage,
    peer,
    destroy: async () => {
      await Promise.all(pools.map((pool) => pool.end()));
      await admin.query(`DROP SCHEMA "${schema}" CASCADE`);
    },
  };
};

describe("with connections of its own, the contracts hold:", () => {
  storageContract({ test, create: createPair("session") });
  contentStoreContract({ test, create: createPair("session") });
});

describe("under the registration API", () => {
  hostileRequestsContract(async () => {
    const { storage, destroy } = await createPair("session")();
    onTestFinished(destroy);
    return storage;
  });
});

describe("behind a pooler of transactions, the contracts hold:", () => {
  storageContract({ test, create: createPair("transaction"), hints: false, seeds: [6, 7] });
});
