/** The real libraries on MySQL or MariaDB, through mysql2, each with the same few operations. */

import { sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/mysql2";
import createKnex from "knex";
import { Kysely, sql as kyselySql, MysqlDialect } from "kysely";
import mysqlCallbacks from "mysql2";
import mysql from "mysql2/promise";
import { Sequelize } from "sequelize";
import { DataSource } from "typeorm";
import { fromDrizzle, fromKnex, fromKysely, fromSequelize, fromTypeOrm } from "../../../adapters/orm.js";
import { bySavepoint, type Orm, type Parts, toTransaction } from "./orm-transaction.js";

/** Where the server is, and the host's database there. */
export interface MysqlAddress {
  readonly socketPath: string;
  readonly user: string;
  readonly database: string;
}

function openDrizzle(address: MysqlAddress): Orm {
  const pool = mysql.createPool({ ...address, connectionLimit: 3 });
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

function openKysely(address: MysqlAddress): Orm {
  const pool = mysqlCallbacks.createPool({ ...address, connectionLimit: 3 });
  const db = new Kysely<object>({ dialect: new MysqlDialect({ pool }) });
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

function openKnex(address: MysqlAddress): Orm {
  const knex = createKnex({ client: "mysql2", connection: { ...address }, pool: { min: 0, max: 3 } });
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

const openDataSource = ({ user, ...address }: MysqlAddress): Promise<DataSource> =>
  new DataSource({ type: "mariadb", ...address, username: user, logging: false }).initialize();

async function openTypeOrm(address: MysqlAddress): Promise<Orm> {
  const source = await openDataSource(address);
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

function openSequelize({ user, database, socketPath }: MysqlAddress): Orm {
  const sequelize = new Sequelize(database, user, "", {
    dialect: "mysql",
    dialectOptions: { socketPath },
    logging: false,
    pool: { max: 3 },
  });
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

/** The libraries by name, with the function of `postbell/orm` that an error names. */
export const MYSQL_ORMS: readonly (readonly [
  name: string,
  call: string,
  open: (address: MysqlAddress) => Orm | Promise<Orm>,
])[] = [
  ["Drizzle", "fromDrizzle", openDrizzle],
  ["Kysely", "fromKysely", openKysely],
  ["Knex", "fromKnex", openKnex],
  ["TypeORM", "fromTypeOrm", openTypeOrm],
  ["Sequelize", "fromSequelize", openSequelize],
];
