/**
 * The context that all parts of one webhook store share: partitions, settings, and ways to call
 * Redis.
 */

import type { Clock } from "../../src/core/clock.js";
import type { Logger } from "../../src/core/logger.js";
import type { Seal } from "../seal.js";
import type { RedisArgument } from "./clients.js";
import type { CallOptions } from "./connection.js";
import type { RedisFunction } from "./library.js";
import type { KeySet, PartitionLimits, Partitions } from "./partition.js";

/** How a script of the webhook store is called. */
export interface ScriptCall extends CallOptions {
  /** The time of the storage, in epoch ms. */
  readonly now: number;
  /** The named options of the script; absent ones are `undefined`. */
  readonly options?: object | undefined;
  /** The arguments of the items that the script handles. */
  readonly items?: readonly RedisArgument[] | undefined;
}

/** The limits that every script takes among its options. */
export interface ScriptLimits {
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
  /** Runs a script on a partition, with the limits among its options. */
  readonly run: (name: RedisFunction, partition: KeySet, call: ScriptCall) => Promise<unknown>;
  /**
   * Like `run`, for changes that have to be durable: also resolves with whether a replica has it.
   */
  readonly runDurably: (name: RedisFunction, partition: KeySet, call: ScriptCall) => Promise<DurableReply>;
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
export const encodeOptions = (limits: ScriptLimits, now: number, options?: object): string =>
  JSON.stringify({ now, ...limits, ...options });
