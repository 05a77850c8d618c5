/** The data keys of accounts on Redis, stored as their name, a point, and the sealed key. */

import { isPostbellError, PostbellError } from "../../src/core/errors.js";
import type { DataKeyStore } from "../../src/webhooks/store.js";
import { closeDataKey, nameDataKey, openDataKey } from "../seal.js";
import { encodeText } from "./codec.js";
import type { RedisFunction } from "./library.js";
import type { Partition } from "./partition.js";
import type { RedisStoreContext } from "./session.js";

export function createRedisDataKeys(context: RedisStoreContext): DataKeyStore {
  const { partitions, seal, logger } = context;

  const change = async (name: RedisFunction, account: string, options: object, at = 0) => {
    const now = await context.connect(at);
    const { dataKeys } = partitions.ofAccount(account);
    const call = { now, options: { account: encodeText(account), ...options } };
    return context.runDurably(name, dataKeys, call);
  };

  const close = (key: string, account: string): string =>
    `${nameDataKey(key)}.${closeDataKey(seal, key, account)}`;

  const open = (account: string, stored: string): string => {
    const sealed = stored.slice(stored.indexOf(".") + 1);
    const key = openDataKey(seal, sealed, account);
    if (!seal.isCurrent(sealed)) void sealAgain(account, key, stored);
    return key;
  };

  /** Seals a key with the first key of the host. Reading must not fail because writing does. */
  const sealAgain = async (account: string, key: string, stored: string): Promise<void> => {
    try {
      await change("replaceDataKey", account, { key: close(key, account), stored });
    } catch (error) {
      logger.debug({ error }, "a data key could not be sealed with the first of sealKeys; retried later");
    }
  };

  /** Reads the keys of one partition. Errors are those of their accounts. */
  const readPartition = async (partition: Partition, accounts: string[]) => {
    const [key = ""] = partition.dataKeys.keys;
    const texts = (await context.call("HMGET", key, ...accounts.map(encodeText))) as (string | null)[];
    return accounts.map((account, index): [string, string | PostbellError | undefined] => {
      const text = texts[index];
      try {
        return [account, text == null ? undefined : open(account, text)];
      } catch (error) {
        if (!isPostbellError(error)) throw error;
        return [account, error];
      }
    });
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
      const keys = new Map<string, string | PostbellError | undefined>();
      const errors: unknown[] = [];
      const read = async ([partition, names]: [Partition, string[]]): Promise<void> => {
        try {
          for (const [account, key] of await readPartition(partition, names)) keys.set(account, key);
        } catch (error) {
          if (!isPostbellError(error)) throw error;
          errors.push(error);
          for (const account of names) keys.set(account, error);
        }
      };
      await Promise.all([...byPartition].map(read));
      // The whole Redis is away: the circuit has to know.
      if (errors.length > 0 && errors.length === byPartition.size) throw errors[0];
      return accounts.map((account) => keys.get(account));
    },

    async addDataKey({ account, key }) {
      const { reply } = await change("addDataKey", account, { key: close(key, account) });
      return { key: open(account, String(reply)), isCommitted: true };
    },

    async eraseDataKey({ account, now, forgetAt }) {
      const { confirmed } = await change("eraseDataKey", account, { forgetAt }, now);
      if (confirmed === false) {
        throw new PostbellError(
          "storage_unavailable",
          "No replica has confirmed in time that the data key was erased, so a failover could bring it back. Erase the account again.",
          { isOutage: false },
        );
      }
    },

    async isDataKeyErased({ account, name }) {
      await context.connect(0);
      const [, key = ""] = partitions.ofAccount(account).dataKeys.keys;
      return (await context.call("ZSCORE", key, name)) !== null;
    },
  };
}
