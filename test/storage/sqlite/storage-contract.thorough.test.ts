/** The contracts of storage and content store on SQLite, over two connections to one file. */

import { describe, test } from "vitest";
import { contentStoreContract, storageContract } from "../../../src/testing/index.js";
import { sqliteStorage } from "../../../storage/sqlite/index.js";
import { createDatabaseFile, openDatabase } from "../../support/sqlite.js";

describe("over two connections to one file, the contracts hold:", () => {
  const create = () => {
    const { path, destroy } = createDatabaseFile();
    const databases = [openDatabase(path), openDatabase(path)] as const;
    return {
      storage: sqliteStorage({ database: databases[0] }),
      peer: sqliteStorage({ database: databases[1] }),
      destroy: () => {
        for (const database of databases) database.close();
        destroy();
      },
    };
  };
  // SQLite does not tell another process that a file has changed.
  storageContract({ test, create, hints: false });
  contentStoreContract({ test, create });
});
