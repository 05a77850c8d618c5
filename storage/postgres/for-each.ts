/** Writes a query that runs another one for each of several lists of values. */

import type { ParameterType } from "../sql/database.js";

/**
 * Writes a query that runs `text`, whose parameters are `$1`, `$2` …, for each list of values. Its
 * own parameters are arrays, from `$from` on. Only a query with an order needs its place in it.
 */
export function writeForEach(text: string, types: readonly ParameterType[], from = 1): string {
  const inner = text.replace(/\$([1-9][0-9]?)/g, "r.a$1");
  const arrays = types.map((type, index) => `$${from + index}::${type === "int" ? "bigint" : "text"}[]`);
  const names = types.map((_, index) => `a${index + 1}`);
  const place = inner.includes("ORDER BY") ? "row_number() OVER ()" : "1";
  // Several arrays are syntax, and one is a function, which the host's schema may have too.
  const unnest = arrays.length === 1 ? "pg_catalog.unnest" : "unnest";
  return `SELECT q.* FROM ${unnest}(${arrays.join(", ")}) WITH ORDINALITY AS r(${names.join(", ")}, list)
    CROSS JOIN LATERAL (SELECT ${place} AS place, i.* FROM (${inner}) AS i) AS q ORDER BY r.list, q.place`;
}
