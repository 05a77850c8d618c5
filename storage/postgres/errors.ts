/** Errors of the Postgres storage: every failure becomes a `PostbellError` with a stable code. */

import { isPostbellError, PostbellError } from "../../src/core/errors.js";
import { type ConnectionProblem, describeConnectionProblem } from "../connection-problem.js";

/** Returns the code of an error: five characters from Postgres, or a word from the system. */
export function getCode(error: unknown): string {
  const { code } = (typeof error === "object" && error !== null ? error : {}) as { code?: unknown };
  return typeof code === "string" && /^[A-Z0-9_]{3,30}$/.test(code) ? code : "error";
}

/** Conflicts of transactions that ran at the same time: run again, one of them succeeds. */
const CONFLICTS = new Set(["40001", "40P01", "55P03"]);

export const isMissingPrivilege = (error: unknown): boolean => getCode(error) === "42501";

export const isTransactionConflict = (error: unknown): boolean => CONFLICTS.has(getCode(error));

/**
 * Plans that the server has kept for a connection, and that fit no more: a table was changed, or
 * they were made on another connection. A new connection has none.
 */
const STALE_PLANS = new Set(["0A000", "26000", "42P05"]);

export const isStalePlan = (error: unknown): boolean => STALE_PLANS.has(getCode(error));

/** Errors with which Postgres ends a session; `25P03` and `25P04` end long transactions. */
const ENDS_SESSION = /^(?:08|57P|25P0[34])/;

/** True if the connection is still usable: Postgres has refused a statement. */
export const isRefusal = (error: unknown): boolean => {
  const code = getCode(error);
  return code.length === 5 && !STALE_PLANS.has(code) && !ENDS_SESSION.test(code);
};

const MESSAGES: Readonly<Record<string, string>> = {
  "22021": "client_encoding of the connection is not UTF8; nothing was changed. Leave it as pg sets it.",
  "25006":
    "Postgres is read-only; nothing was changed. If it is a standby, connect to the primary. Otherwise set default_transaction_read_only = off for the role or the database.",
  "53300":
    "Postgres has no free connection (53300); nothing was changed. Raise max_connections, or give each process a smaller pool.",
  "57014":
    "Postgres cancelled the statement, usually because of statement_timeout; nothing was changed. Try again later.",
};

const GRANTS =
  "Grant its role the privileges on the schema of the storage: GRANT USAGE ON SCHEMA <schema> TO <role>; GRANT ALL ON ALL TABLES IN SCHEMA <schema> TO <role>; GRANT ALL ON ALL SEQUENCES IN SCHEMA <schema> TO <role>;";

/** Names what to change if Postgres refuses this process, by the code of the error. */
const ADVICE: Readonly<Record<string, string>> = {
  "28P01": "Correct the user name and the password of the connection.",
  "28000":
    "The role does not exist or may not log in, or no line of pg_hba.conf allows it from this machine in this way; a server may also require TLS (sslmode=require). Correct the connection or pg_hba.conf.",
  "3D000": "The database does not exist. Create it, or correct its name at the end of the URL.",
  "42501": GRANTS,
};

/** Errors of pg without a code, by their text. */
const TEXTS: (readonly [text: RegExp, problem: ConnectionProblem])[] = [
  [
    /^The server does not support SSL connections/,
    {
      reason: "NO_TLS",
      advice:
        "The server does not offer TLS. Turn it on there (ssl = on), or connect without it (sslmode=disable).",
      isPermanent: true,
    },
  ],
  [
    /^SASL: .*password must be|^SASL: .*no password/i,
    {
      reason: "NO_PASSWORD",
      advice: "Postgres requires a password. Put it into the URL, or give a pool that has it.",
      isPermanent: true,
    },
  ],
  [
    /^There was an error establishing an SSL connection/,
    {
      reason: "NO_TLS",
      advice:
        "The server on this port does not respond as Postgres with TLS does. Correct the port, or connect without TLS (sslmode=disable).",
      isPermanent: true,
    },
  ],
  [
    /^Cannot use a pool after calling end/,
    {
      reason: "POOL_ENDED",
      advice: "The host has ended the pool. Call storage.close() before pool.end().",
      isPermanent: true,
    },
  ],
  [/timeout/, { reason: "ETIMEDOUT", advice: "", isPermanent: false }],
  [
    /^(?:Connection terminated|Client (?:has encountered|was closed))/,
    { reason: "ECONNRESET", advice: "", isPermanent: false },
  ],
];

/** No connection can be opened, so other calls fail too. `57P03`: Postgres starts or stops. */
const NO_CONNECTION = /^(?:57P03|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT|EACCES)\b/;

/** Describes why Postgres could not be used. */
function describeProblem(error: unknown, code: string): ConnectionProblem {
  const advice = ADVICE[code];
  if (advice !== undefined) return { reason: code, advice, isPermanent: true };
  const connection = describeConnectionProblem(error);
  if (connection !== undefined) return connection;
  const text = error instanceof Error && code === "error" ? error.message : "";
  const [, problem] = TEXTS.find(([pattern]) => text !== "" && pattern.test(text)) ?? [];
  return problem ?? { reason: code, advice: "", isPermanent: false };
}

const MISSING = new Set(["3F000", "42P01", "42703"]);

function toUnavailable(error: unknown, code: string, wasCommitting: boolean): PostbellError {
  const { reason, advice, isPermanent } = describeProblem(error, code);
  // A missing privilege refuses one statement; what else is permanent refuses every connection.
  const isOutage = NO_CONNECTION.test(reason) || (isPermanent && code !== "42501");
  const isUnknown = wasCommitting && !isRefusal(error);
  const effect = isUnknown ? "the change may or may not have been made" : "nothing was changed";
  const state = isPermanent ? "refuses this process" : "is not available";
  const action = advice === "" ? "Try again later." : advice;
  return new PostbellError(
    "storage_unavailable",
    MESSAGES[code] ?? `Postgres ${state} (${reason}); ${effect}. ${action}`,
    {
      effect: isUnknown ? "unknown" : "none",
      reason,
      isPermanent,
      isOutage: isOutage || undefined,
      cause: error,
    },
  );
}

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
  return toUnavailable(error, code, wasCommitting);
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
