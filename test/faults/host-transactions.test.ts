/** Hosts that emit in their own transactions on a SQLite file are killed. */

import { describe } from "vitest";
import { describeHostTransactions } from "./support/host-transaction-suite.js";
import { connectSqlite, startSqliteUnderTest } from "./support/sqlite-under-test.js";

describe("on SQLite", () => {
  describeHostTransactions({ start: startSqliteUnderTest, connect: connectSqlite });
});
