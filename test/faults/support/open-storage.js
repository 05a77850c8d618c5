// Opens a storage in a process of its own, from the built package. See `StorageAddress`.

const hasNodeSqlite = process.getBuiltinModule?.("node:sqlite") !== undefined;

/** @param {string} file */
export async function openDatabase(file) {
  if (hasNodeSqlite) return new (process.getBuiltinModule("node:sqlite").DatabaseSync)(file);
  return new (await import("libsql")).default(file);
}

/** The same database, except that `count` runs each of its statements. */
const countStatements = (database, count) => ({
  close: () => database.close(),
  exec: (text) => count(() => database.exec(text)),
  prepare(text) {
    const statement = database.prepare(text);
    return {
      all: (...values) => count(() => statement.all(...values)),
      run: (...values) => count(() => statement.run(...values)),
    };
  },
});

/** A pool of one connection, so that statements have an order. */
async function openPool(url, count) {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on("error", () => {});
  pool.on("connect", (client) => {
    client.on("error", () => {});
    const query = client.query.bind(client);
    client.query = (...values) => count(() => query(...values));
  });
  return pool;
}

const OPEN = {
  async redis({ url, prefix, durability = "standard" }) {
    return (await import("postbell/redis")).redisStorage({ url, prefix, durability });
  },
  async sqlite({ file }, count) {
    const { sqliteStorage } = await import("postbell/sqlite");
    const database = await openDatabase(file);
    const storage = sqliteStorage({ database: count ? countStatements(database, count) : database });
    let isOpen = true;
    const close = async () => {
      await storage.close();
      if (isOpen) database.close();
      isOpen = false;
    };
    return { ...storage, close };
  },
  async postgres({ url, schema, connections = "session" }, count) {
    const { postgresStorage } = await import("postbell/postgres");
    if (!count) return postgresStorage({ url, schema, connections });
    const pool = await openPool(url, count);
    const storage = postgresStorage({ pool, schema });
    const close = async () => {
      await storage.close();
      await pool.end();
    };
    return { ...storage, close };
  },
};

/**
 * @param {import("./storage-under-test.js").StorageAddress} address
 * @param {{ count?: (run: () => unknown) => unknown }} options `count` runs each statement of SQL
 */
export const openStorage = (address, { count } = {}) => OPEN[address.kind](address, count);
