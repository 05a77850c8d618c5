/** Reads and changes what the storages on SQL have stored, with statements of its own. */

import type { StorageInspector } from "./storage-under-test.js";

export type SqlRow = Readonly<Record<string, string | number | null>>;

/** One database, past the package. */
export interface SqlConnection {
  /** Runs one statement. It names the tables of Postbell as `{deliveries}`. */
  readonly all: (text: string) => Promise<readonly SqlRow[]>;
  /** Lists the tables of Postbell, named as in `all`. */
  readonly listTables: () => Promise<readonly string[]>;
  readonly close: () => Promise<void>;
}

const COUNTED = ["pending", "delivered", "failed", "withheld"] as const;

/** Counts, the rows that are counted, and changes to be added: one statement, for one state. */
const COUNTS = `SELECT 'counted' AS kind, position AS endpoint, ${COUNTED.join(", ")}, 0 AS events, 0 AS bytes, '[]' AS counts FROM {endpoints}
  UNION ALL SELECT 'stored', endpoint, ${COUNTED.map((state) => `sum(CASE WHEN state = '${state}' THEN 1 ELSE 0 END)`).join(", ")}, 0, 0, '[]'
    FROM {deliveries} WHERE endpoint IN (SELECT position FROM {endpoints}) GROUP BY endpoint
  UNION ALL SELECT 'counted', 0, 0, 0, 0, 0, events, bytes, '[]' FROM {totals}
  UNION ALL SELECT 'stored', 0, 0, 0, 0, 0, count(*), coalesce(sum(bytes), 0), '[]' FROM {events}
  UNION ALL SELECT 'counted', 0, 0, 0, 0, 0, events, bytes, counts FROM {changes}`;

/** Compares counts with what there is. Endpoint 0 stands for the totals. */
function findMiscounts(rows: readonly SqlRow[]): readonly string[] {
  const excess = new Map<string, number>();
  const known = new Set(rows.map(({ endpoint }) => Number(endpoint)));
  const add = (name: string, by: number): void => void excess.set(name, (excess.get(name) ?? 0) + by);
  for (const row of rows) {
    const sign = row["kind"] === "counted" ? 1 : -1;
    for (const field of [...COUNTED, "events", "bytes"])
      add(`count of ${field} of endpoint ${row["endpoint"]}`, sign * Number(row[field]));
    for (const [endpoint = 0, ...counts] of JSON.parse(String(row["counts"])) as number[][]) {
      if (!known.has(endpoint)) continue;
      for (const [index, field] of COUNTED.entries())
        add(`count of ${field} of endpoint ${endpoint}`, counts[index] ?? 0);
    }
  }
  return [...excess].filter(([, by]) => by !== 0).map(([name, by]) => `${name}: ${by} too many`);
}

/** A delivery is in the list of a lease: `[1,22,333]`. */
const LISTED = `',' || substr(deliveries, 2, length(deliveries) - 2) || ',' LIKE '%,' || CAST(d.position AS text) || ',%'`;

/** Queries for rows that break an invariant. Each describes them in the column `fault`. */
const DISAGREEMENTS: readonly string[] = [
  `SELECT 'in_flight of ' || id AS fault FROM {endpoints} ep
    WHERE in_flight <> (SELECT count(*) FROM {deliveries} d WHERE endpoint = ep.position AND state = 'pending'
      AND NOT EXISTS (SELECT 1 FROM {queue} WHERE delivery = d.position))`,
  `SELECT 'places of delivery ' || position AS fault FROM {deliveries} d
    WHERE endpoint IN (SELECT position FROM {endpoints})
      AND (SELECT count(*) FROM {queue} WHERE delivery = d.position)
        + (SELECT count(*) FROM {leases} WHERE ${LISTED})
        <> CASE WHEN state = 'pending' THEN 1 ELSE 0 END`,
  `SELECT 'queue holds what is gone: ' || delivery AS fault FROM {queue}
    WHERE delivery NOT IN (SELECT position FROM {deliveries})`,
  "SELECT 'empty lease: ' || position AS fault FROM {leases} WHERE deliveries = '[]'",
  `SELECT 'never served: ' || id AS fault FROM {endpoints} ep WHERE ready_at IS NULL AND in_flight = 0
    AND EXISTS (SELECT 1 FROM {queue} WHERE endpoint = ep.position)
    AND NOT EXISTS (SELECT 1 FROM {changes})`,
  `SELECT 'deliveries of event ' || id AS fault FROM {events} e
    WHERE deliveries < (SELECT count(*) FROM {deliveries} WHERE event = e.position)`,
  `SELECT 'completion of event ' || id AS fault FROM {events} e
    WHERE (SELECT count(*) FROM {completed} WHERE event = e.position)
      <> CASE WHEN EXISTS (SELECT 1 FROM {deliveries} WHERE event = e.position AND state = 'pending') THEN 0 ELSE 1 END
      AND NOT (deliveries > 1 AND EXISTS (SELECT 1 FROM {completed} WHERE event = e.position))`,
  `SELECT 'body of event ' || id AS fault FROM {events} e
    WHERE (SELECT count(*) FROM {bodies} WHERE event = e.position) <> 1`,
  `SELECT 'body of nothing: ' || event AS fault FROM {bodies} WHERE event NOT IN (SELECT position FROM {events})`,
  `SELECT 'delivery of no event: ' || position AS fault FROM {deliveries}
    WHERE event NOT IN (SELECT position FROM {events})`,
  `SELECT 'webhook without endpoint: ' || id AS fault FROM {webhooks} WHERE id NOT IN (SELECT id FROM {endpoints})`,
  `SELECT 'endpoint without webhook: ' || id AS fault FROM {endpoints} WHERE id NOT IN (SELECT id FROM {webhooks})`,
];

/** One statement, so that it sees one state of the database. */
const FAULTS = `SELECT * FROM (${DISAGREEMENTS.join(" UNION ALL ")}) AS faults`;

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Tables that are filled also where nothing is stored. */
const LASTING = ["layout", "totals"];

function findContentFaults(
  records: readonly SqlRow[],
  names: readonly SqlRow[],
  last: number,
): readonly string[] {
  const faults: string[] = [];
  const held = new Map<string, string>();
  for (const { names: own, sequence, ...row } of records) {
    const key = String(row["key"]);
    if (Number(sequence) > last) faults.push(`${key} was written after the last commit`);
    for (const name of JSON.parse(String(own)) as readonly string[]) {
      if (held.has(name)) faults.push(`${name} is held twice`);
      held.set(name, key);
    }
  }
  for (const row of names) {
    const [name, key] = [String(row["name"]), String(row["key"])];
    if (held.get(name) !== key) faults.push(`${name} is held by ${key} for nothing`);
    held.delete(name);
  }
  return [...faults, ...[...held].map(([name, key]) => `${key} lost ${name}`)];
}

export function inspectSql({ all, listTables, close }: SqlConnection): StorageInspector {
  return {
    async expireLeases(owners) {
      if (owners.length === 0) return 0;
      const isOwned = owners.map((owner) => `substr(token, 1, ${owner.length + 1}) = ${quote(`${owner}.`)}`);
      const ended = await all(
        `UPDATE {leases} SET until = 1 WHERE until > 1 AND (${isOwned.join(" OR ")}) RETURNING deliveries`,
      );
      return ended.flatMap(({ deliveries }) => JSON.parse(String(deliveries)) as number[]).length;
    },
    async endNoticeLeases() {
      await all("UPDATE {endpoints} SET notice_at = 1 WHERE notice_at IS NOT NULL RETURNING id");
    },
    async findFaults() {
      const faults = (await all(FAULTS)).map(({ fault }) => String(fault));
      return [...faults, ...findMiscounts(await all(COUNTS))];
    },
    async findLeftovers() {
      const tables = (await listTables()).filter((table) => !LASTING.includes(table));
      const counts = tables.map((table) => `SELECT '${table}' AS name, count(*) AS count FROM {${table}}`);
      counts.push("SELECT 'totals' AS name, events + bytes AS count FROM {totals}");
      const rows = await all(counts.join(" UNION ALL "));
      return rows
        .filter(({ count }) => Number(count) !== 0)
        .map(({ name, count }) => `${name}: ${count}`)
        .sort();
    },
    async findContentFaults() {
      const [last] = await all("SELECT coalesce(max(sequence), 0) AS last FROM {content_commits}");
      return findContentFaults(
        await all("SELECT key, names, sequence FROM {content_records}"),
        await all("SELECT name, key FROM {content_names}"),
        Number(last?.["last"]),
      );
    },
    close,
  };
}
