/** Remembers the ids of events that are not stored, or not stored any more. */

import type { SqlTransaction } from "./database.js";
import type { RowOf } from "./table.js";
import { remembered } from "./webhook-tables.js";

const COLUMNS = ["account", "id", "digest", "receivers", "expires_at"] as const;

export async function remember(
  transaction: SqlTransaction,
  rows: readonly RowOf<typeof remembered>[],
): Promise<void> {
  if (rows.length === 0) return;
  // One that has expired may still be there.
  await transaction.remove(
    remembered,
    ["account", "id"],
    rows.map(({ account, id }) => [account, id]),
  );
  await transaction.insert(
    remembered,
    COLUMNS,
    rows.map((row) => COLUMNS.map((column) => row[column])),
    ["account", "id"],
  );
}
