/**
 * Stores events in the host's SQL transactions, and moves them to Postbell.
 *
 * @module postbell/outbox
 */

export { type MemorySource, memorySource } from "../../src/outbox/memory.js";
export type { Emitter, OutboxOptions } from "../../src/outbox/options.js";
export { type Outbox, type OutboxStats, outbox } from "../../src/outbox/outbox.js";
export type {
  ClaimedRow,
  OutboxClaim,
  OutboxSource,
  ParkedRow,
} from "../../src/outbox/outbox-source.js";
export type { AnyEventInput, PlainEventInput } from "../../src/webhooks/service.js";
export type { SqlConnection } from "../../src/webhooks/transaction.js";
export {
  type MysqlConnection,
  type MysqlPool,
  type MysqlPoolConnection,
  type MysqlSourceOptions,
  mysqlSource,
} from "./mysql.js";
export { type PgPool, type PgSourceOptions, pgSource } from "./pg.js";
export type { SqlSource } from "./sql-source.js";
