/** One connection to Redis: every call on it settles in time, and every failure has a stable code. */

import type { Clock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import type { RedisArgument, RedisClient } from "./client.js";
import type { KeySet } from "./partition.js";
import type { Script } from "./scripts.js";

/** Shorter than the four seconds that the service gives a storage. */
const LIMIT_MS = 3_500;
const RETRY_MS = 50;
const MAX_RETRY_MS = 800;

/** What Redis answers while it cannot serve for a moment, and what ioredis says where it cannot send (`Stream`): nothing was done, so the command may be sent again. */
const PASSING = new Set(["LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "Stream"]);

const SCRIPT = "@user_script:";

/**
 * The first word of an error reply names its kind, as the code of a system error does; up to Redis 6.2 that of a script stands behind where it failed.
 * The rest may quote what was sent, and goes nowhere.
 */
export const classifyRedisError = (error: unknown): string => {
  const { message, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  const text = message ?? String(error);
  const word = scriptErrorOf(text) ?? code ?? text.split(" ", 1)[0] ?? "";
  return /^(?:[A-Z_]{2,30}|Stream|Connection)$/.test(word) ? word : "error";
};

/** The word after the last place in a script that an error names: `@user_script: 3: -OOM …`. */
function scriptErrorOf(text: string): string | undefined {
  const at = text.lastIndexOf(SCRIPT);
  return at === -1 ? undefined : /^ ?\d+: -([A-Z]+)\b/.exec(text.slice(at + SCRIPT.length))?.[1];
}

/** Redis says where in a script it failed, which holds nothing that was stored. */
const defectOf = (error: unknown): string => /user_script: ?\d+/.exec(String(error))?.[0] ?? "";

export const storageUnavailable = (what: string): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    `Redis is not available (${what}); whether it did what was asked is unknown.`,
  );

function toPostbellError(error: unknown): PostbellError {
  const kind = classifyRedisError(error);
  if (kind === "OOM") {
    return new PostbellError(
      "storage_full",
      "Redis has reached its maxmemory; nothing was stored. Raise it, or try again later.",
      { field: "maxmemory" },
    );
  }
  return storageUnavailable(`${kind} ${defectOf(error)}`.trim());
}

export interface CallOptions {
  /** Called with the answer where it comes after the caller was told that there is none. */
  readonly onLate?: ((reply: unknown) => void) | undefined;
  /** False for a reply that says that nothing was changed: then no replica is asked for it. */
  readonly wasDone?: ((reply: unknown) => boolean) | undefined;
}

export interface RedisLink {
  readonly call: (command: string, ...args: RedisArgument[]) => Promise<unknown>;
  readonly run: (
    script: Script,
    on: KeySet,
    args: readonly RedisArgument[],
    options?: CallOptions,
  ) => Promise<unknown>;
  /** Grows with each connection that ends. */
  readonly epoch: () => number;
  /** Stops listening to the client, and ends the calls that have no answer yet. */
  readonly close: () => void;
}

/** Calls that may go on without an answer, before no more are made: what is under way on a dead connection must stay few. */
const MAX_UNANSWERED = 4;

interface Call {
  /** Its caller has been told that there is no answer. */
  isLate: boolean;
  /** Ends its wait for a connection. */
  wake: () => void;
  /** Tells its caller so, whatever comes. */
  abandon: (why: string) => void;
}

/**
 * Errors of all calls: `storage_full` where Redis refuses to grow, else `storage_unavailable`.
 * `restart` replaces a connection that no answer comes from; none for one that belongs to the host.
 */
export function createRedisLink(client: RedisClient, clock: Clock, restart: (() => void) | null): RedisLink {
  const calls = new Set<Call>();
  const waiting = new Set<Call>();
  let unanswered = 0;
  /** Grows with each connection that ends: what was sent on it gets no answer any more, with some settings of the client not even an error. */
  let epoch = 0;
  /** Why there is no connection, as far as the client said. */
  let trouble = "";

  const onClose = (): void => {
    epoch += 1;
    unanswered = 0;
  };
  const onError = (error: unknown): void => {
    trouble = classifyRedisError(error);
  };
  client.on("close", onClose);
  client.on("error", onError);

  const wakeAll = (): void => {
    for (const call of waiting) call.wake();
    waiting.clear();
  };
  client.on("ready", wakeAll);
  client.on("end", wakeAll);

  /** A command is only handed to a client that is connected: what it would queue instead has no bound. */
  const connected = async (call: Call): Promise<void> => {
    while (client.status !== "ready" && !call.isLate) {
      if (client.status === "end") throw storageUnavailable("the client is closed");
      const change = new Promise<void>((resolve) => {
        call.wake = resolve;
        waiting.add(call);
      });
      if (client.status === "wait") void client.connect().catch(() => {});
      await change;
    }
    if (unanswered >= MAX_UNANSWERED) throw storageUnavailable("it does not answer");
  };

  const pause = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimeout(resolve, ms));

  const attempt = async (call: Call, send: () => Promise<unknown>): Promise<unknown> => {
    for (let delay = RETRY_MS; ; delay = Math.min(2 * delay, MAX_RETRY_MS)) {
      await connected(call);
      if (call.isLate) throw storageUnavailable("too late");
      try {
        return await send();
      } catch (error) {
        if (call.isLate || !PASSING.has(classifyRedisError(error))) throw error;
      }
      await pause(delay);
    }
  };

  /** What a call leaves behind that has no answer yet. */
  const followUp = (call: Call, reply: Promise<unknown>, { onLate }: CallOptions): void => {
    call.isLate = true;
    if (waiting.delete(call)) {
      call.wake();
    } else {
      unanswered += 1;
      const sentIn = epoch;
      const answered = (): void => {
        if (sentIn === epoch) unanswered -= 1;
      };
      reply.then(answered, answered);
      if (unanswered > 1) restart?.();
    }
    if (onLate) reply.then(onLate).catch(() => {});
  };

  const settled = (send: () => Promise<unknown>, options: CallOptions = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const call: Call = { isLate: false, wake: () => {}, abandon: () => {} };
      const reply = attempt(call, send);
      const timer = clock.setTimeout(() => call.abandon("no answer in time"), LIMIT_MS);
      const end = (): void => {
        clock.clearTimeout(timer);
        calls.delete(call);
      };
      calls.add(call);
      call.abandon = (why) => {
        end();
        followUp(call, reply, options);
        reject(
          storageUnavailable(client.status === "ready" || trouble === "" ? why : `no connection: ${trouble}`),
        );
      };
      reply.then(
        (answer) => {
          end();
          resolve(answer);
        },
        (error: unknown) => {
          end();
          reject(error instanceof PostbellError ? error : toPostbellError(error));
        },
      );
    });

  return {
    call: (command, ...args) => settled(() => client.call(command, ...args)),
    run(script, { keys }, args, options) {
      const send = async (): Promise<unknown> => {
        try {
          return await client.call("EVALSHA", script.digest, keys.length, ...keys, ...args);
        } catch (error) {
          if (classifyRedisError(error) !== "NOSCRIPT") throw error;
          return client.call("EVAL", script.text, keys.length, ...keys, ...args);
        }
      };
      return settled(send, options);
    },
    epoch: () => epoch,
    close() {
      client.off("ready", wakeAll);
      client.off("end", wakeAll);
      client.off("close", onClose);
      client.off("error", onError);
      for (const call of calls) call.abandon("the storage was closed");
    },
  };
}
