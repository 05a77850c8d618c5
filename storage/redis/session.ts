/**
 * The session of one storage with its Redis: the connections, the server's time and the
 * notifications of workers. The webhook store and the content store of a storage share one session.
 */

import { type Clock, withTimeout } from "../../src/core/clock.js";
import type { Logger } from "../../src/core/logger.js";
import { createClockTime, createServerTime, type ServerTime } from "../server-time.js";
import { listClientWarnings, type RedisArgument, type RedisClient, type RedisClients } from "./clients.js";
import { type CallOptions, createRedisConnection, type RedisConnection } from "./connection.js";
import type { LayoutGuard } from "./layout.js";
import type { RedisFunction } from "./library.js";
import type { KeySet, Partitions } from "./partition.js";
import { resultUnknown } from "./redis-errors.js";
import { createReplicationCheck } from "./replication.js";
import { inspectServer, type ServerReport } from "./server-report.js";
import { createWorkerNotifications, type WorkerNotifications } from "./worker-notifications.js";

/** The time to Redis and back, which comes on top of the time-out of WAIT. */
const WAIT_MARGIN_MS = 500;

export interface Session {
  readonly time: ServerTime;
  readonly workers: WorkerNotifications;
  /** The main connection, created at the first call. */
  readonly connection: () => Promise<RedisConnection>;
  /**
   * Identifies the present connection of the main client: a server cannot lose what it stored
   * without ending it. `NaN`, which equals nothing, before there is a connection, and with a
   * Cluster, whose nodes may fail unseen.
   */
  readonly connectionId: () => number;
  /** Why the main client has no connection, if it said so. */
  readonly connectionProblem: () => string | undefined;
  /** Connects, checks the layout, reads the time and logs warnings, once; after a failure again. */
  readonly open: (guard: LayoutGuard) => Promise<void>;
  /** Lets `open` do its work again, after Redis was emptied: the layout has to be stored again. */
  readonly reopen: () => void;
  /** Runs a script on the second connection, and asks if a replica has its changes. */
  readonly runReplicated: (
    name: RedisFunction,
    on: KeySet,
    args: readonly RedisArgument[],
    options?: CallOptions,
  ) => Promise<{ readonly reply: unknown; readonly confirmed: boolean }>;
  /** Reports on each server: one, or all masters of a Cluster. */
  readonly inspect: () => Promise<readonly ServerReport[]>;
  /** Releases the clients, which may be the host's. */
  readonly close: () => void;
}

export interface SessionOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly clients: RedisClients;
  readonly partitions: Partitions;
  readonly prefix: string;
  readonly time: "server" | "clock";
  readonly isReplicated: boolean;
  readonly replicationTimeoutMs: number;
}

/** Shares one call of `create`. After a failure the next caller tries again. */
function once<T>(create: () => Promise<T>): () => Promise<T> {
  let created: Promise<T> | undefined;
  return () => {
    created ??= create().catch((error: unknown) => {
      created = undefined;
      throw error;
    });
    return created;
  };
}

async function readServerTime(
  connection: RedisConnection,
  { all: [partition] }: Partitions,
): Promise<number> {
  if (!partition) throw new RangeError("a storage has at least one partition");
  const [seconds, micros] = (await connection.run("time", partition, ["{}"])) as string[];
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}

const listMasters = (client: RedisClient): readonly RedisClient[] => client.nodes?.("master") ?? [client];

/** The connections that a session has opened, so that all can be closed. */
function createConnectionPool(clock: Clock) {
  const open = new Set<RedisConnection>();
  let isClosed = false;
  return {
    /** `isOwn`: the client belongs to the storage, which may reconnect it. */
    connect(client: RedisClient, isOwn: boolean): RedisConnection {
      const created = createRedisConnection(client, clock, isOwn);
      if (isClosed) created.close();
      else open.add(created);
      return created;
    },
    release(connection: RedisConnection): void {
      connection.close();
      open.delete(connection);
    },
    close(): void {
      isClosed = true;
      for (const connection of open) connection.close();
    },
  };
}

type ConnectionPool = ReturnType<typeof createConnectionPool>;

/** Runs scripts on a connection of their own, because WAIT blocks it. */
function createReplicatedRunner(
  { clock, clients, replicationTimeoutMs }: SessionOptions,
  pool: ConnectionPool,
): Session["runReplicated"] {
  const replicated = once(async () => {
    const client = await clients.second();
    return {
      client,
      connection: pool.connect(client, true),
      check: createReplicationCheck(client, replicationTimeoutMs),
    };
  });
  const isConfirmedInTime = (confirmation: Promise<boolean>): Promise<boolean> =>
    withTimeout(clock, 2 * replicationTimeoutMs + WAIT_MARGIN_MS, confirmation, () =>
      resultUnknown("no reply in time"),
    ).catch(() => false);
  return async (script, on, args) => {
    const { client, connection, check } = await replicated();
    // The check below remembers the connection, so it has to exist.
    if (client.status !== "ready") await connection.call("PING");
    const isConfirmed = await check.begin(on);
    const reply = await connection.run(script, on, args);
    return { reply, confirmed: await isConfirmedInTime(isConfirmed()) };
  };
}

export function createSession(options: SessionOptions): Session {
  const { clock, logger, clients, partitions, prefix } = options;
  const pool = createConnectionPool(clock);
  let connectionId = (): number => Number.NaN;
  let connectionProblem = (): string | undefined => undefined;
  let stopListening = (): void => {};
  const connection = once(async () => {
    const client = await clients.main();
    const created = pool.connect(client, clients.isOwn);
    if (client.nodes === undefined) connectionId = created.epoch;
    connectionProblem = () => created.problem()?.reason;
    const onReady = (): void => workers.resubscribe();
    client.on("ready", onReady);
    stopListening = () => client.off("ready", onReady);
    return created;
  });
  const time =
    options.time === "clock"
      ? createClockTime(clock)
      : createServerTime(clock, async () => readServerTime(await connection(), partitions));
  const workers = createWorkerNotifications({
    channel: `{${prefix}}:notifications`,
    clock,
    now: time.now,
    publish: async (channel, at) => (await connection()).call("PUBLISH", channel, at),
    subscriber: options.isReplicated ? null : clients.subscriber,
  });
  const inspect = async (): Promise<readonly ServerReport[]> => {
    const client = await clients.main();
    const clientWarnings = clients.isOwn ? [] : listClientWarnings(client);
    return Promise.all(
      listMasters(client).map(async (node) => {
        const nodeConnection = pool.connect(node, false);
        try {
          return await inspectServer(nodeConnection, time.skewMs(), clientWarnings);
        } finally {
          pool.release(nodeConnection);
        }
      }),
    );
  };
  const logWarnings = async (): Promise<void> => {
    // The storage also works on a server that refuses INFO.
    const reports = await inspect().catch(() => []);
    for (const warning of new Set(reports.flatMap(({ warnings }) => warnings))) logger.warn({}, warning);
  };

  const opened = new Map<LayoutGuard, Promise<void>>();
  const openWith = async (guard: LayoutGuard): Promise<void> => {
    await guard(await connection());
    await time.refresh();
    void logWarnings();
  };

  return {
    time,
    workers,
    connection,
    connectionId: () => connectionId(),
    connectionProblem: () => connectionProblem(),
    open(guard) {
      const begun = opened.get(guard);
      if (begun !== undefined) return begun;
      const opening = openWith(guard).catch((error: unknown) => {
        opened.delete(guard);
        throw error;
      });
      opened.set(guard, opening);
      return opening;
    },
    reopen: () => opened.clear(),
    runReplicated: createReplicatedRunner(options, pool),
    inspect,
    close() {
      stopListening();
      workers.close();
      pool.close();
    },
  };
}
