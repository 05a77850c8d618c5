/** The contracts of storage and content store on SQLite. */

import { describe, test } from "vitest";
import { contentStoreContract, storageContract } from "../../../src/testing/index.js";
import { sqliteStorage } from "../../../storage/sqlite/index.js";
import { countWork, createDatabaseFile, openDatabase } from "../../support/sqlite.js";

describe("in one process, the contracts hold:", () => {
  const create = () => {
    const { path, destroy } = createDatabaseFile();
    const database = openDatabase(path);
    const { handle, work } = countWork(database);
    return {
      storage: sqliteStorage({ database: handle }),
      work,
      destroy: () => {
        database.close();
        destroy();
      },
    };
  };
  storageContract({ test, create });
  contentStoreContract({ test, create });
});
