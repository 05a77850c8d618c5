/**
 * Functions of the schema that append events: a call costs one round trip, and each connection of
 * the server plans what is in them once, behind a pooler too. An event may be written in a
 * transaction of the host, where each round trip and each plan counts.
 *
 * The host may have changed any setting there. The functions set what their statements depend on,
 * and the arrays they take contain no null, which `array_nulls = off` would make the text "NULL".
 */

import { HEAD_START_MS } from "../queue/constants.js";
import type { AssumedAccount, NewEvent, ParameterType, SqlValues } from "../sql/database.js";
import {
  KNOWN,
  KNOWN_TYPES,
  type KnownRow,
  RECEIVERS,
  RECEIVERS_TYPES,
  type ReceiverRow,
} from "../sql/database.js";

type ToName = (name: string) => string;

/** Writes a query that returns the rows of `text` for all lists, as a JSON list. */
function writeRows(toName: ToName, text: string, types: readonly ParameterType[], from: number): string {
  const named = text.replace(/\{([a-z_]+)\}/g, (_, name: string) => toName(name));
  return `(SELECT coalesce(json_agg(rows), '[]') FROM (${writeForEach(named, types, from)}) AS rows)`;
}

/** Stands for no subject. The encoding of stored texts never makes it. */
const NO_SUBJECT = "\u0001";

/** Writes the statement that inserts events, with everything that belongs to them. */
const writeInsert = (toName: ToName): string => `WITH given AS MATERIALIZED (
    SELECT nextval('${toName("events_position_seq")}') AS position, u.*, nullif(u.given_subject, chr(1)) AS subject
      FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[], $11::bigint[], $12::bigint[], $13::text[])
        WITH ORDINALITY AS u(account, id, type, given_subject, digest, bytes, remember_until, receivers, is_test, deliveries, payload, place)
  ), stored AS (
    INSERT INTO ${toName("events")} (position, account, id, type, subject, digest, bytes, stored_at, remember_until, receivers, is_test, deliveries)
      SELECT position, account, id, type, subject, digest, bytes, $1::bigint, remember_until, receivers, is_test, deliveries FROM given ORDER BY place
      ON CONFLICT (account, id) DO NOTHING RETURNING position
  ), kept AS MATERIALIZED (
    SELECT given.* FROM given JOIN stored ON stored.position = given.position
  ), body AS (
    INSERT INTO ${toName("bodies")} (event, payload) SELECT position, payload FROM kept
  ), ended AS (
    INSERT INTO ${toName("completed")} (event, account, ended_at) SELECT position, account, $1::bigint FROM kept WHERE deliveries = 0
  ), wanted AS MATERIALIZED (
    SELECT nextval('${toName("deliveries_position_seq")}') AS position, kept.position AS event, d.endpoint
      FROM unnest($14::bigint[], $15::bigint[]) WITH ORDINALITY AS d(place, endpoint, turn) JOIN kept ON kept.place = d.place
  ), delivery AS (
    INSERT INTO ${toName("deliveries")} (position, endpoint, event, serial, created_at, state, step, due_at, postponed, crashes, is_recovered, queued_at, attempts)
      SELECT position, endpoint, event, 0, $1::bigint, 'pending', 0, $1::bigint, 0, 0, 0, $2::bigint, '' FROM wanted
  ), queued AS (
    INSERT INTO ${toName("queue")} (endpoint, at, delivery) SELECT endpoint, $2::bigint, position FROM wanted
  ), counted AS (
    INSERT INTO ${toName("changes")} (counts, events, bytes)
      SELECT (SELECT coalesce(json_agg(json_build_array(endpoint, pending)), '[]')::text
          FROM (SELECT endpoint, count(*) AS pending FROM wanted GROUP BY endpoint) AS added), count(*), sum(bytes)
        FROM kept HAVING count(*) > 0
  ) SELECT stored.position FROM given LEFT JOIN stored ON stored.position = given.position ORDER BY given.place`;

/** Writes the condition that an event is known, or that an account is not as assumed. */
const writeIsOtherwise = (toName: ToName): string => `(
    EXISTS (SELECT 1 FROM unnest($3, $4) AS k(account, id) CROSS JOIN LATERAL (
      SELECT 1 FROM ${toName("events")} AS e WHERE e.account = k.account AND e.id = k.id
      UNION ALL SELECT 1 FROM ${toName("remembered")} AS m WHERE m.account = k.account AND m.id = k.id AND m.expires_at > $1) AS known)
    OR EXISTS (SELECT 1 FROM unnest($17, $18, $19) AS a(account, webhooks, most) CROSS JOIN LATERAL (
      SELECT coalesce(string_agg(w.position || ':' || e.updated_at, ',' ORDER BY w.position), '') AS webhooks, coalesce(sum(e.pending), 0) AS pending
        FROM ${toName("webhooks")} AS w JOIN ${toName("endpoints")} AS e ON e.position = w.position WHERE w.account = a.account
      ) AS now WHERE now.webhooks <> a.webhooks OR now.pending > a.most))`;

/** Settings that the functions depend on, whatever the caller has set. */
const SETTINGS = "SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp";

/** Texts of another encoding would be stored garbled, because pg sends UTF-8. */
const CHECK_ENCODING = `IF current_setting('client_encoding') NOT IN ('UTF8', 'SQL_ASCII') THEN RAISE 'client_encoding is not UTF8' USING ERRCODE = '22021'; END IF;`;

/**
 * Returns the statements that create the functions. The first does what two `forEach` do, the
 * second what `insertEvents` does; with a channel, that also notifies.
 */
export const describeFunctions = (toName: ToName): readonly string[] => [
  `CREATE FUNCTION ${toName("read_append")}(text[], text[], bigint[], text[]) RETURNS TABLE (known_rows json, receiver_rows json)
LANGUAGE plpgsql ${SETTINGS} AS $function$ BEGIN
  ${CHECK_ENCODING}
  RETURN QUERY SELECT ${writeRows(toName, KNOWN, KNOWN_TYPES, 1)}, ${writeRows(toName, RECEIVERS, RECEIVERS_TYPES, 4)};
END $function$;`,
  `CREATE FUNCTION ${toName("append_events")}(bigint, bigint, text[], text[], text[], text[], text[], bigint[], bigint[], text[], bigint[], bigint[], text[], bigint[], bigint[], text, text[], text[], bigint[]) RETURNS SETOF bigint
LANGUAGE plpgsql ${SETTINGS} AS $function$ BEGIN
  ${CHECK_ENCODING}
  IF $17 IS NOT NULL AND ${writeIsOtherwise(toName)} THEN RETURN; END IF;
  IF $16 IS NOT NULL THEN PERFORM pg_notify($16, $1::text); END IF;
  RETURN QUERY ${writeInsert(toName)};
END $function$;`,
];

/** Writes the key of the advisory lock that workers keep while they sleep. */
export const writeSleepKey = (toName: ToName): string =>
  `pg_catalog.hashtextextended('${toName("sleep")}', 0)`;

/** Writes the condition that no worker sleeps. See `notifications.ts`. */
export const writeNobodySleeps = (toName: ToName): string =>
  `CASE WHEN pg_catalog.pg_try_advisory_lock(${writeSleepKey(toName)}) THEN pg_catalog.pg_advisory_unlock(${writeSleepKey(toName)}) ELSE false END`;

/** Writes calls of the functions. A channel for nobody is left out. */
export const writeFunctionCalls = (toName: ToName): { readonly read: string; readonly insert: string } => ({
  read: `SELECT known_rows, receiver_rows FROM ${toName("read_append")}($1, $2, $3, $4)`,
  insert: `SELECT position FROM ${toName("append_events")}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, CASE WHEN $16::text IS NULL THEN NULL WHEN ${writeNobodySleeps(toName)} THEN NULL ELSE $16::text END, $17, $18, $19) AS position`,
});

/** The values of a key of an event, of an event, of a delivery, and of what is assumed of an
 * account. */
export const KEY_VALUES = KNOWN_TYPES.length;
export const EVENT_VALUES = 11;
export const DELIVERY_VALUES = 2;
export const ASSUMED_VALUES = 3;

/** Parses the rows that were read. */
export const decodeRead = (row: {
  readonly known_rows: string;
  readonly receiver_rows: string;
}): { readonly known: readonly KnownRow[]; readonly receivers: readonly ReceiverRow[] } => ({
  known: JSON.parse(row.known_rows) as KnownRow[],
  receivers: JSON.parse(row.receiver_rows) as ReceiverRow[],
});

/** Returns the lists of what is assumed of accounts; `null` if nothing is assumed. */
export const listAssumed = (assumed: readonly AssumedAccount[] | undefined): readonly SqlValues[] | null =>
  assumed?.map(({ account, webhooks, mostPending }) => [account, webhooks, mostPending]) ?? null;

/** Returns the lists of values of the statement, and the times that come before them. */
export function listEventValues(
  added: readonly NewEvent[],
  now: number,
): {
  readonly times: readonly [now: number, queuedAt: number];
  readonly events: readonly SqlValues[];
  readonly deliveries: readonly SqlValues[];
} {
  return {
    times: [now, now - HEAD_START_MS],
    events: added.map((event) => [
      ...[event.account, event.id, event.type, event.subject ?? NO_SUBJECT, event.digest, event.bytes],
      ...[event.rememberUntil, event.receivers, event.isTest ? 1 : 0, event.endpoints.length, event.payload],
    ]),
    deliveries: added.flatMap(({ endpoints }, index) => endpoints.map((endpoint) => [index + 1, endpoint])),
  };
}

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
