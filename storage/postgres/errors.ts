/** Errors of the Postgres storage: every failure becomes a `PostbellError` with a stable code. */

import { isPostbellError, PostbellError } from "../../src/core/errors.js";

/** Returns the code of an error: five characters from Postgres, or a word from the system. */
export function getCode(error: unknown): string {
  const { code } = (typeof error === "object" && error !== null ? error : {}) as { readonly code?: unknown };
  return typeof code === "string" && /^[A-Z0-9_]{3,30}$/.test(code) ? code : "error";
}

/** Conflicts of transactions that ran at the same time: run again, one of them succeeds. */
const CONFLICTS: ReadonlySet<string> = new Set(["40001", "40P01", "55P03"]);

export const isTransactionConflict = (error: unknown): boolean => CONFLICTS.has(getCode(error));

/**
 * Plans that the server has kept for a connection, and that fit no more: a table was changed, or
 * they were made on another connection. A new connection has none.
 */
const STALE_PLANS: ReadonlySet<string> = new Set(["0A000", "26000", "42P05"]);

export const isStalePlan = (error: unknown): boolean => STALE_PLANS.has(getCode(error));

/** True if the connection is still usable: Postgres has refused a statement. */
export const isRefusal = (error: unknown): boolean => {
  const code = getCode(error);
  return code.length === 5 && !STALE_PLANS.has(code) && !code.startsWith("08") && !code.startsWith("57P");
};

const MESSAGES: Readonly<Record<string, string>> = {
  "22021": "client_encoding of the connection is not UTF8; nothing was changed. Leave it as pg sets it.",
  "25006":
    "Postgres is read-only; nothing was changed. If it is a standby, connect to the primary. Otherwise set default_transaction_read_only = off for the role or the database.",
  "57014":
    "Postgres ended the statement, which took longer than statement_timeout; nothing was changed. Try again later.",
  "42501":
    "The role of the connection may not do this; nothing was changed. Grant it USAGE on the schema and all rights on its tables and sequences.",
};

const MISSING: ReadonlySet<string> = new Set(["3F000", "42P01", "42703"]);

/**
 * Converts the error of a transaction. `wasCommitting`: it failed after COMMIT had been sent, so
 * nobody knows if it took effect.
 */
export function toPostgresError(error: unknown, wasCommitting: boolean): unknown {
  if (isPostbellError(error)) return error;
  const code = getCode(error);
  if (MISSING.has(code)) {
    return new PostbellError(
      "invalid_option",
      "The tables of Postbell are missing or old. Call storage.migrate(), or run `postbell migrate`, before the services start.",
      { field: "schema", cause: error },
    );
  }
  if (code === "53100") {
    return new PostbellError("storage_full", "The disk of Postgres is full; nothing was stored. Make room.", {
      cause: error,
    });
  }
  const effect =
    wasCommitting && !isRefusal(error) ? "the change may or may not have been made" : "nothing was changed";
  const message = MESSAGES[code] ?? `Postgres is not available (${code}); ${effect}. Try again later.`;
  return new PostbellError("storage_unavailable", message, {
    effect: wasCommitting && !isRefusal(error) ? "unknown" : "none",
    cause: error,
  });
}

/** Faults of the host's transaction, which Postgres has aborted. */
const JOIN_MESSAGES: Readonly<Record<string, string>> = {
  "22021": "client_encoding of the transaction is not UTF8. Leave it as pg sets it.",
  "25006": "The transaction is read-only. Begin it with READ WRITE, or emit without `transaction`.",
  "25P02": "An earlier statement of the transaction has failed.",
};

/** Converts the error of an event that was written in a transaction of the host. */
export function toJoinError(error: unknown): unknown {
  const code = getCode(error);
  const message = JOIN_MESSAGES[code];
  if (message !== undefined) {
    return new PostbellError(
      "invalid_argument",
      `${message} The event was not stored: roll the transaction back.`,
      {
        field: "transaction",
        cause: error,
      },
    );
  }
  if (!isTransactionConflict(error)) return toPostgresError(error, false);
  return new PostbellError(
    "storage_unavailable",
    `The transaction conflicts with another one (${code}); the event was not stored. Roll the transaction back, and run it again as a whole.`,
    { effect: "none", cause: error },
  );
}
