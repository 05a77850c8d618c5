/**
 * Errors of the Redis storage. Every failure of Redis or its client becomes a `PostbellError` with
 * a stable code: `storage_full` if a bound is reached, otherwise `storage_unavailable`.
 */

import { PostbellError } from "../../src/core/errors.js";
import { type ConnectionProblem, describeConnectionProblem } from "../connection-problem.js";
import type { PartitionLimits } from "./partition.js";

/**
 * Kinds of errors after which nothing was done, so that the command may be sent again: Redis cannot
 * serve for a moment, another process removed the library, or ioredis could not write to the socket
 * (`Stream`).
 */
export const TRANSIENT_ERRORS: ReadonlySet<string> = new Set([
  "LOADING",
  "BUSY",
  "MASTERDOWN",
  "CLUSTERDOWN",
  "TRYAGAIN",
  "NOFUNCTION",
  "READONLY",
  "Stream",
]);

/** ioredis 5 puts it before the reply to its first command. */
const NOT_READY = /^Ready check failed: ?/;

/** Names what to change if Redis refuses this client, by the kind of its reply. */
const ADVICE: Readonly<Record<string, string>> = {
  WRONGPASS: "Correct the user name and the password of the connection.",
  NOAUTH:
    "Redis requires a password. Put the user name and the password into the URL, or give a client that has them.",
  NOCOMMAND:
    "Postbell calls functions of Redis. Use Redis 7 or newer, Valkey 7.2 or newer, or a service that has FCALL and FUNCTION LOAD.",
  NOPERM: "Grant the user of the connection the commands, keys and channels of Postbell with ACL SETUSER.",
};

/**
 * Returns the kind of an error: the first word of an error reply, or the code of a system error.
 * `NOCOMMAND` and `NOFUNCTION` name replies that begin with the general `ERR`. The rest of the
 * message may quote what was sent, so it is never logged or returned.
 */
export const classifyRedisError = (error: unknown): string => {
  const { message, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  const text = (message ?? String(error)).replace(NOT_READY, "");
  if (text.startsWith("ERR unknown command")) return "NOCOMMAND";
  if (text === "ERR Function not found") return "NOFUNCTION";
  const kind = code ?? text.split(" ", 1)[0] ?? "";
  // ioredis says "Connection is closed." without a code.
  if (kind === "Connection") return "CONNECTION_CLOSED";
  return /^(?:[A-Z_]{2,30}|Stream)$/.test(kind) ? kind : "error";
};

/** Returns the line of the library that an error names. It contains nothing that was stored. */
const findLibraryLine = (error: unknown): string =>
  /user_(?:function|script): ?\d+/.exec(String(error))?.[0] ?? "";

/** Returns the command that a `NOPERM` names: it is a fixed name, not what was sent with it. */
const findRefusedCommand = (error: unknown): string =>
  / the '([a-z|]{1,40})' command/.exec(String(error))?.[1] ?? "";

/**
 * Describes an error of a client that cannot connect. `firstWith`: how it tries to connect for the
 * first time, or `undefined` if it was connected before. A server without TLS does not answer a
 * client with it at all, and a server with TLS only resets the connection of one without.
 */
export function describeClientError(
  error: unknown,
  firstWith: "tls" | "plain" | undefined,
): ConnectionProblem {
  // The client of a Cluster reports that all nodes failed, with the error of the last one.
  const { lastNodeError } = error as { lastNodeError?: unknown };
  if (lastNodeError instanceof Error) return describeClientError(lastNodeError, firstWith);
  const kind = classifyRedisError(error);
  const advice = ADVICE[kind];
  if (advice !== undefined) return { reason: kind, advice, isPermanent: true };
  const problem = describeConnectionProblem(error);
  if (problem === undefined) return { reason: kind, advice: "", isPermanent: false };
  const { reason } = problem;
  if (firstWith === "tls" && reason.startsWith("ETIMEDOUT"))
    return { ...problem, advice: "If Redis does not speak TLS on this port, begin the URL with redis://." };
  if (firstWith === "plain" && reason.startsWith("ECONNRESET"))
    return { ...problem, advice: "If Redis speaks only TLS on this port, begin the URL with rediss://." };
  return problem;
}

/** The known part of the cause of an error. */
interface Cause extends Partial<ConnectionProblem> {
  /** See `PostbellError`. */
  isOutage?: boolean | undefined;
}

/** The error for a command that Redis cannot have executed: it was not sent, or it was refused. */
export const commandNotExecuted = (because: string, cause: Cause = {}): PostbellError => {
  const { reason = because, advice = "", isPermanent = false, isOutage } = cause;
  const action =
    advice === "" ? "Try again later." : isPermanent ? advice : `${advice} Otherwise try again later.`;
  return new PostbellError(
    "storage_unavailable",
    `Redis ${isPermanent ? "refuses this process" : "is not available"} (${because}); the command was not executed, so nothing was changed. ${action}`,
    { effect: "none", reason, isPermanent, isOutage },
  );
};

/** The error for a command that was sent and has no usable reply. */
export const resultUnknown = (because: string, { reason = because, isOutage }: Cause = {}): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    `Redis is not available (${because}); the command may or may not have been executed. Try again later.`,
    { reason, isOutage },
  );

/**
 * Translates an error reply, or an error of the client, into an error of the storage. `isOutage`:
 * see `PostbellError`.
 */
export function toPostbellError(error: unknown, isOutage: boolean | undefined): PostbellError {
  if (error instanceof PostbellError) return error;
  const kind = classifyRedisError(error);
  if (kind === "OOM") {
    return new PostbellError(
      "storage_full",
      "Redis has reached its maxmemory; nothing was stored. Raise it, or try again later.",
      { field: "maxmemory" },
    );
  }
  const advice = ADVICE[kind];
  const line = findLibraryLine(error);
  // A function that was refused halfway may have changed something.
  if (advice === undefined || line !== "") return resultUnknown(`${kind} ${line}`.trim(), { isOutage });
  const reason = `${kind} ${findRefusedCommand(error)}`.trim();
  return commandNotExecuted(reason, { reason, advice, isPermanent: true });
}

/** The error for a bound of the storage itself, in the words of its option. */
export const partitionFull = (bound: string, limits: PartitionLimits): PostbellError =>
  new PostbellError(
    "storage_full",
    `The Redis storage has reached limits.${bound} (${limits[bound as keyof PartitionLimits]} in this partition); nothing was stored. Raise it, or try again later.`,
    { field: `limits.${bound}` },
  );

export const storageClosed = (): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    "The storage has been closed; the command was not sent. Create another storage to go on.",
    { effect: "none", isPermanent: true, isOutage: false },
  );
