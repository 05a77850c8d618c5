/**
 * The session of one storage with its Redis: the connections, the server's time and the
 * notifications of workers. The webhook store and the content store of a storage share one session.
 * The parts of a webhook store call Redis through its context.
 */

import { type Clock, withTimeout } from "../../src/core/clock.js";
import type { Logger } from "../../src/core/logger.js";
import type { Seal } from "../seal.js";
import { createClockTime, createServerTime, type ServerTime } from "../server-time.js";
import { listClientWarnings, type RedisArgument, type RedisClient, type RedisClients } from "./clients.js";
import { type CallOptions, createRedisConnection, type RedisConnection } from "./connection.js";
import type { LayoutGuard } from "./layout.js";
import type { RedisFunction } from "./library.js";
import type { KeySet, PartitionLimits, Partitions } from "./partition.js";
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
  /** Calls a function on the second connection, and asks if a replica has its changes. */
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

/** Calls functions on a connection of their own, because WAIT blocks it. */
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
  return async (name, on, args) => {
    const { client, connection, check } = await replicated();
    // The check below remembers the connection, so it has to exist.
    if (client.status !== "ready") await connection.call("PING");
    const isConfirmed = await check.begin(on);
    const reply = await connection.run(name, on, args);
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

/** How a function of the webhook store is called. */
export interface FunctionCall extends CallOptions {
  /** The time of the storage, in epoch ms. */
  readonly now: number;
  /** The named options of the function; absent ones are `undefined`. */
  readonly options?: object | undefined;
  /** The arguments of the items that the function handles. */
  readonly items?: readonly RedisArgument[] | undefined;
}

/** The limits that every function takes among its options. */
export interface FunctionLimits {
  readonly perEndpoint: number;
  readonly perSecond: number | undefined;
  readonly retentionMs: number;
  readonly retentionEvents: number;
}

export interface DurableReply {
  readonly reply: unknown;
  /** True if a replica has the change; `undefined` if the storage does not ask replicas. */
  readonly confirmed: boolean | undefined;
}

export interface RedisStoreContext {
  readonly partitions: Partitions;
  readonly seal: Seal;
  readonly limits: PartitionLimits;
  readonly logger: Logger;
  readonly clock: Clock;
  /** True with `durability: "replicated"`. */
  readonly isReplicated: boolean;
  /** The longest a worker may sleep: it then claims without a notification. */
  readonly maxSleepMs: number;
  /** Runs a function on a partition, with the limits among its options. */
  readonly run: (name: RedisFunction, partition: KeySet, call: FunctionCall) => Promise<unknown>;
  /**
   * Like `run`, for changes that have to be durable: also resolves with whether a replica has it.
   */
  readonly runDurably: (name: RedisFunction, partition: KeySet, call: FunctionCall) => Promise<DurableReply>;
  /** Sends a command that only reads. */
  readonly call: (command: string, ...args: readonly RedisArgument[]) => Promise<unknown>;
  /**
   * Connects at the first call, and keeps the sample of the server's time fresh. Resolves with
   * `now`, or with the storage's time if that was not known when the caller read `now`.
   */
  readonly connect: (now: number) => Promise<number>;
  /** Notifies workers that something may be due at `at`. An empty or missing time is ignored. */
  readonly notifyWorkers: (at: string | undefined) => void;
  /** Same as `connectionId` of the session. */
  readonly connectionId: () => number;
  /** To be called when Redis turns out to have been emptied or replaced. */
  readonly onReset: () => void;
}

/** Encodes the options of a function: `begin` in `library/define.lua` decodes them. */
export const encodeOptions = (limits: FunctionLimits, now: number, options?: object): string =>
  JSON.stringify({ now, ...limits, ...options });

/** How long work of another process may wait if its notification was lost. */
const MAX_SLEEP_MS = 1_000;
/** The same with `durability: "replicated"`, which has no notifications. */
const MAX_SLEEP_WITHOUT_NOTIFICATIONS_MS = 200;

interface ContextOptions {
  session: Session;
  layout: LayoutGuard;
  partitions: Partitions;
  seal: Seal;
  limits: PartitionLimits;
  isReplicated: boolean;
  clock: Clock;
  logger: Logger;
  functionLimits: FunctionLimits;
}

export function createStoreContext(options: ContextOptions): RedisStoreContext {
  const { session, layout, functionLimits, isReplicated } = options;
  const { time, workers, connection } = session;
  const encodeArguments = ({ now, options: named, items = [] }: FunctionCall): RedisArgument[] => [
    encodeOptions(functionLimits, now, named),
    ...items,
  ];
  const run: RedisStoreContext["run"] = async (name, on, call) =>
    (await connection()).run(name, on, encodeArguments(call), call);
  return {
    partitions: options.partitions,
    seal: options.seal,
    limits: options.limits,
    logger: options.logger,
    clock: options.clock,
    maxSleepMs: isReplicated ? MAX_SLEEP_WITHOUT_NOTIFICATIONS_MS : MAX_SLEEP_MS,
    run,
    runDurably: async (name, partition, call) =>
      isReplicated
        ? session.runReplicated(name, partition, encodeArguments(call), call)
        : { reply: await run(name, partition, call), confirmed: undefined },
    call: async (command, ...args) => (await connection()).call(command, ...args),
    async connect(now) {
      const wasKnown = time.isKnown;
      await session.open(layout);
      await time.refresh();
      return wasKnown ? now : time.now();
    },
    notifyWorkers: (at) => {
      if (at) workers.notify(Number(at));
    },
    connectionId: session.connectionId,
    onReset: session.reopen,
    isReplicated,
  };
}
