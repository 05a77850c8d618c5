/** What the parts of the store work with: one service on one Redis. */

import type { Clock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import type { Logger } from "../../src/core/logger.js";
import type { RedisArgument } from "./client.js";
import type { CallOptions } from "./link.js";
import type { Partition, Partitions } from "./partition.js";
import type { Script } from "./scripts.js";
import type { Seal } from "./seal.js";

export interface RedisLimits {
  readonly pending: number;
  readonly pendingPerAccount: number;
}

export interface RedisBinding {
  readonly partitions: Partitions;
  readonly seal: Seal;
  readonly limits: RedisLimits;
  readonly logger: Logger;
  /** Runs a script on a partition; what every script takes goes before `args`. */
  readonly run: (
    script: Script,
    partition: Partition,
    now: number,
    args: readonly RedisArgument[],
    options?: CallOptions,
  ) => Promise<unknown>;
  /** The same for what has to be durable: also tells whether a replica has it, `undefined` where the storage does not ask. */
  readonly runDurably: (
    script: Script,
    partition: Partition,
    now: number,
    args: readonly RedisArgument[],
    options?: CallOptions,
  ) => Promise<{ readonly reply: unknown; readonly confirmed: boolean | undefined }>;
  /** Sends a command that only reads. */
  readonly call: (command: string, ...args: readonly RedisArgument[]) => Promise<unknown>;
  readonly clock: Clock;
  /** How long ended events are kept, in ms. */
  readonly retentionMs: number;
  /** Opens the connection with the first call, and keeps the time. Until it has been read, `now` of a caller is not the storage's. */
  readonly at: (now: number) => Promise<number>;
  /** Makes known that something may be due then; an empty text says nothing. */
  readonly hint: (at: string | undefined) => void;
  /** As `connection` of the session. */
  readonly connection: () => number;
  /** Redis was emptied or replaced. */
  readonly onReset: () => void;
  readonly isReplicated: boolean;
  readonly maxSleepMs: number;
}

/** Digits and letters of which a cursor is made. */
export function readCursor(cursor: string | undefined, form: RegExp): string {
  if (cursor === undefined) return "";
  if (!form.test(cursor)) {
    throw new PostbellError("invalid_argument", "cursor must be the `next` of the page before.", {
      field: "cursor",
    });
  }
  return cursor;
}

export const storageFull = (bound: string, limits: RedisLimits): PostbellError =>
  new PostbellError(
    "storage_full",
    `The Redis storage has reached limits.${bound} (${limits[bound as keyof RedisLimits]} in this partition); nothing was stored. Raise it, or try again later.`,
    { field: `limits.${bound}` },
  );
