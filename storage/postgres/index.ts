/**
 * `postbell/postgres`: a storage in a schema of the Postgres that the host already has, durable and
 * shared by any number of processes.
 *
 * @module postbell/postgres
 */

import type { ContentStorage } from "../../src/content/store.js";
import { type Clock, systemClock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { type Logger, silentLogger } from "../../src/core/logger.js";
import { readOptions } from "../../src/core/options.js";
import type { Storage } from "../../src/webhooks/store.js";
import { createSeal, readSealKeys } from "../seal.js";
import { createClockTime, createServerTime, type ServerTime } from "../server-time.js";
import { createSqlContentStore } from "../sql/content-store.js";
import { createSqlWebhookStore } from "../sql/webhook-store.js";
import { checkServer, logHolders, logStranded, type PostgresReport } from "./check.js";
import { createPools, type PostgresPool, runQuery } from "./client.js";
import { borrow, createPostgresDatabase } from "./database.js";
import { getCode } from "./errors.js";
import { checkLayout, listMigrations, migrate, type PostgresMigration } from "./migrate.js";
import { createPostgresNotifications, toChannel } from "./notifications.js";
import { type PostgresStorageOptions, postgresStorageOptions } from "./options.js";
import { createPostgresStatements } from "./statements.js";
import { createPostgresTransaction } from "./transaction.js";

export type { PostgresReport } from "./check.js";
export type { PgClient, PgPoolClient, PgQuery, PgSocket, PgTypes, PostgresPool } from "./client.js";
export type { PostgresMigration } from "./migrate.js";
export type { PostgresStorageOptions } from "./options.js";

export interface PostgresStorage extends Storage, ContentStorage, AsyncDisposable {
  /**
   * Creates the schema with its tables and functions, in one transaction. Several processes may do
   * so at once, and it changes nothing if they exist. Errors: `invalid_option` if a newer version
   * of Postbell has been there, `storage_unavailable`.
   */
  migrate(): Promise<{ readonly version: number }>;
  /** Returns the statements of `migrate`, for hosts that run their migrations themselves. */
  migrations(): readonly PostgresMigration[];
  /** Reports settings of the server that may lose data. Errors: `storage_unavailable`. */
  check(): Promise<PostgresReport>;
}

/** How long the work of another process may wait, with notifications and without. */
const MAX_SLEEP_MS = 1_000;
const MAX_SLEEP_WITHOUT_NOTIFICATIONS_MS = 500;

/** A restarted server ends all connections, so one line a minute tells of them. */
const LOSS_LOG_MS = 60_000;

/** How often the log says who holds a lock, and how often a process that idles checks the queue. */
const LOOK_MS = 60_000;

/** Concurrent appends: one waits for the disk while the next is written. */
const APPENDS = 2;

async function readServerTime(pool: PostgresPool): Promise<number> {
  const text = "SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now";
  const [row] = await borrow(pool, (client) => runQuery<{ now: number }>(client, text, []));
  return Number(row?.now);
}

/**
 * A storage on Postgres 14 and newer, for webhooks and content together, in a separate schema.
 * Call `migrate()` once before the services start.
 *
 * Guarantee: everything the contracts of webhook storage and content store require, as durable as
 * the server is. The server's time counts, so the clocks of the hosts do not matter.
 * `webhooks.emit(event, { transaction: client })` writes an event in a transaction of the host.
 *
 * It opens nothing before the first call. `close()` closes the connections that this storage
 * opened, and never the pool of the host.
 *
 * Losing a connection does not end the process. Until `close()`, a pool of the host has a listener
 * of `error`, and the clients that it lends have one too.
 *
 * Errors: `invalid_option` for an unknown or unusable option. Calls also reject with it if the
 * tables are missing.
 *
 * @example
 * const storage = postgresStorage({ pool });
 * await storage.migrate();
 * const webhooks = createWebhooks({ storage, access });
 */
export function postgresStorage(options: PostgresStorageOptions): PostgresStorage {
  const settings = readOptions("postgresStorage", postgresStorageOptions, options);
  const { url, schema, limits } = settings;
  const isListening = (settings.connections ?? (url === undefined ? "transaction" : "session")) === "session";
  if (isListening && (settings.pool?.options?.max ?? 2) < 2) {
    throw new PostbellError(
      "invalid_option",
      "postgresStorage: connections: 'session' keeps one connection to listen, so the pool must have more than one (got max: 1). Raise max, or leave connections at 'transaction'.",
      { field: "connections" },
    );
  }
  const seal = createSeal(readSealKeys(settings.sealKeys));
  let clock: Clock = systemClock;
  let logger: Logger = silentLogger;
  let time: ServerTime | undefined;
  let lost = 0;
  let lossLoggedAt = Number.NEGATIVE_INFINITY;
  const pools = createPools({ url, pool: settings.pool }, (error) => {
    lost += 1;
    if (clock.monotonic() - lossLoggedAt < LOSS_LOG_MS) return;
    logger.info(
      { code: getCode(error), ...(lost > 1 && { omitted: lost - 1 }) },
      "an idle connection to Postgres has ended; the pool opens another one when it needs it",
    );
    [lost, lossLoggedAt] = [0, clock.monotonic()];
  });
  /** All services share the time. The clock and the logger of the first one count. */
  const getTime = (service: { clock: Clock; logger: Logger }): ServerTime => {
    if (time === undefined) {
      ({ clock, logger } = service);
      time =
        settings.time === "clock"
          ? createClockTime(clock)
          : createServerTime(clock, async () => readServerTime(await pools.main()));
    }
    return time;
  };
  const lookedAt = { holders: Number.NEGATIVE_INFINITY, stranded: Number.NEGATIVE_INFINITY };
  /** Looks for a problem that only the log tells of, at most once a minute. */
  const look = async (what: keyof typeof lookedAt, log: typeof logHolders): Promise<void> => {
    if (clock.monotonic() - lookedAt[what] < LOOK_MS) return;
    lookedAt[what] = clock.monotonic();
    // The calls that brought this about report an outage.
    await pools
      .main()
      .then((pool) => log(pool, schema, logger))
      .catch(() => {});
  };
  const channel = isListening ? toChannel(schema) : undefined;
  const statements = createPostgresStatements(schema, isListening);
  const unprepared = createPostgresStatements(schema, false);
  let isPrepared = false;
  const database = createPostgresDatabase({
    pool: pools.main,
    createTransaction: (client) => createPostgresTransaction(client, schema, statements),
    joinTransaction: (client) => createPostgresTransaction(client, schema, unprepared, { channel }),
    async prepare() {
      if (!isPrepared) await checkLayout(await pools.main(), schema);
      isPrepared = true;
      await time?.refresh();
    },
    getClock: () => clock,
    onLockTimeout: () => void look("holders", logHolders),
  });
  const notifications = createPostgresNotifications({
    pool: pools.main,
    schema,
    isListening,
    getClock: () => clock,
    now: () => time?.now() ?? clock.now(),
  });

  return Object.freeze<PostgresStorage>({
    webhooks(service) {
      const { perEndpoint, perSecond = null, retention } = service;
      const { now } = getTime(service);
      const store = createSqlWebhookStore(
        {
          database,
          seal,
          clock: service.clock,
          logger: service.logger,
          perEndpoint,
          perSecond,
          retention,
          pendingPerAccount: limits.pendingPerAccount,
          notifyWorkers: notifications.notify,
        },
        {
          concurrency: APPENDS,
          maxSleepMs: isListening ? MAX_SLEEP_MS : MAX_SLEEP_WITHOUT_NOTIFICATIONS_MS,
          now,
          watch: notifications.watch,
        },
      );
      return Object.freeze<typeof store>({
        ...store,
        async claim(request) {
          const response = await store.claim(request);
          if (response.claims.length === 0) void look("stranded", logStranded);
          return notifications.noteClaim(response);
        },
      });
    },
    content: (service) =>
      createSqlContentStore({ database, now: getTime(service).now, changesKept: limits.contentChanges }),
    migrate: async () => migrate(await pools.main(), schema),
    migrations: () => listMigrations(schema),
    check: async () => checkServer(await pools.main(), schema),
    async close() {
      notifications.close();
      await pools.close();
    },
    [Symbol.asyncDispose]() {
      return this.close();
    },
  });
}
