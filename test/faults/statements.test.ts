/** A process on SQLite is killed at each statement that it runs. */

import { describe } from "vitest";
import { startSqliteUnderTest } from "./support/sqlite-under-test.js";
import { describeStatementCrashes } from "./support/statement-suite.js";

describe("on SQLite", () => {
  describeStatementCrashes({ start: startSqliteUnderTest, alsoSent: false });
});
