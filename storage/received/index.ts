/**
 * `postbell/received`: remembers which events a receiver has handled, in Postgres, SQLite or Redis,
 * for all its processes and beyond their restarts.
 *
 * @module postbell/received
 */

export type { ReceivedEvents } from "../../src/receiver/received-events.js";
export type { SqlConnection } from "../../src/webhooks/transaction.js";
export type { PgPool } from "../outbox/pg.js";
export { memoryReceived } from "./memory.js";
export { type RedisCommands, type RedisReceivedOptions, redisReceived } from "./redis.js";
export {
  type PgReceived,
  type PgReceivedOptions,
  pgReceived,
  type SqliteReceived,
  type SqliteReceivedDatabase,
  type SqliteReceivedOptions,
  sqliteReceived,
} from "./sql.js";
