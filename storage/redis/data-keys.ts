/** The data keys of accounts on Redis. */

import type { DataKeyStore } from "../../src/webhooks/store.js";
import { closeDataKey, openDataKey } from "../seal.js";
import { encodeText } from "./codec.js";
import type { RedisFunction } from "./library.js";
import type { Partition } from "./partition.js";
import type { RedisStoreContext } from "./session.js";

export function createRedisDataKeys(context: RedisStoreContext): DataKeyStore {
  const { partitions, seal } = context;

  const change = async (
    name: RedisFunction,
    account: string,
    options: { key?: string; stored?: string },
  ): Promise<unknown> => {
    const now = await context.connect(0);
    const { dataKeys } = partitions.ofAccount(account);
    const call = { now, options: { account: encodeText(account), ...options } };
    return (await context.runDurably(name, dataKeys, call)).reply;
  };

  const readSealed = async (partition: Partition, accounts: string[]): Promise<[string, string][]> => {
    const [key = ""] = partition.dataKeys.keys;
    const texts = (await context.call("HMGET", key, ...accounts.map(encodeText))) as (string | null)[];
    return accounts.flatMap((account, index): [string, string][] => {
      const text = texts[index];
      return text == null ? [] : [[account, text]];
    });
  };

  const open = async (account: string, stored: string): Promise<string> => {
    const key = openDataKey(seal, stored, account);
    if (!seal.isCurrent(stored))
      await change("replaceDataKey", account, { key: closeDataKey(seal, key, account), stored });
    return key;
  };

  return {
    sealsDataKeys: seal.hasKeys,

    async readDataKeys(accounts) {
      await context.connect(0);
      const byPartition = new Map<Partition, string[]>();
      for (const account of new Set(accounts)) {
        const partition = partitions.ofAccount(account);
        byPartition.set(partition, [...(byPartition.get(partition) ?? []), account]);
      }
      const read = await Promise.all(
        [...byPartition].map(([partition, names]) => readSealed(partition, names)),
      );
      const keys = new Map<string, string>();
      for (const [account, stored] of read.flat()) keys.set(account, await open(account, stored));
      return accounts.map((account) => keys.get(account));
    },

    async addDataKey({ account, key }) {
      const stored = await change("addDataKey", account, { key: closeDataKey(seal, key, account) });
      return { key: await open(account, String(stored)), isCommitted: true };
    },

    async eraseDataKey(account) {
      await change("eraseDataKey", account, {});
    },
  };
}
