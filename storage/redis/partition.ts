/**
 * The keys in Redis. Accounts are distributed over partitions. All keys of a partition share one
 * hash tag, and so one slot of a Cluster. So do those of the content of a site.
 */

import { createHash, randomUUID } from "node:crypto";

/** In the order in which the scripts name them (lib/keys.lua). */
const KEY_NAMES = [
  "meta",
  "accounts",
  "ids",
  "webhooks",
  "in-flight",
  "queue",
  "ready:fast",
  "ready:slow",
  "leases",
  "health-notifications",
  "events",
  "progress",
  "deliveries",
  "log",
  "completed",
  "retention",
  "remembered",
  "expirations",
  "removals",
  "account-counts",
  "webhook-counts",
  "rates",
  "account-list",
  "failing",
  "event-keys",
] as const;

/**
 * The keys of a script, in the order in which it names them. They share one hash tag, and so one
 * slot of a Cluster.
 */
export interface KeySet {
  readonly keys: readonly string[];
}

export interface Partition extends KeySet {
  readonly number: number;
  /** The audit log, which one script names and no other. */
  readonly audit: KeySet;
  /** The data keys of accounts, which one script names and no other. */
  readonly dataKeys: KeySet;
  key(name: (typeof KEY_NAMES)[number]): string;
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
    return {
      number,
      keys: KEY_NAMES.map(key),
      audit: { keys: [key("audit")] },
      dataKeys: { keys: [key("data-keys")] },
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

/** In the order in which the scripts name them (lib/content.lua). */
const CONTENT_KEY_NAMES = [
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
  key(name: (typeof CONTENT_KEY_NAMES)[number]): string;
}

export function createContentKeys(prefix: string): ContentKeys {
  const key = (name: string): string => `{${prefix}:content}:${name}`;
  return { keys: CONTENT_KEY_NAMES.map(key), key };
}

/**
 * Lists the content that a site has lost, from the size of each key in the order of
 * `CONTENT_KEY_NAMES`. Lost content cannot be rebuilt, so there is only a warning. Pure.
 */
export function listContentWarnings(sizes: readonly number[]): string[] {
  const sizeOf = (name: (typeof CONTENT_KEY_NAMES)[number]): number =>
    sizes[CONTENT_KEY_NAMES.indexOf(name)] ?? 0;
  // Ids are allocated before anything is stored.
  if (CONTENT_KEY_NAMES.every((name) => name === "ids" || sizeOf(name) === 0)) return [];
  const lost = CONTENT_KEY_NAMES.filter((name) => sizeOf(name) === 0);
  if (lost.length > 0) {
    return [`The content has lost what was in ${lost.join(", ")}. Restore Redis from a copy.`];
  }
  const [records, bodies] = [sizeOf("heads"), sizeOf("bodies")];
  if (records === bodies) return [];
  return [`The content has ${records} records and ${bodies} bodies. Restore Redis from a copy.`];
}
