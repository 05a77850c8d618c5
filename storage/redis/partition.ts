/**
 * Partitions: the parts that accounts are distributed over. All keys of a partition share one hash
 * tag, and so one slot of a Cluster.
 */

import { createHash, randomUUID } from "node:crypto";

/** In the order in which the scripts name them (keys.lua). */
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
  "notices",
  "events",
  "progress",
  "deliveries",
  "log",
  "ended",
  "freeing",
  "remembered",
  "forgetting",
  "removals",
  "books",
  "tallies",
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
    return { number, keys: KEY_NAMES.map(key), key };
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
