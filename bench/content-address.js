// Opens a storage of content for a process of a benchmark: in memory, or where `redis` or
// `postgres` (URLs) or `sqlite` (a file) says. `name` keeps it apart from others at the place.
import { randomUUID } from "node:crypto";
import { memoryStorage } from "postbell/memory";
import { postgresStorage } from "postbell/postgres";
import { redisStorage } from "postbell/redis";
import { sqliteStorage } from "postbell/sqlite";

export async function openContentStorage({ redis, postgres, sqlite, name }) {
  const own = name ?? `bench_${randomUUID().replaceAll("-", "")}`;
  if (redis) return redisStorage({ url: redis, prefix: own });
  if (sqlite) return sqliteStorage({ file: `${sqlite}-${own}` });
  if (!postgres) return memoryStorage();
  const storage = postgresStorage({ url: postgres, schema: own });
  await storage.migrate();
  return storage;
}
