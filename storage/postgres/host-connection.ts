/**
 * Runs the storage's statements on a connection of any library. Libraries differ in how they encode
 * values and decode results, so both travel as text: a value has a cast, and the rows are one JSON.
 */

import type { SqlConnection } from "../../src/webhooks/transaction.js";
import type { SqlValue } from "../sql/database.js";
import type { PgClient } from "./client.js";

/**
 * Casts each parameter from text. A library that asks the server for the types of parameters would
 * otherwise encode a text of JSON once more, or refuse a text for a number.
 */
function castFromText(text: string, values: readonly unknown[]): string {
  return text.replace(/\$([1-9][0-9]?)(?![0-9])(::)?/g, (_, number: string, cast: string | undefined) => {
    const value = values[Number(number) - 1];
    if (cast !== undefined) return `$${number}::text::`;
    if (value === null || value === undefined) return `$${number}`;
    return typeof value === "number" ? `$${number}::text::bigint` : `$${number}::text`;
  });
}

const isQuery = (text: string): boolean => text.startsWith("SELECT");

/** The rows of a query as one text. Its name is one that no library rewrites. */
const toJsonQuery = (text: string): string =>
  `SELECT coalesce(pg_catalog.json_agg(q), '[]')::text AS result FROM (${text}) AS q`;

/** Reads the text of `toJsonQuery`, which a plugin of the host may have parsed already. */
function readRows(rows: readonly unknown[]): unknown[] {
  const [row] = rows as readonly ({ result?: unknown } | undefined)[];
  const result = row?.result;
  const parsed: unknown = typeof result === "string" ? JSON.parse(result) : result;
  if (Array.isArray(parsed)) return parsed;
  throw new TypeError(
    "transaction.query(text, values) must resolve with { rows }, and each row must be an object",
  );
}

/** Errors that a library may put around the one of the server. */
const MAX_DEPTH = 5;

/** Returns the five characters with which Postgres names an error. */
function findState(error: object): string | undefined {
  const { code, originalCode } = error as { code?: unknown; originalCode?: unknown };
  // Codes of Prisma are of the same form: P2010.
  const found = typeof originalCode === "string" ? originalCode : code;
  return typeof found === "string" && /^(?!P[12]\d{3}$)[0-9A-Z]{5}$/.test(found) ? found : undefined;
}

/**
 * Returns the error of the server or of the connection from a library's error about it, which would
 * also show the statement with its values to whoever logs it.
 */
function unwrapDriverError(error: unknown): unknown {
  let found: unknown = error;
  for (let depth = 0; depth < MAX_DEPTH && typeof found === "object" && found !== null; depth++) {
    const state = findState(found);
    if (state !== undefined) {
      const message = found instanceof Error ? found.message : "";
      return Object.assign(new Error(message), { code: state });
    }
    const { cause, parent, driverError, meta, driverAdapterError } = found as Record<string, unknown>;
    const next = driverAdapterError ?? driverError ?? parent ?? cause ?? meta;
    if (next === undefined || next === null) break;
    found = next;
  }
  return found instanceof Error ? found : error;
}

/** Returns a client that runs the statements of the storage on a connection of the host. */
export function toHostClient(connection: SqlConnection): PgClient {
  return {
    async query(query) {
      const { text, values = [] } = typeof query === "string" ? { text: query } : query;
      const cast = castFromText(text, values);
      const texts = (values as SqlValue[]).map((value) => (value === null ? null : String(value)));
      try {
        if (isQuery(text)) {
          const { rows } = await connection.query(toJsonQuery(cast), texts);
          return { rows: readRows(rows) };
        }
        await connection.query(cast, texts);
        return { rows: [] };
      } catch (error) {
        throw unwrapDriverError(error);
      }
    },
    on: () => undefined,
    removeListener: () => undefined,
  };
}
