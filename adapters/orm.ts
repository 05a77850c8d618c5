/**
 * `postbell/orm`: the transactions of ORMs and query builders, in the form that `emit` and the
 * outbox take. It depends on none of them: each function describes the part that it calls.
 *
 * @module postbell/orm
 */

import { PostbellError } from "../src/core/errors.js";
import type { SqlConnection, SqliteConnection } from "../src/webhooks/transaction.js";

export type { HostTransaction, SqlConnection, SqliteConnection } from "../src/webhooks/transaction.js";

type Query = SqlConnection["query"];

/** One connection for each transaction, however often a host passes it: its events go together. */
const connections = new WeakMap<object, SqlConnection>();

/** Returns the connection of a transaction, whose rows `run` may return in any of three forms. */
function toConnection(
  transaction: object,
  run: (text: string, values: unknown[]) => PromiseLike<unknown>,
): SqlConnection {
  const known = connections.get(transaction);
  if (known !== undefined) return known;
  const query: Query = async (text, values) => {
    const result = await run(text, values);
    const { rows } = (result ?? {}) as { rows?: unknown };
    return { rows: Array.isArray(rows) ? rows : Array.isArray(result) ? result : [] };
  };
  const connection = Object.freeze<SqlConnection>({ query });
  connections.set(transaction, connection);
  return connection;
}

/** The error for an object of a library on which no transaction is open. */
const refuse = (call: string, expected: string): PostbellError =>
  new PostbellError("invalid_argument", `${call} takes ${expected}, while its transaction is open.`, {
    field: "transaction",
  });

const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function";

/** True for an object with these methods. */
const has = (value: unknown, ...methods: string[]): boolean =>
  isObject(value) &&
  methods.every((method) => typeof (value as Record<string, unknown>)[method] === "function");

const isSqlite = (value: unknown): value is SqliteConnection => has(value, "prepare", "exec");

/** Replaces `$1`, `$2` … by `?`, for libraries that number nothing. */
function toQuestionMarks(text: string, values: unknown[]): [text: string, values: unknown[]] {
  const used: unknown[] = [];
  const marked = text.replace(/\$([1-9][0-9]?)(?![0-9])/g, (_, number: string) => {
    used.push(values[Number(number) - 1]);
    return "?";
  });
  return used.length === 0 ? [text, values] : [marked, used];
}

/** Replaces `?` by `$1`, `$2` …, for a library that numbers values on every database. */
function toNumbered(text: string): string {
  let count = 0;
  return text.replace(/\?/g, () => `$${++count}`);
}

/** The part of a transaction of Drizzle that is called. */
export interface DrizzleTransaction {
  /** Runs a query. */
  execute(query: never): unknown;
  /** Only a transaction has it. */
  rollback(): never;
}

/** The part of a Drizzle database on better-sqlite3 that is read. */
export interface DrizzleSqlite {
  /** The database of the driver. */
  readonly $client: SqliteConnection;
}

/**
 * The transaction of Drizzle: the `tx` of `db.transaction(async (tx) => …)`, on Postgres or MySQL.
 *
 * On better-sqlite3, `db.transaction` commits before `emit` resolves. Pass `db` instead, after
 * `db.run(sql`BEGIN IMMEDIATE`)`.
 *
 * @throws `invalid_argument` for an object that is no transaction.
 *
 * @example
 * await db.transaction(async (tx) => {
 *   await tx.insert(orders).values(order);
 *   const event = { type: "order.paid", account, data } as const;
 *   await webhooks.emit(event, { transaction: fromDrizzle(tx) });
 * });
 */
export function fromDrizzle(transaction: DrizzleTransaction): SqlConnection;
/** A Drizzle database on better-sqlite3, on which a transaction is open. */
export function fromDrizzle(database: DrizzleSqlite): SqliteConnection;
export function fromDrizzle(
  transaction: DrizzleTransaction | DrizzleSqlite,
): SqlConnection | SqliteConnection {
  const client = (transaction as Partial<DrizzleSqlite> | null)?.$client;
  if (isSqlite(client)) return client;
  if (!has(transaction, "execute", "rollback")) throw refuse("fromDrizzle", "the tx of db.transaction()");
  const tx = transaction as { execute(query: unknown): PromiseLike<unknown> };
  return toConnection(transaction, (sql, params) => {
    // The statement with its values, as `sql` of Drizzle would build it.
    const built = { toQuery: () => ({ sql, params }) };
    return tx.execute({ getSQL: () => built });
  });
}

/** The part of a transaction of Prisma that is called. */
export interface PrismaTransaction {
  /** Runs a query with its values. */
  $queryRawUnsafe(text: string, ...values: never[]): PromiseLike<unknown>;
}

/**
 * The transaction of Prisma: the `tx` of `prisma.$transaction(async (tx) => …)`, on Postgres or
 * MySQL.
 *
 * @throws `invalid_argument` for an object that is no transaction, such as the client.
 *
 * @example
 * await prisma.$transaction(async (tx) => {
 *   await tx.order.create({ data: order });
 *   const event = { type: "order.paid", account, data } as const;
 *   await webhooks.emit(event, { transaction: fromPrisma(tx) });
 * });
 */
export function fromPrisma(transaction: PrismaTransaction): SqlConnection {
  const isOpen = has(transaction, "$queryRawUnsafe") && !has(transaction, "$connect");
  if (!isOpen) throw refuse("fromPrisma", "the tx of prisma.$transaction()");
  const { $queryRawUnsafe: run } = transaction as { $queryRawUnsafe: (...values: unknown[]) => never };
  return toConnection(transaction, (text, values) => run.call(transaction, text, ...values));
}

/** The part of a transaction of Kysely that is called. */
export interface KyselyTransaction {
  /** True for a transaction. */
  readonly isTransaction: boolean;
  /** Runs a compiled query. */
  executeQuery(query: never): PromiseLike<unknown>;
}

/**
 * The transaction of Kysely: the `trx` of `db.transaction().execute(async (trx) => …)`, or a
 * controlled transaction, on Postgres or MySQL. On SQLite, pass the database that you gave to
 * `SqliteDialect`.
 *
 * @throws `invalid_argument` for an object that is no transaction.
 *
 * @example
 * await db.transaction().execute(async (trx) => {
 *   await trx.insertInto("orders").values(order).execute();
 *   const event = { type: "order.paid", account, data } as const;
 *   await webhooks.emit(event, { transaction: fromKysely(trx) });
 * });
 */
export function fromKysely(transaction: KyselyTransaction): SqlConnection {
  const isOpen = has(transaction, "executeQuery") && transaction.isTransaction;
  if (!isOpen) throw refuse("fromKysely", "the trx of db.transaction()");
  const trx = transaction as { executeQuery(query: unknown): PromiseLike<unknown> };
  return toConnection(transaction, (sql, parameters) =>
    trx.executeQuery({
      sql,
      parameters,
      query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
      queryId: { queryId: "postbell" },
    }),
  );
}

/** The part of a transaction of Knex that is called. */
export interface KnexTransaction {
  /** True for a transaction. */
  readonly isTransaction?: boolean | undefined;
  /** The client of the transaction. */
  readonly client: {
    /** Resolves with the connection of the transaction. */
    acquireConnection(): PromiseLike<unknown>;
  };
  /** True once it was committed or rolled back. */
  isCompleted(): boolean;
  /** Runs a statement with its values. */
  raw(text: string, values: never): PromiseLike<unknown>;
}

/**
 * The transaction of Knex: the `trx` of `knex.transaction(async (trx) => …)`, on Postgres or MySQL.
 * On SQLite, use `fromKnexSqlite`.
 *
 * @throws `invalid_argument` for an object that is no open transaction.
 *
 * @example
 * await knex.transaction(async (trx) => {
 *   await trx("orders").insert(order);
 *   const event = { type: "order.paid", account, data } as const;
 *   await webhooks.emit(event, { transaction: fromKnex(trx) });
 * });
 */
export function fromKnex(transaction: KnexTransaction): SqlConnection {
  const isOpen = has(transaction, "raw", "isCompleted") && !transaction.isCompleted();
  if (!isOpen) throw refuse("fromKnex", "the trx of knex.transaction()");
  const trx = transaction as { raw(text: string, values: unknown[]): PromiseLike<unknown> };
  return toConnection(transaction, (text, values) => trx.raw(...toQuestionMarks(text, values)));
}

/**
 * The transaction of Knex on better-sqlite3: resolves with the database on which it is open.
 *
 * @throws `invalid_argument` for an object that is no open transaction, or of another driver.
 *
 * @example
 * await knex.transaction(async (trx) => {
 *   await trx("orders").insert(order);
 *   const transaction = await fromKnexSqlite(trx);
 *   await webhooks.emit({ type: "order.paid", account, data }, { transaction });
 * });
 */
export async function fromKnexSqlite(transaction: KnexTransaction): Promise<SqliteConnection> {
  const isOpen = has(transaction, "raw", "isCompleted") && !transaction.isCompleted();
  const database = isOpen ? await transaction.client.acquireConnection() : undefined;
  if (!isSqlite(database)) {
    throw refuse("fromKnexSqlite", "the trx of knex.transaction() on better-sqlite3");
  }
  return database;
}

/** The part of an entity manager or a query runner of TypeORM that is called. */
export interface TypeOrmTransaction {
  /** Of a query runner: true while a transaction is open. */
  readonly isTransactionActive?: boolean | undefined;
  /** Of an entity manager: the query runner that it uses. */
  readonly queryRunner?: { readonly isTransactionActive: boolean } | undefined;
  /** Runs a statement with its values. */
  query(text: string, values?: unknown[]): PromiseLike<unknown>;
}

/**
 * The transaction of TypeORM: the `manager` of `dataSource.transaction(async (manager) => …)`, or a
 * query runner after `startTransaction()`, on Postgres or MySQL.
 *
 * @throws `invalid_argument` for an object on which no transaction is open.
 *
 * @example
 * await dataSource.transaction(async (manager) => {
 *   await manager.save(order);
 *   const event = { type: "order.paid", account, data } as const;
 *   await webhooks.emit(event, { transaction: fromTypeOrm(manager) });
 * });
 */
export function fromTypeOrm(transaction: TypeOrmTransaction): SqlConnection {
  const { isTransactionActive, queryRunner } = (transaction ?? {}) as Partial<TypeOrmTransaction>;
  const isOpen =
    has(transaction, "query") && (isTransactionActive ?? queryRunner?.isTransactionActive) === true;
  if (!isOpen) throw refuse("fromTypeOrm", "the manager of dataSource.transaction() or a query runner");
  return toConnection(transaction, (text, values) => transaction.query(text, values));
}

/** The part of a transaction of Sequelize that is called. */
export interface SequelizeTransaction {
  /** The instance of Sequelize that has begun it. */
  readonly sequelize?: unknown;
  /** Only a transaction has it. */
  commit(): PromiseLike<void>;
}

/**
 * The transaction of Sequelize 6: the `transaction` of `sequelize.transaction(async (transaction)
 * => …)`, on Postgres or MySQL.
 *
 * @throws `invalid_argument` for an object that is no open transaction.
 *
 * @example
 * await sequelize.transaction(async (transaction) => {
 *   await Order.create(order, { transaction });
 *   const event = { type: "order.paid", account, data } as const;
 *   await webhooks.emit(event, { transaction: fromSequelize(transaction) });
 * });
 */
export function fromSequelize(transaction: SequelizeTransaction): SqlConnection {
  type Instance = { query(text: string, options: object): PromiseLike<readonly unknown[]> };
  const { sequelize, finished } = (transaction ?? {}) as { sequelize?: Instance; finished?: unknown };
  const isOpen = has(sequelize, "query") && has(transaction, "commit") && finished === undefined;
  if (!isOpen) throw refuse("fromSequelize", "the transaction of sequelize.transaction()");
  return toConnection(transaction, async (text, bind) => {
    // Its type SELECT would fail on MySQL for a statement without rows, after it has run.
    const options = { bind, transaction, type: "RAW" };
    const [rows] = await (sequelize as Instance).query(toNumbered(text), options);
    return rows;
  });
}

/** The part of an entity manager of MikroORM that is called. */
export interface MikroOrmTransaction {
  /** True while a transaction is open. */
  isInTransaction(): boolean;
  /** Runs a statement with its values. */
  execute(text: never, values?: unknown[]): PromiseLike<unknown>;
}

/**
 * The transaction of MikroORM: the `em` of `em.transactional(async (em) => …)`, or one after
 * `em.begin()`, on Postgres or MySQL. Entities of the unit of work are written when you flush; the
 * event is written at once.
 *
 * @throws `invalid_argument` for an entity manager on which no transaction is open.
 *
 * @example
 * await em.transactional(async (em) => {
 *   em.persist(order);
 *   const event = { type: "order.paid", account, data } as const;
 *   await webhooks.emit(event, { transaction: fromMikroOrm(em) });
 * });
 */
export function fromMikroOrm(manager: MikroOrmTransaction): SqlConnection {
  const isOpen = has(manager, "execute", "isInTransaction") && manager.isInTransaction();
  if (!isOpen) throw refuse("fromMikroOrm", "the em of em.transactional()");
  const em = manager as { execute(text: string, values: unknown[]): PromiseLike<unknown> };
  return toConnection(manager, (text, values) => em.execute(...toQuestionMarks(text, values)));
}

/** The part of a transaction of `postgres` that is called. */
export interface PostgresJsTransaction {
  /** Runs a statement with its values. */
  unsafe(text: string, values?: never[]): PromiseLike<unknown>;
  /** Only a transaction has it. */
  savepoint: unknown;
}

/**
 * The transaction of porsager's `postgres`: the `sql` of `sql.begin(async (sql) => …)`.
 *
 * @throws `invalid_argument` for an object that is no transaction.
 *
 * @example
 * await sql.begin(async (sql) => {
 *   await sql`INSERT INTO orders ${sql(order)}`;
 *   const event = { type: "order.paid", account, data } as const;
 *   await webhooks.emit(event, { transaction: fromPostgresJs(sql) });
 * });
 */
export function fromPostgresJs(sql: PostgresJsTransaction): SqlConnection {
  if (!has(sql, "unsafe", "savepoint")) throw refuse("fromPostgresJs", "the sql of sql.begin()");
  return toConnection(sql, (text, values) => sql.unsafe(text, values as never[]));
}
