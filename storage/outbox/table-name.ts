/** Checks and quotes the name of the table, the only text of a host that is part of a statement. */

import { value } from "../../src/core/options.js";

/**
 * At most 48 characters per part, so that the name of the index fits into the 63 bytes of Postgres.
 */
const TABLE = /^(?:[A-Za-z_][A-Za-z0-9_]{0,47}\.)?[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/** The option `table`: a name, or a schema and a name. */
export const tableOption = value<string>(
  "the name of a table, such as 'postbell_outbox' or 'app.outbox', of letters, digits and underscores, at most 48 in each part",
  (given) => typeof given === "string" && TABLE.test(given),
  "postbell_outbox",
);

/** Puts each part of a checked name between quotation marks. */
export const quoteIdentifier = (table: string, mark: '"' | "`"): string =>
  table
    .split(".")
    .map((part) => `${mark}${part}${mark}`)
    .join(".");
