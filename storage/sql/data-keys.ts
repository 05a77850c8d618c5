/** The data keys of accounts on SQL. */

import type { DataKeyStore } from "../../src/webhooks/store.js";
import { closeDataKey, openDataKey } from "../seal.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";
import type { SqlTransaction } from "./database.js";
import type { SqlStoreContext } from "./store-context.js";
import { dataKeys } from "./webhook-tables.js";

const DATA_KEY = "SELECT account, key FROM {data_keys} WHERE account = $1";

type DataKeyRow = { account: string; key: string };

const readRows = (transaction: SqlTransaction, accounts: readonly string[]): Promise<DataKeyRow[]> =>
  transaction.forEach<DataKeyRow>(
    DATA_KEY,
    ["text"],
    accounts.map((account) => [encodeStoredText(account)]),
  );

/** A data key as it is stored, and opened. */
interface OpenedKey {
  account: string;
  stored: string;
  key: string;
}

export function createSqlDataKeys({ database, seal }: SqlStoreContext): DataKeyStore {
  /** Seals keys with the present key of the host, unless others have changed them. */
  const sealAgain = (stale: OpenedKey[]): Promise<void> =>
    database.write(async (transaction) => {
      for (const { account, stored, key } of stale) {
        const row = [encodeStoredText(account), stored, closeDataKey(seal, key, account)];
        await transaction.all("UPDATE {data_keys} SET key = $3 WHERE account = $1 AND key = $2", row);
      }
    });

  return {
    sealsDataKeys: seal.hasKeys,

    async readDataKeys(accounts) {
      const rows = await database.read((transaction) => readRows(transaction, accounts), {
        isOneStatement: true,
      });
      const opened = new Map<string, OpenedKey>();
      for (const { account: encoded, key: stored } of rows) {
        const account = decodeStoredText(encoded);
        opened.set(account, { account, stored, key: openDataKey(seal, stored, account) });
      }
      const stale = [...opened.values()].filter(({ stored }) => !seal.isCurrent(stored));
      if (stale.length > 0) await sealAgain(stale);
      return accounts.map((account) => opened.get(account)?.key);
    },

    async addDataKey({ account, key, transaction }) {
      const add = async (on: SqlTransaction): Promise<string> => {
        const row = [encodeStoredText(account), closeDataKey(seal, key, account)];
        await on.insert(dataKeys, ["account", "key"], [row], ["account"]);
        const [stored] = await readRows(on, [account]);
        if (stored === undefined) throw new TypeError("the data key was not stored");
        return openDataKey(seal, stored.key, account);
      };
      // The host's transaction keeps all other writers of the file waiting.
      return transaction !== undefined && database.hasOneWriter && database.join !== undefined
        ? { key: await database.join(transaction, add), isCommitted: false }
        : { key: await database.write(add), isCommitted: true };
    },

    async eraseDataKey(account) {
      await database.write((transaction) =>
        transaction.remove(dataKeys, ["account"], [[encodeStoredText(account)]]),
      );
    },
  };
}
