/**
 * Errors of the Redis storage. Every failure of Redis or its client becomes a `PostbellError` with
 * a stable code: `storage_full` if a bound is reached, otherwise `storage_unavailable`.
 */

import { PostbellError } from "../../src/core/errors.js";
import type { PartitionLimits } from "./partition.js";

/**
 * Kinds of errors after which nothing was done, so that the command may be sent again: Redis cannot
 * serve for a moment, or ioredis could not write to the socket (`Stream`).
 */
export const TRANSIENT_ERRORS: ReadonlySet<string> = new Set([
  "LOADING",
  "BUSY",
  "MASTERDOWN",
  "CLUSTERDOWN",
  "TRYAGAIN",
  "READONLY",
  "Stream",
]);

const SCRIPT = "@user_script:";

/**
 * Returns the kind of an error: the first word of an error reply, or the code of a system error. Up
 * to Redis 6.2 the error of a script names the line first, so its kind follows that. The rest of
 * the message may quote what was sent, so it is never logged or returned.
 */
export const classifyRedisError = (error: unknown): string => {
  const { message, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  const text = message ?? String(error);
  const kind = parseScriptError(text) ?? code ?? text.split(" ", 1)[0] ?? "";
  return /^(?:[A-Z_]{2,30}|Stream|Connection)$/.test(kind) ? kind : "error";
};

/**
 * Parses the kind after the last line of a script that an error names: `@user_script: 3: -OOM …`.
 */
function parseScriptError(text: string): string | undefined {
  const at = text.lastIndexOf(SCRIPT);
  return at === -1 ? undefined : /^ ?\d+: -([A-Z]+)\b/.exec(text.slice(at + SCRIPT.length))?.[1];
}

/** Returns the line of a script that an error names. It contains nothing that was stored. */
const findScriptLine = (error: unknown): string => /user_script: ?\d+/.exec(String(error))?.[0] ?? "";

/** The error for a command that Redis cannot have executed: it was not sent, or it was refused. */
export const commandNotExecuted = (reason: string): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    `Redis is not available (${reason}); the command was not executed, so nothing was changed. Try again later.`,
    { effect: "none" },
  );

/** The error for a command that was sent and has no usable reply. */
export const resultUnknown = (reason: string): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    `Redis is not available (${reason}); the command may or may not have been executed. Try again later.`,
  );

/** Translates an error reply, or an error of the client, into an error of the storage. */
export function toPostbellError(error: unknown): PostbellError {
  if (error instanceof PostbellError) return error;
  const kind = classifyRedisError(error);
  if (kind === "OOM") {
    return new PostbellError(
      "storage_full",
      "Redis has reached its maxmemory; nothing was stored. Raise it, or try again later.",
      { field: "maxmemory" },
    );
  }
  return resultUnknown(`${kind} ${findScriptLine(error)}`.trim());
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
    { effect: "none" },
  );
