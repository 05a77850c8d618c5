/** Databases that the host has closed, with each driver, in a process that must survive it. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hasNodeSqlite } from "../../support/sqlite.js";

const SCRIPT = join(import.meta.dirname, "../../support/closed-database.mjs");
const drivers = ["libsql", "better-sqlite3", ...(hasNodeSqlite ? ["node:sqlite"] : [])];

test.each(drivers)("closed databases of %s are refused with an error that says what to do", (driver) => {
  const printed = execFileSync(process.execPath, [SCRIPT, driver], { encoding: "utf8", stdio: "pipe" });
  const transaction = {
    name: "PostbellError",
    code: "invalid_argument",
    field: "transaction",
    message: expect.stringContaining("transaction is a closed database"),
  };
  const unavailable = (text: string) => ({
    name: "PostbellError",
    code: "storage_unavailable",
    message: expect.stringContaining(text),
  });
  const ownClosed = unavailable("The database of sqliteStorage is closed");
  expect(JSON.parse(printed)).toEqual({
    closedBefore: transaction,
    closedMeanwhile: transaction,
    emitBeforeClose: "resolved",
    stored: 1,
    ownClosed,
    ownClosedRead: ownClosed,
    ownClosedStart: ownClosed,
    ownClosedCheck: ownClosed,
    storageClosed: unavailable("The storage is closed."),
    closedGiven: {
      name: "PostbellError",
      code: "invalid_option",
      field: "database",
      message: expect.stringContaining("an open database of better-sqlite3, libsql or node:sqlite"),
    },
  });
});
