/**
 * The keys in Redis. Accounts are distributed over partitions. All keys of a partition share one
 * hash tag, and so one slot of a Cluster. So do those of the content of a site.
 */

import { createHash, randomUUID } from "node:crypto";

/** The keys of a partition, by the names that the library has for them, in its order. */
const KEYS = {
  meta: "meta",
  accounts: "accounts",
  ids: "ids",
  webhooks: "webhooks",
  inFlight: "in-flight",
  queue: "queue",
  readyFast: "ready:fast",
  readySlow: "ready:slow",
  leases: "leases",
  healthNotifications: "health-notifications",
  events: "events",
  progress: "progress",
  deliveries: "deliveries",
  log: "log",
  completed: "completed",
  retention: "retention",
  remembered: "remembered",
  expirations: "expirations",
  removals: "removals",
  accountCounts: "account-counts",
  webhookCounts: "webhook-counts",
  rates: "rates",
  accountList: "account-list",
  failing: "failing",
  eventKeys: "event-keys",
} as const;

export const PARTITION_KEYS = Object.keys(KEYS);

/**
 * The keys of a function, in the order in which it names them. They share one hash tag, and so one
 * slot of a Cluster.
 */
export interface KeySet {
  readonly keys: readonly string[];
}

export interface Partition extends KeySet {
  readonly number: number;
  /** The audit log, which only the functions on it name. */
  readonly audit: KeySet;
  /** The data keys of accounts and the names of erased ones, which only their functions name. */
  readonly dataKeys: KeySet;
  key(name: (typeof KEYS)[keyof typeof KEYS]): string;
}

/** The bounds of one partition. */
export interface PartitionLimits {
  readonly pending: number;
  readonly pendingPerAccount: number;
}

export interface Partitions {
  readonly all: readonly Partition[];
  ofAccount(account: string): Partition;
  ofWebhook(id: string): Partition;
  /** Returns a random UUID that belongs to the partition of the account. */
  newWebhookId(account: string): string;
}

const hashAccount = (account: string): number => createHash("sha1").update(account).digest().readUInt32BE();
const parseHead = (id: string): number => Number.parseInt(id.slice(0, 8), 16);

export function createPartitions(prefix: string, count: number): Partitions {
  const all = Array.from({ length: count }, (_, number): Partition => {
    const key = (name: string): string => `{${prefix}:${number}}:${name}`;
    const on = (names: readonly string[]): KeySet => ({ keys: names.map(key) });
    return {
      number,
      ...on(Object.values(KEYS)),
      audit: on(["audit"]),
      dataKeys: on(["data-keys", "erased-keys"]),
      key,
    };
  });
  const at = (hash: number): Partition => {
    const partition = all[hash % count] ?? all[0];
    if (!partition) throw new RangeError("a storage has at least one partition");
    return partition;
  };
  const ofAccount = (account: string): Partition => at(count === 1 ? 0 : hashAccount(account));
  const ofWebhook = (id: string): Partition => at(parseHead(id) || 0);
  return {
    all,
    ofAccount,
    ofWebhook,
    newWebhookId(account) {
      const wanted = ofAccount(account);
      for (;;) {
        const id = randomUUID();
        if (ofWebhook(id) === wanted) return id;
      }
    },
  };
}

/** The keys of the content, in the order of the library. */
export const CONTENT_KEYS = [
  "meta",
  "heads",
  "columns",
  "bodies",
  "names",
  "ids",
  "changes",
  "commits",
] as const;

export interface ContentKeys extends KeySet {
  key(name: (typeof CONTENT_KEYS)[number]): string;
}

export function createContentKeys(prefix: string): ContentKeys {
  const key = (name: string): string => `{${prefix}:content}:${name}`;
  return { keys: CONTENT_KEYS.map(key), key };
}

/**
 * Lists the content that a site has lost, from the size of each key in the order of
 * `CONTENT_KEYS`. Lost content cannot be rebuilt, so there is only a warning. Pure.
 */
export function listContentWarnings(sizes: readonly number[]): string[] {
  const sizeOf = (name: (typeof CONTENT_KEYS)[number]): number => sizes[CONTENT_KEYS.indexOf(name)] ?? 0;
  // Ids are allocated before anything is stored.
  if (CONTENT_KEYS.every((name) => name === "ids" || sizeOf(name) === 0)) return [];
  const lost = CONTENT_KEYS.filter((name) => sizeOf(name) === 0);
  if (lost.length > 0) {
    return [`The content has lost what was in ${lost.join(", ")}. Restore Redis from a copy.`];
  }
  const [records, bodies] = [sizeOf("heads"), sizeOf("bodies")];
  if (records === bodies) return [];
  return [`The content has ${records} records and ${bodies} bodies. Restore Redis from a copy.`];
}
