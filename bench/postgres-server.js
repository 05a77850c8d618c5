// A Postgres of its own for a benchmark, which keeps what it acknowledges; stopped by the caller.
import { findProgram } from "../scripts/databases-for-tests.js";
import { startPostgres as startPrivatePostgres } from "../scripts/private-postgres.js";

/** Returns its URL and how to stop it; `undefined` on a machine without Postgres. */
export async function startPostgres() {
  try {
    findProgram("initdb");
  } catch {
    return undefined;
  }
  return startPrivatePostgres({ shared_buffers: "256MB" });
}
