/** The data keys of accounts on SQL. */

import { isPostbellError, type PostbellError } from "../../src/core/errors.js";
import type { DataKeyStore } from "../../src/webhooks/store.js";
import { closeDataKey, nameDataKey, openDataKey, type Seal } from "../seal.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";
import type { SqlDatabase, SqlTransaction } from "./database.js";
import type { SqlStoreContext } from "./store-context.js";
import { dataKeys, erasedKeys } from "./webhook-tables.js";

const DATA_KEY = "SELECT account, name, key FROM {data_keys} WHERE account = $1";

type DataKeyRow = { account: string; name: string; key: string };

const readRows = (transaction: SqlTransaction, accounts: readonly string[]): Promise<DataKeyRow[]> =>
  transaction.forEach<DataKeyRow>(
    DATA_KEY,
    ["text"],
    accounts.map((account) => [encodeStoredText(account)]),
  );

/** Seals keys with the present key of the host, unless others have changed them. */
const sealAgain = (database: SqlDatabase, seal: Seal, stale: Map<string, [string, string]>): Promise<void> =>
  database.write(async (transaction) => {
    for (const [account, [stored, key]] of stale) {
      const row = [encodeStoredText(account), stored, closeDataKey(seal, key, account)];
      await transaction.all("UPDATE {data_keys} SET key = $3 WHERE account = $1 AND key = $2", row);
    }
  });

export function createSqlDataKeys({ database, seal, logger }: SqlStoreContext): DataKeyStore {
  /** Reads rows, on the connection of the host if others may all be lent. */
  const read = (accounts: readonly string[], transaction: object | undefined): Promise<DataKeyRow[]> =>
    transaction !== undefined && !database.hasOneWriter && database.join !== undefined
      ? database.join(transaction, (joined) => readRows(joined, accounts))
      : database.read((reading) => readRows(reading, accounts), { isOneStatement: true });

  return {
    sealsDataKeys: seal.hasKeys,

    async readDataKeys(accounts, transaction) {
      const results = new Map<string, string | PostbellError>();
      const stale = new Map<string, [string, string]>();
      for (const { account: encoded, key: stored } of await read(accounts, transaction)) {
        const account = decodeStoredText(encoded);
        try {
          const key = openDataKey(seal, stored, account);
          results.set(account, key);
          if (!seal.isCurrent(stored)) stale.set(account, [stored, key]);
        } catch (error) {
          if (!isPostbellError(error)) throw error;
          results.set(account, error);
        }
      }
      if (stale.size > 0)
        void sealAgain(database, seal, stale).catch((error: unknown) =>
          logger.debug({ error }, "data keys could not be sealed with the first of sealKeys; retried later"),
        );
      return accounts.map((account) => results.get(account));
    },

    async addDataKey({ account, key, transaction }) {
      const add = async (on: SqlTransaction): Promise<string> => {
        const row = [encodeStoredText(account), nameDataKey(key), closeDataKey(seal, key, account)];
        await on.insert(dataKeys, ["account", "name", "key"], [row], ["account"]);
        const [stored] = await readRows(on, [account]);
        if (stored === undefined) throw new TypeError("the data key was not stored");
        return openDataKey(seal, stored.key, account);
      };
      if (transaction === undefined || database.join === undefined)
        return { key: await database.write(add), isCommitted: true };
      // A rollback of the host should leave the key. But the host's transaction may keep other
      // writers of the file waiting, or the hosts have all connections of the pool, and wait here.
      const added = await database.writeIfFree?.(add);
      return added === undefined
        ? { key: await database.join(transaction, add), isCommitted: false }
        : { key: added, isCommitted: true };
    },

    async eraseDataKey({ account, now, forgetAt }) {
      await database.write(async (transaction) => {
        await transaction.all("DELETE FROM {erased_keys} WHERE forget_at <= $1", [now]);
        const [row] = await readRows(transaction, [account]);
        if (row === undefined) return;
        await transaction.insert(erasedKeys, ["name", "forget_at"], [[row.name, forgetAt]], ["name"]);
        await transaction.remove(dataKeys, ["account"], [[row.account]]);
      });
    },

    async isDataKeyErased({ name }) {
      const rows = await database.read(
        (transaction) =>
          transaction.forEach<{ name: string }>(
            "SELECT name FROM {erased_keys} WHERE name = $1",
            ["text"],
            [[encodeStoredText(name)]],
          ),
        { isOneStatement: true },
      );
      return rows.length > 0;
    },
  };
}
