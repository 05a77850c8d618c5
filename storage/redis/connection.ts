/**
 * One connection to Redis, over a client of ioredis. Every call settles within 3.5 seconds, and
 * every failure has a stable code. The error says if the command was never sent, or if it was sent
 * and may have been executed. `src/core/storage-circuit.ts` describes what the services do with
 * such an error.
 */

import { type Clock, withTimeout } from "../../src/core/clock.js";
import { retry } from "../../src/core/retry.js";
import type { ConnectionProblem } from "../connection-problem.js";
import type { RedisArgument, RedisClient } from "./clients.js";
import { type RedisFunction, RedisLibrary } from "./library.js";
import type { KeySet } from "./partition.js";
import {
  classifyRedisError,
  commandNotExecuted,
  describeClientError,
  resultUnknown,
  storageClosed,
  TRANSIENT_ERRORS,
  toPostbellError,
} from "./redis-errors.js";

/** Shorter than the four seconds that the service gives a storage. */
const LIMIT_MS = 3_500;
const RETRY_MS = 50;
const MAX_RETRY_MS = 800;
/**
 * The most calls without a reply on one connection. Then no more are sent, so that few wait on a
 * dead one.
 */
const MAX_UNANSWERED = 4;
/**
 * A connection is replaced if it is silent for so long after a call was given up, ten seconds after
 * that was sent. Its other side may be gone without a word, or hang while Sentinel or the Cluster
 * has already made another server the master. A client of the host repeats the host's commands when
 * it reconnects, so a slow server gets time to reply.
 */
const SILENCE_MS = 6_500;
/** How long a node of a Cluster may take to answer PING after others of its replies are missing. */
const PROBE_MS = 2_000;

export interface CallOptions {
  /** Called with the reply if it arrives after the call was rejected. */
  readonly onLate?: ((reply: unknown) => void) | undefined;
}

export interface RedisConnection {
  readonly call: (command: string, ...args: RedisArgument[]) => Promise<unknown>;
  readonly run: (
    name: RedisFunction,
    on: KeySet,
    args: readonly RedisArgument[],
    options?: CallOptions,
  ) => Promise<unknown>;
  /** Removes the libraries of other versions. A process with one of them loads it again. */
  readonly removeOldLibraries: () => Promise<void>;
  /** Grows each time the client loses its connection. */
  readonly epoch: () => number;
  /** Why there is no connection, if the client said so. */
  readonly problem: () => ConnectionProblem | undefined;
  /** Stops listening to the client, and rejects the calls that have no reply yet. */
  readonly close: () => void;
}

interface Call {
  /** The call was rejected: its caller does not wait for a reply any more. */
  isLate: boolean;
  /** The client has the command, so Redis may be executing it. */
  isSent: boolean;
  /** The kind of the last transient error. */
  refusal: string;
  /** Ends its wait for a connection. */
  wake: () => void;
  /** Rejects the call, without waiting for its reply. */
  abandon: (reason: string) => void;
}

/** Follows the state of a client, and lets calls wait until it is connected. */
interface ClientMonitor {
  epoch: () => number;
  /** Why there is no connection, if the client said so. */
  problem: () => ConnectionProblem | undefined;
  untilReady: (call: Call) => Promise<void>;
  /** Ends the wait of a call; false if it was not waiting. */
  stopWaiting: (call: Call) => boolean;
  close: () => void;
}

const unavailable = (call: Call, reason: string, isOutage?: boolean): Error =>
  (call.isSent ? resultUnknown : commandNotExecuted)(reason, { isOutage });

/** The error of a call while there is no connection. No other call would succeed. */
const disconnected = (call: Call, problem: ConnectionProblem): Error => {
  const cause = { ...problem, isOutage: true };
  if (call.isSent) return resultUnknown(`no connection: ${problem.reason}`, cause);
  return commandNotExecuted(`no connection: ${problem.reason}`, cause);
};

/**
 * A client that is not connected is an outage. If one node of a Cluster does not respond, the
 * others do. `undefined`: unknown.
 */
const toOutage = ({ status, isCluster }: RedisClient): boolean | undefined => {
  if (status !== "ready") return true;
  return isCluster ? false : undefined;
};

const getSecurity = ({ options = {} }: RedisClient): "tls" | "plain" =>
  "tls" in options && options.tls !== undefined ? "tls" : "plain";

function monitorClient(client: RedisClient, onDisconnect: () => void): ClientMonitor {
  const waiting = new Set<Call>();
  /**
   * Grows with each connection that ends. A command that was sent on it gets no reply any more, and
   * with some settings of the client not even an error.
   */
  let epoch = 0;
  let problem: ConnectionProblem | undefined;
  let wasReady = client.status === "ready";

  const onClose = (): void => {
    epoch += 1;
    onDisconnect();
  };
  const wakeAll = (): void => {
    for (const call of waiting) call.wake();
    waiting.clear();
  };
  const onError = (error: unknown): void => {
    const next = describeClientError(error, wasReady ? undefined : getSecurity(client));
    // The end of a connection that was refused is an error too, and explains less.
    if (!problem?.isPermanent || next.isPermanent || !/^(?:ECONNRESET|EPIPE)/.test(next.reason))
      problem = next;
    if (problem.isPermanent) wakeAll();
  };
  const onReady = (): void => {
    problem = undefined;
    wasReady = true;
    wakeAll();
  };
  client.on("close", onClose);
  client.on("error", onError);
  client.on("ready", onReady);
  client.on("end", wakeAll);

  return {
    epoch: () => epoch,
    problem: () => (client.status === "ready" ? undefined : problem),
    async untilReady(call) {
      while (client.status !== "ready" && !call.isLate) {
        if (client.status === "end") throw unavailable(call, "the client is closed", true);
        // Waiting does not help until somebody changes the configuration. The client tries again.
        if (problem?.isPermanent) throw disconnected(call, problem);
        const change = new Promise<void>((resolve) => {
          call.wake = resolve;
          waiting.add(call);
        });
        if (client.status === "wait") void client.connect().catch(() => {});
        await change;
      }
    },
    stopWaiting(call) {
      if (!waiting.delete(call)) return false;
      call.wake();
      return true;
    },
    close() {
      client.off("ready", onReady);
      client.off("end", wakeAll);
      client.off("close", onClose);
      client.off("error", onError);
    },
  };
}

/**
 * Replaces a connection on which no reply arrives. Of a Cluster only those to silent nodes: the
 * client then asks the other nodes who has their slots.
 */
function reconnect(client: RedisClient, clock: Clock): void {
  if (client.status !== "ready") return;
  if (client.nodes === undefined) {
    client.disconnect(true);
    return;
  }
  for (const node of client.nodes("master")) {
    // A node without a connection is in nobody's way.
    if (node.status !== "ready" && node.status !== "connect") continue;
    const drop = (): Error => {
      node.disconnect();
      return resultUnknown("no reply in time");
    };
    void withTimeout(clock, PROBE_MS, node.call("PING"), drop).catch(() => {});
  }
}

const ignore = (): void => {};

/**
 * Errors of all calls: `storage_full` if Redis refuses to grow, otherwise `storage_unavailable`.
 * `isOwn`: the client is not the host's, so its connection is replaced as soon as two calls have no
 * reply in time.
 */
export function createRedisConnection(client: RedisClient, clock: Clock, isOwn: boolean): RedisConnection {
  const calls = new Set<Call>();
  let isClosed = false;
  let unanswered = 0;
  /** When the first call that has no reply was given up. */
  let silentSince: number | undefined;
  const monitor = monitorClient(client, () => {
    unanswered = 0;
    silentSince = undefined;
  });
  const replaceIfSilent = (): void => {
    const now = clock.monotonic();
    if (silentSince === undefined || now - silentSince < SILENCE_MS) return;
    silentSince = now;
    reconnect(client, clock);
  };

  /** Waits here, not in the client: a queue of the client has no bound. */
  const untilConnected = async (call: Call): Promise<void> => {
    if (client.status !== "ready") await monitor.untilReady(call);
    if (unanswered < MAX_UNANSWERED) return;
    replaceIfSilent();
    throw unavailable(call, "it does not reply to earlier commands");
  };

  const sendOnce = async (call: Call, send: () => Promise<unknown>): Promise<unknown> => {
    await untilConnected(call);
    if (call.isLate) throw unavailable(call, "too late");
    const mayHaveRun = call.isSent;
    const sentIn = monitor.epoch();
    call.isSent = true;
    try {
      return await send();
    } catch (error) {
      const kind = classifyRedisError(error);
      if (call.isLate || !TRANSIENT_ERRORS.has(kind)) throw error;
      // After a reconnect, the refusal may answer a second transmission of an executed command.
      const isFirst = !mayHaveRun && !client.isCluster && sentIn === monitor.epoch();
      call.isSent = !isFirst;
      call.refusal = kind;
      throw error;
    }
  };

  const attempt = (call: Call, send: () => Promise<unknown>): Promise<unknown> =>
    retry(() => sendOnce(call, send), {
      clock,
      shouldRetry: (error) => !call.isLate && TRANSIENT_ERRORS.has(classifyRedisError(error)),
      pauseMs: (count) => Math.min(RETRY_MS * 2 ** (count - 1), MAX_RETRY_MS),
    });

  const toAbandonedError = (call: Call, reason: string): Error => {
    if (isClosed) return unavailable(call, reason, false);
    const problem = monitor.problem();
    if (problem !== undefined) return disconnected(call, problem);
    const because = call.refusal === "" ? reason : `it refuses commands: ${call.refusal}`;
    return unavailable(call, because, toOutage(client));
  };

  /** Follows up a call that was rejected before its reply came. */
  const followUp = (call: Call, reply: Promise<unknown>, { onLate }: CallOptions): void => {
    call.isLate = true;
    if (!monitor.stopWaiting(call)) {
      unanswered += 1;
      silentSince ??= clock.monotonic();
      const sentIn = monitor.epoch();
      const answered = (): void => {
        if (sentIn !== monitor.epoch()) return;
        unanswered -= 1;
        silentSince = undefined;
      };
      reply.then(answered, answered);
      if (isOwn && unanswered > 1) reconnect(client, clock);
      else replaceIfSilent();
    }
    if (onLate) reply.then(onLate).catch(() => {});
  };

  const settleInTime = (send: () => Promise<unknown>, options: CallOptions = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (isClosed) {
        reject(storageClosed());
        return;
      }
      const call: Call = { isLate: false, isSent: false, refusal: "", wake: () => {}, abandon: () => {} };
      const reply = attempt(call, send);
      const timer = clock.setTimeout(
        () => call.abandon(call.isSent ? "no reply in time" : "no connection in time"),
        LIMIT_MS,
      );
      const end = (): void => {
        clock.clearTimeout(timer);
        calls.delete(call);
      };
      calls.add(call);
      call.abandon = (reason) => {
        end();
        followUp(call, reply, options);
        reject(toAbandonedError(call, reason));
      };
      reply.then(
        (answer) => {
          end();
          resolve(answer);
        },
        (error: unknown) => {
          end();
          reject(toPostbellError(error, client.isCluster ? toOutage(client) : undefined));
        },
      );
    });

  const library = new RedisLibrary(client);

  return {
    call: (command, ...args) => settleInTime(() => client.call(command, ...args)),
    run: (name, { keys }, args, options) => settleInTime(() => library.run(name, keys, args), options),
    // Without the right to do so, they stay.
    removeOldLibraries: () => settleInTime(() => library.removeOthers()).then(ignore, ignore),
    epoch: monitor.epoch,
    problem: monitor.problem,
    close() {
      isClosed = true;
      monitor.close();
      for (const call of calls) call.abandon("the storage was closed");
    },
  };
}
