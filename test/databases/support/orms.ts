/** The real libraries with transactions of their own, each with the same few operations. */

import { MikroORM } from "@mikro-orm/postgresql";
import { PrismaPg } from "@prisma/adapter-pg";
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { drizzle as drizzlePostgresJs } from "drizzle-orm/postgres-js";
import createKnex from "knex";
import { Kysely, sql as kyselySql, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { Sequelize } from "sequelize";
import { DataSource } from "typeorm";
import {
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromMikroOrm,
  fromPostgresJs,
  fromPrisma,
  fromSequelize,
  fromTypeOrm,
} from "../../../adapters/orm.js";
import { type Prisma, PrismaClient } from "../../data/prisma/client/client.js";
import { bySavepoint, type Orm, type Parts, toTransaction } from "./orm-transaction.js";

function createPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  // A host has to do so, because the server may end a connection in a transaction.
  pool.on("connect", (client) => client.on("error", () => {}));
  pool.on("error", () => {});
  return pool;
}

function openDrizzle(url: string): Orm {
  const pool = createPool(url);
  const db = drizzle(pool);
  type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0];
  const parts: Parts<Tx> = {
    connect: fromDrizzle,
    run: async (tx, text) => tx.execute(drizzleSql.raw(text)),
    nested: (tx, work) => tx.transaction(work),
  };
  return {
    transaction: (work) => db.transaction((tx) => work(toTransaction(tx, parts))),
    outside: () => fromDrizzle(db as never),
    close: () => pool.end(),
  };
}

function openDrizzlePostgresJs(url: string): Orm {
  const sql = postgres(url, { max: 3, onnotice: () => {} });
  const db = drizzlePostgresJs(sql);
  type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0];
  const parts: Parts<Tx> = {
    connect: fromDrizzle,
    run: async (tx, text) => tx.execute(drizzleSql.raw(text)),
    nested: (tx, work) => tx.transaction(work),
  };
  return {
    transaction: (work) => db.transaction((tx) => work(toTransaction(tx, parts))),
    outside: () => fromDrizzle(db as never),
    crashesAfterLoss: true,
    close: () => sql.end({ timeout: 1 }),
  };
}

/** Returns the client that `prisma generate` wrote for `test/data/prisma/schema.prisma`. */
export const createPrismaClient = (url: string): PrismaClient =>
  new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });

function openPrisma(url: string): Orm {
  const prisma = createPrismaClient(url);
  const run = (tx: Prisma.TransactionClient, text: string) => tx.$executeRawUnsafe(text);
  const parts: Parts<Prisma.TransactionClient> = {
    connect: fromPrisma,
    run,
    nested: (tx, work) => bySavepoint(tx, run, work),
  };
  return {
    transaction: (work) => prisma.$transaction((tx) => work(toTransaction(tx, parts))),
    outside: () => fromPrisma(prisma),
    close: () => prisma.$disconnect(),
  };
}

function openKysely(url: string): Orm {
  const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: createPool(url) }) });
  const run = (trx: Kysely<object>, text: string) => kyselySql.raw(text).execute(trx);
  const parts: Parts<Kysely<object>> = {
    connect: fromKysely,
    run,
    nested: (trx, work) => bySavepoint(trx, run, work),
  };
  return {
    transaction: (work) => db.transaction().execute((trx) => work(toTransaction<Kysely<object>>(trx, parts))),
    outside: () => fromKysely(db),
    close: () => db.destroy(),
  };
}

function openKnex(url: string): Orm {
  const knex = createKnex({ client: "pg", connection: url, pool: { min: 0, max: 3 } });
  const parts: Parts<createKnex.Knex.Transaction> = {
    connect: fromKnex,
    run: async (trx, text) => trx.raw(text),
    nested: (trx, work) => trx.transaction(work),
  };
  return {
    transaction: (work) => knex.transaction((trx) => work(toTransaction(trx, parts))),
    outside: () => fromKnex(knex as never),
    close: () => knex.destroy(),
  };
}

async function openTypeOrm(url: string): Promise<Orm> {
  const source = await new DataSource({ type: "postgres", url, logging: false }).initialize();
  const parts: Parts<typeof source.manager> = {
    connect: fromTypeOrm,
    run: (manager, text) => manager.query(text),
    nested: (manager, work) => manager.transaction(work),
  };
  return {
    transaction: (work) => source.transaction((manager) => work(toTransaction(manager, parts))),
    outside: () => fromTypeOrm(source.manager),
    close: () => source.destroy(),
  };
}

/** The same with a query runner, which a host begins and ends itself. */
async function openQueryRunner(url: string): Promise<Orm> {
  const source = await new DataSource({ type: "postgres", url, logging: false }).initialize();
  const run = (runner: ReturnType<typeof source.createQueryRunner>, text: string) => runner.query(text);
  const parts = {
    connect: fromTypeOrm,
    run,
    nested: (
      runner: ReturnType<typeof source.createQueryRunner>,
      work: (inner: ReturnType<typeof source.createQueryRunner>) => Promise<unknown>,
    ) => bySavepoint(runner, run, work),
  };
  return {
    async transaction(work) {
      const runner = source.createQueryRunner();
      await runner.startTransaction();
      try {
        const result = await work(toTransaction(runner, parts));
        await runner.commitTransaction();
        return result;
      } catch (error) {
        await runner.rollbackTransaction();
        throw error;
      } finally {
        await runner.release();
      }
    },
    outside: () => fromTypeOrm(source.createQueryRunner()),
    close: () => source.destroy(),
  };
}

function openSequelize(url: string): Orm {
  const sequelize = new Sequelize(url, { dialect: "postgres", logging: false, pool: { max: 3 } });
  type Tx = Awaited<ReturnType<typeof sequelize.transaction>>;
  const parts: Parts<Tx> = {
    connect: fromSequelize,
    run: (transaction, text) => sequelize.query(text, { transaction }),
    nested: (transaction, work) => sequelize.transaction({ transaction }, work),
  };
  return {
    transaction: (work) => sequelize.transaction((transaction) => work(toTransaction(transaction, parts))),
    outside: () => fromSequelize(sequelize as never),
    close: () => sequelize.close(),
  };
}

async function openMikroOrm(url: string): Promise<Orm> {
  const orm = await MikroORM.init({
    clientUrl: url,
    entities: [],
    discovery: { warnWhenNoEntities: false },
    debug: false,
  });
  const parts: Parts<typeof orm.em> = {
    connect: fromMikroOrm,
    run: (em, text) => em.execute(text),
    nested: (em, work) => em.transactional((inner) => work(inner as typeof orm.em)),
  };
  return {
    transaction: (work) =>
      orm.em.fork().transactional((em) => work(toTransaction(em as typeof orm.em, parts))),
    outside: () => fromMikroOrm(orm.em.fork()),
    close: () => orm.close(),
  };
}

function openPostgresJs(url: string): Orm {
  const sql = postgres(url, { max: 3, onnotice: () => {} });
  const parts: Parts<postgres.TransactionSql> = {
    connect: fromPostgresJs,
    run: async (tx, text) => tx.unsafe(text),
    nested: (tx, work) => tx.savepoint(work),
  };
  return {
    transaction: (work) => sql.begin((tx) => work(toTransaction(tx, parts))),
    outside: () => fromPostgresJs(sql as never),
    crashesAfterLoss: true,
    close: () => sql.end({ timeout: 1 }),
  };
}

/** The libraries by name, with the function of `postbell/orm` that an error names. */
export const ORMS: readonly (readonly [
  name: string,
  call: string,
  open: (url: string) => Orm | Promise<Orm>,
])[] = [
  ["Drizzle on pg", "fromDrizzle", openDrizzle],
  ["Drizzle on postgres", "fromDrizzle", openDrizzlePostgresJs],
  ["Prisma", "fromPrisma", openPrisma],
  ["Kysely", "fromKysely", openKysely],
  ["Knex", "fromKnex", openKnex],
  ["TypeORM", "fromTypeOrm", openTypeOrm],
  ["TypeORM's query runner", "fromTypeOrm", openQueryRunner],
  ["Sequelize", "fromSequelize", openSequelize],
  ["MikroORM", "fromMikroOrm", openMikroOrm],
  ["postgres", "fromPostgresJs", openPostgresJs],
];
