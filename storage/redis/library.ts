/**
 * The library of Lua functions that Redis runs (`FUNCTION LOAD`), assembled from the files in
 * `library`. A function runs on the keys of one partition, of its audit log, or of the content.
 * `docs/decisions/redis-functions.md` says why they are functions.
 */

import { createHash } from "node:crypto";
import * as constants from "../queue/constants.js";
import type { RedisArgument, RedisClient } from "./clients.js";
import accounts from "./library/accounts.lua";
import append from "./library/append.lua";
import base from "./library/base.lua";
import claim from "./library/claim.lua";
import completion from "./library/completion.lua";
import content from "./library/content.lua";
import define from "./library/define.lua";
import deliveries from "./library/deliveries.lua";
import endpoints from "./library/endpoints.lua";
import erasure from "./library/erasure.lua";
import read from "./library/read.lua";
import records from "./library/records.lua";
import recover from "./library/recover.lua";
import registrations from "./library/registrations.lua";
import repair from "./library/repair.lua";
import retention from "./library/retention.lua";
import rules from "./library/rules.lua";
import settle from "./library/settle.lua";
import singleKey from "./library/single-key.lua";
import { CONTENT_KEYS, PARTITION_KEYS } from "./partition.js";
import { classifyRedisError } from "./redis-errors.js";

/** The functions of the library, as the files in `library` define them. */
export type RedisFunction =
  | "addDataKey"
  | "append"
  | "audit"
  | "claim"
  | "claimHealthNotifications"
  | "contentAllocate"
  | "contentChanges"
  | "contentCommit"
  | "contentRead"
  | "contentRemove"
  | "contentScan"
  | "contentSizes"
  | "create"
  | "eraseAccount"
  | "eraseAudit"
  | "eraseDataKey"
  | "eraseEvents"
  | "readAccounts"
  | "readCounts"
  | "readDeliveries"
  | "readDelivery"
  | "readEvent"
  | "readEvents"
  | "readFailingAccounts"
  | "readFeed"
  | "readStats"
  | "readWebhook"
  | "readWebhooks"
  | "recover"
  | "remove"
  | "repair"
  | "repairCounts"
  | "replaceDataKey"
  | "resend"
  | "settle"
  | "settleHealthNotification"
  | "tidy"
  | "time"
  | "update";

/** The numbers of `storage/queue/constants.ts` as Lua's locals. */
const CONSTANTS = Object.entries(constants).map(([name, value]) => `local ${name} = ${value}`);

/** The rules of `storage/queue` in Lua, as the test of the vectors loads them. */
export const RULES = [...CONSTANTS, rules].join("\n");

const toLuaList = (name: string, keys: readonly string[]): string =>
  `local ${name} = { ${keys.map((key) => `'${key}'`).join(", ")} }`;

/**
 * The files whose locals the others use, and those with locals of their own: Lua allows 200 of them
 * at a time.
 */
const SHARED = [base, RULES, records, endpoints, deliveries, completion, accounts, define];
const SEPARATE = [
  claim,
  append,
  settle,
  recover,
  retention,
  erasure,
  registrations,
  read,
  repair,
  singleKey,
  content,
];

/** The text of the library, except the lines that name it. */
const BODY = [
  toLuaList("PARTITION_KEYS", PARTITION_KEYS),
  toLuaList("AUDIT_KEYS", ["audit"]),
  toLuaList("DATA_KEYS", ["dataKeys", "erasedKeys"]),
  toLuaList("CONTENT_KEYS", CONTENT_KEYS),
  ...SHARED,
  ...SEPARATE.map((file) => `do\n${file}end`),
].join("\n");

/** Names the text, so that processes with different versions of Postbell share a server. */
const VERSION = createHash("sha1").update(BODY).digest("hex").slice(0, 12);

const LIBRARY_PREFIX = "postbell_";
/** Every library of Postbell is named like this, and only those are removed. */
const LIBRARY_OF_POSTBELL = /^postbell_[0-9a-f]{12}$/;

export const LIBRARY_NAME = `${LIBRARY_PREFIX}${VERSION}`;

/** The text for `FUNCTION LOAD`, whose first line has to name the library. */
export const LIBRARY = `#!lua name=${LIBRARY_NAME}
local FUNCTION_PREFIX, register = '${LIBRARY_NAME}_', redis.register_function
${BODY}`;

/**
 * The library as a script, for a Redis that is too full to load it. The last argument names the
 * function. One that may not grow a full Redis is refused, as if Redis had done so.
 */
const SCRIPT = `#!lua flags=allow-oom
local FUNCTION_PREFIX, functions = '', {}
local function register(registered) functions[registered.function_name] = registered end
${BODY}
local called = functions[table.remove(ARGV)]
if #called.flags == 0 then return redis.error_reply('OOM the library cannot be loaded') end
return called.callback(KEYS, ARGV)`;

/** The name by which Redis knows a function. Names are unique on a server. */
export const toFunctionName = (name: RedisFunction): string => `${LIBRARY_NAME}_${name}`;

const isMissing = (error: unknown): boolean => classifyRedisError(error) === "NOFUNCTION";
const isFull = (error: unknown): boolean => classifyRedisError(error) === "OOM";

/**
 * Calls the functions, and loads the library where it is missing: on a server that is new, was
 * emptied with its functions, or had another version of Postbell. Replicas and restarts keep it.
 * Each master of a Cluster needs it.
 */
export class RedisLibrary {
  readonly #client: RedisClient;
  #loading: Promise<readonly unknown[]> | undefined;

  constructor(client: RedisClient) {
    this.#client = client;
  }

  async run(name: RedisFunction, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown> {
    const call = () => this.#client.call("FCALL", toFunctionName(name), keys.length, ...keys, ...args);
    try {
      return await call();
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    const refusals = await this.#load();
    try {
      return await call();
    } catch (error) {
      // Another master may have refused the library: only this call tells.
      if (!isMissing(error) || refusals.length === 0) throw error;
    }
    if (!refusals.some(isFull)) throw refusals[0];
    return this.#client.call("EVAL", SCRIPT, keys.length, ...keys, ...args, name);
  }

  async removeOthers(): Promise<void> {
    await Promise.all(this.#listNodes().map(removeOtherLibraries));
  }

  /** Resolves with the errors of masters that refused. Calls at the same time share one load. */
  #load(): Promise<readonly unknown[]> {
    this.#loading ??= Promise.allSettled(this.#listNodes().map(loadLibrary)).then((results) => {
      this.#loading = undefined;
      return results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    });
    return this.#loading;
  }

  /** The master that misses a function has a connection: it has replied. */
  #listNodes(): readonly RedisClient[] {
    const masters = this.#client.nodes?.("master");
    return masters?.filter(({ status }) => status === "ready") ?? [this.#client];
  }
}

async function loadLibrary(node: RedisClient): Promise<void> {
  try {
    await node.call("FUNCTION", "LOAD", LIBRARY);
  } catch (error) {
    // Another process was faster.
    if (!String(error).includes("already exists")) throw error;
  }
}

async function removeOtherLibraries(node: RedisClient): Promise<void> {
  const libraries = await node.call("FUNCTION", "LIST", "LIBRARYNAME", `${LIBRARY_PREFIX}*`);
  for (const [, name] of libraries as [field: string, name: string][]) {
    if (LIBRARY_OF_POSTBELL.test(name) && name !== LIBRARY_NAME) await node.call("FUNCTION", "DELETE", name);
  }
}
