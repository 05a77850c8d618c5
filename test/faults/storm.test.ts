/** Many calls of several processes meet on one storage. */

import { describe } from "vitest";
import { startSqliteUnderTest } from "./support/sqlite-under-test.js";
import { describeStoreStorm } from "./support/store-storm-suite.js";

describe("on SQLite", () => {
  describeStoreStorm(startSqliteUnderTest);
});
