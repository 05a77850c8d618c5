/** What the services on one storage share: its connections, its time, its hints. */

import { type Clock, withTimeout } from "../../src/core/clock.js";
import type { Logger } from "../../src/core/logger.js";
import { inspect, type StorageReport } from "./check.js";
import type { RedisArgument, RedisClient } from "./client.js";
import type { Connections } from "./connections.js";
import type { LayoutGuard } from "./layout.js";
import { type CallOptions, createRedisLink, type RedisLink, storageUnavailable } from "./link.js";
import type { KeySet, Partitions } from "./partition.js";
import { createReplicationCheck } from "./replication.js";
import { SCRIPTS, type Script } from "./scripts.js";
import { createClockTime, createServerTime, type ServerTime } from "./server-time.js";
import { createWorkerNotifications, type WorkerNotifications } from "./worker-notifications.js";

/** What the way to Redis and back may add to the time that WAIT itself takes. */
const WAIT_MARGIN_MS = 500;

export interface Session {
  readonly time: ServerTime;
  readonly hints: WorkerNotifications;
  readonly link: () => Promise<RedisLink>;
  /** Names the connection: a server cannot lose what it stored without ending it. `NaN`, which equals nothing, before there is one, and in a Cluster, whose nodes fail unseen. */
  readonly connectionId: () => number;
  /** Connects, holds this process to the layout, reads the time and logs warnings, once; again after a failure. */
  readonly open: (hold: LayoutGuard) => Promise<void>;
  /** Redis was emptied: what was stored at the beginning has to be stored again. */
  readonly reopen: () => void;
  /** Runs a script on a connection of its own and asks for a replica. */
  readonly runReplicated: (
    script: Script,
    on: KeySet,
    args: readonly RedisArgument[],
    options?: CallOptions,
  ) => Promise<{ readonly reply: unknown; readonly confirmed: boolean }>;
  /** What each server says of itself. */
  readonly inspect: () => Promise<readonly Omit<StorageReport, "repaired">[]>;
  /** Lets go of the clients, which may be the host's. */
  readonly close: () => void;
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

async function askTime(link: RedisLink, { all: [partition] }: Partitions): Promise<number> {
  if (!partition) throw new RangeError("a storage has at least one partition");
  const [seconds, micros] = (await link.run(SCRIPTS.time, partition, [])) as string[];
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}

const nodesOf = (client: RedisClient): readonly RedisClient[] => client.nodes?.("master") ?? [client];

export function createSession({
  clock,
  logger,
  connections,
  partitions,
  prefix,
  time: whose,
  isReplicated,
  replicationTimeoutMs,
}: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly connections: Connections;
  readonly partitions: Partitions;
  readonly prefix: string;
  readonly time: "server" | "clock";
  readonly isReplicated: boolean;
  readonly replicationTimeoutMs: number;
}): Session {
  const links = new Set<RedisLink>();
  let isClosed = false;
  const linkTo = (client: RedisClient, isOwn: boolean): RedisLink => {
    const made = createRedisLink(client, clock, isOwn ? () => client.disconnect(true) : null);
    if (isClosed) made.close();
    else links.add(made);
    return made;
  };
  let connectionId = (): number => Number.NaN;
  const link = once(async () => {
    const client = await connections.main();
    const made = linkTo(client, connections.isOwn);
    if (client.nodes === undefined) connectionId = made.epoch;
    return made;
  });
  const time =
    whose === "clock"
      ? createClockTime(clock)
      : createServerTime(clock, async () => askTime(await link(), partitions));
  const hints = createWorkerNotifications({
    channel: `{${prefix}}:hints`,
    now: time.now,
    publish: async (channel, at) => (await link()).call("PUBLISH", channel, at),
    subscriber: isReplicated ? null : connections.listening,
  });
  const replicated = once(async () => {
    const client = await connections.second();
    return {
      client,
      link: linkTo(client, true),
      check: createReplicationCheck(client, replicationTimeoutMs),
    };
  });
  const isConfirmedInTime = (answer: Promise<boolean>): Promise<boolean> =>
    withTimeout(clock, 2 * replicationTimeoutMs + WAIT_MARGIN_MS, answer, () =>
      storageUnavailable("no answer in time"),
    ).catch(() => false);
  const inspectAll = async (): Promise<readonly Omit<StorageReport, "repaired">[]> =>
    Promise.all(
      nodesOf(await connections.main()).map(async (node) => {
        const own = linkTo(node, false);
        try {
          return await inspect(own, time.skewMs());
        } finally {
          own.close();
          links.delete(own);
        }
      }),
    );

  const warn = async (): Promise<void> => {
    // A server that lets nobody look at it is no reason not to work.
    const reports = await inspectAll().catch(() => []);
    for (const warning of new Set(reports.flatMap(({ warnings }) => warnings))) logger.warn({}, warning);
  };
  const opened = new Map<LayoutGuard, Promise<void>>();
  const open = async (hold: LayoutGuard): Promise<void> => {
    await hold(await link());
    await time.refresh();
    void warn();
  };

  return {
    time,
    hints,
    link,
    connectionId: () => connectionId(),
    open(hold) {
      const known = opened.get(hold);
      if (known !== undefined) return known;
      const opening = open(hold).catch((error: unknown) => {
        opened.delete(hold);
        throw error;
      });
      opened.set(hold, opening);
      return opening;
    },
    reopen: () => opened.clear(),
    async runReplicated(script, on, args, { wasDone = () => true } = {}) {
      const { client, link: own, check } = await replicated();
      // There has to be a connection that can be remembered.
      if (client.status !== "ready") await own.call("PING");
      const isConfirmed = await check.begin(on);
      const reply = await own.run(script, on, args);
      return { reply, confirmed: wasDone(reply) && (await isConfirmedInTime(isConfirmed())) };
    },
    inspect: inspectAll,
    close() {
      isClosed = true;
      hints.close();
      for (const own of links) own.close();
    },
  };
}
