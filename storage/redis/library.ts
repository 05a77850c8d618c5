/**
 * The library of Lua functions that Redis runs (`FUNCTION LOAD`), assembled from the files in
 * `library`. A function runs on the keys of one partition, of its audit log, or of the content.
 * `docs/decisions/redis-functions.md` says why they are functions.
 */

import { createHash } from "node:crypto";
import * as constants from "../queue/constants.js";
import type { RedisClient } from "./clients.js";
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

/** Names the text, so that processes with different versions of Postbell share a server. */
const VERSION = createHash("sha1")
  .update([...SHARED, ...SEPARATE].join("\n"))
  .digest("hex")
  .slice(0, 12);

/** Every library of Postbell is named like this. */
const LIBRARY_PREFIX = "postbell_";

export const LIBRARY_NAME = `${LIBRARY_PREFIX}${VERSION}`;

/** The text for `FUNCTION LOAD`, whose first line has to name the library. */
export const LIBRARY = [
  `#!lua name=${LIBRARY_NAME}`,
  toLuaList("PARTITION_KEYS", PARTITION_KEYS),
  toLuaList("AUDIT_KEYS", ["audit"]),
  toLuaList("DATA_KEYS", ["dataKeys"]),
  toLuaList("CONTENT_KEYS", CONTENT_KEYS),
  `local FUNCTION_PREFIX = '${LIBRARY_NAME}_'`,
  ...SHARED,
  ...SEPARATE.map((file) => `do\n${file}end`),
].join("\n");

/** The name by which Redis knows a function. Names are unique on a server. */
export const toFunctionName = (name: RedisFunction): string => `${LIBRARY_NAME}_${name}`;

/**
 * Loads the library where it is missing: on a server that is new, was emptied with its functions,
 * or had another version of Postbell. Replicas and restarts keep it. Each master of a Cluster needs
 * it.
 */
export class LibraryLoader {
  readonly #client: RedisClient;
  #loading: Promise<unknown> | undefined;

  constructor(client: RedisClient) {
    this.#client = client;
  }

  /** Calls at the same time share one load. */
  load(): Promise<unknown> {
    this.#loading ??= Promise.all(this.#listNodes().map(loadLibrary)).finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async removeOthers(): Promise<void> {
    await Promise.all(this.#listNodes().map(removeOtherLibraries));
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
  for (const [, name] of libraries as [field: string, name: string][])
    if (name !== LIBRARY_NAME) await node.call("FUNCTION", "DELETE", name);
}
