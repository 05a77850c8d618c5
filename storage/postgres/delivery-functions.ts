/**
 * Functions of the schema that lease due deliveries and settle those that were delivered: one call
 * each, whatever the number of deliveries and endpoints. They lock in the order of the general way
 * in `storage/sql`. A test makes the same calls on SQLite and expects the same rows and results.
 *
 * Uncommon cases take the general way. `lease_due` leases nothing if changes are to be added up or
 * leases have expired. `settle_delivered` changes nothing unless all endpoints are healthy and all
 * deliveries are still leased.
 */

import { MAX_SECONDS_AHEAD, MAX_SKETCH_CHARACTERS } from "../queue/constants.js";
import type { DeliveredBatch, LeasedRound, SqlValues } from "../sql/database.js";
import type { DueRow } from "../sql/webhook-tables.js";

type ToName = (name: string) => string;

/** Plans by index, whatever the server knows of tables that grow and shrink quickly. */
const SETTINGS = `SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off`;

/** The most characters of attempts of a delivery that is remembered until it is settled. */
const MOST_REMEMBERED = 1_000;

/** `countFreeSlots` of `endpoint-rows.ts`. */
const writeFree = (slowStart: string, inFlight: string, perEndpoint: string): string =>
  `least(${perEndpoint}, coalesce(${slowStart}, ${perEndpoint})) - (${inFlight})`;

/** A JSON list of numbers without spaces, as `JSON.stringify` writes it; null without numbers. */
const writeList = (column: string, filter = ""): string =>
  `'[' || string_agg(${column}::text, ',') ${filter} || ']'`;

/** True if the second of an endpoint counts at `$1`. Null without a second. */
const IS_COUNTED = `e.claimed_second BETWEEN $1 / 1000 AND $1 / 1000 + ${MAX_SECONDS_AHEAD}`;

/** The parts of a function that limit the rate; each is empty in the function that does not. */
interface RateParts {
  /** The type of one more argument. */
  readonly argument: string;
  /** Adds the second that counts, and what was claimed in it. */
  readonly columns: string;
  /** Adds the bound of a share. */
  readonly bound: string;
  /** Adds the same columns as `columns`, with what was taken. */
  readonly taken: string;
  /** Writes them. */
  readonly assignments: string;
  /** Adds the time at which the next second begins, if this one is used up. */
  readonly opensAt: string;
}

const NO_RATE: RateParts = {
  ...{ argument: "", columns: "", bound: "", taken: "", assignments: "", opensAt: "" },
};

/** `lease_due` with `perSecond` as `$9`. */
const LEASE_RATE: RateParts = {
  argument: ", bigint",
  columns: `,
      CASE WHEN ${IS_COUNTED} THEN e.claimed_second ELSE $1 / 1000 END AS rate_second, CASE WHEN ${IS_COUNTED} THEN e.claimed_count ELSE 0 END AS rate_count`,
  bound: "$9 - rate_count, ",
  taken: ", s.rate_second, s.rate_count + coalesce(c.taken, 0) AS rate_count",
  assignments: ", claimed_second = s.rate_second, claimed_count = s.rate_count",
  opensAt: ", CASE WHEN s.rate_count >= $9 THEN (s.rate_second + 1) * 1000 END",
};

/** `settle_delivered` with `perSecond` as `$22`. */
const SETTLE_RATE: RateParts = {
  ...NO_RATE,
  argument: ", bigint",
  opensAt: `, CASE WHEN ${IS_COUNTED} AND e.claimed_count >= $22 THEN (e.claimed_second + 1) * 1000 END`,
};

/** When an endpoint may be served next: `offerEndpoint` of `endpoint-rows.ts`. */
const writeReadyAt = (head: string, free: string, { opensAt }: RateParts): string =>
  `CASE WHEN ${head} IS NULL OR ${free} <= 0 THEN NULL ELSE greatest(${head}, $1${opensAt}) END`;

const writeReady = (toName: ToName, lane: string, room: string): string =>
  `SELECT * FROM (SELECT position FROM ${toName("endpoints")} WHERE ready_at <= $1 AND lane = '${lane}'
      ORDER BY ready_at, turn LIMIT ${room} FOR UPDATE SKIP LOCKED) AS ${lane}`;

/** An empty row of `lease_due`, but for a text. */
const writeNote = (payload: string): string =>
  `SELECT ${"NULL::bigint, ".repeat(12)}${"NULL::text, ".repeat(4)}${payload}, NULL::bigint, NULL::text`;

/**
 * Leases from the endpoints in `own` as `serveRound` of `serve-endpoints.ts` does. They were locked
 * by an earlier statement: this one sees what the transactions before have left in their queues. Of
 * each, one delivery more than its share is read, which tells when it may be served next.
 */
const writeLease = (toName: ToName, rate: RateParts): string => `WITH ready AS MATERIALIZED (
    SELECT e.*, CASE e.lane WHEN 'fast' THEN $4 ELSE $5 END AS room, ${writeFree("e.slow_start", "e.in_flight", "$6")} AS free,
      row_number() OVER (PARTITION BY e.lane ORDER BY e.ready_at, e.turn) AS place, count(*) OVER (PARTITION BY e.lane) AS many,
      row_number() OVER (ORDER BY e.lane, e.ready_at, e.turn) AS turn_served${rate.columns}
    FROM ${toName("endpoints")} AS e WHERE e.position = ANY (own)
  ), shared AS MATERIALIZED (
    SELECT *, greatest(0, least(free, ${rate.bound}room / many + CASE WHEN place <= room % many THEN 1 ELSE 0 END)) AS share FROM ready
  ), due AS MATERIALIZED (
    SELECT s.position AS endpoint, s.lane, s.place, s.share, q.at, q.delivery, q.nth FROM shared AS s CROSS JOIN LATERAL (
      SELECT at, delivery, row_number() OVER (ORDER BY at, delivery) AS nth FROM (
        SELECT at, delivery FROM ${toName("queue")} WHERE endpoint = s.position AND at <= $1 ORDER BY at, delivery LIMIT s.share + 1
      ) AS first
    ) AS q
  ), taken AS MATERIALIZED (
    SELECT * FROM due WHERE nth <= share
  ), served AS MATERIALIZED (
    SELECT s.position, s.turn_served, coalesce(c.taken, 0) AS taken, s.free - coalesce(c.taken, 0) AS free,
      coalesce(c.head, (SELECT min(q.at) FROM ${toName("queue")} AS q WHERE q.endpoint = s.position AND q.at > $1)) AS head${rate.taken}
    FROM shared AS s LEFT JOIN (
      SELECT endpoint, count(*) FILTER (WHERE nth <= share) AS taken, min(at) FILTER (WHERE nth > share) AS head FROM due GROUP BY endpoint
    ) AS c ON c.endpoint = s.position
  ), updated AS (
    UPDATE ${toName("endpoints")} AS e SET in_flight = e.in_flight + s.taken, ready_at = ${writeReadyAt("s.head", "s.free", rate)},
        turn = CASE WHEN s.head IS NULL OR s.free <= 0 THEN e.turn ELSE $7 + s.turn_served - 1 END${rate.assignments}
      FROM served AS s WHERE e.position = s.position
      RETURNING e.position, e.id, e.lane, e.status, e.updated_at, e.failing_since, e.warned_at, e.notice_at, e.ready_at
  ), removed AS (
    DELETE FROM ${toName("queue")} AS q USING taken AS t WHERE q.endpoint = t.endpoint AND q.at = t.at AND q.delivery = t.delivery
  ), leased AS (
    INSERT INTO ${toName("leases")} (token, until, deliveries) SELECT $2, $3, ${writeList("delivery")} FROM taken HAVING count(*) > 0
  ) ${writeNote("(SELECT coalesce(json_agg(u), '[]')::text FROM updated AS u)")}
  UNION ALL SELECT * FROM (
    SELECT t.endpoint, t.at, d.position, d.event, d.serial, d.started_at, d.step, d.due_at, d.extra_at,
      d.postponed, d.crashes, d.is_recovered, ev.id, ev.type, ev.subject, ev.digest, b.payload, ev.deliveries,
      CASE WHEN length(d.attempts) <= ${MOST_REMEMBERED} THEN d.attempts END
    FROM taken AS t JOIN ${toName("deliveries")} AS d ON d.position = t.delivery
      JOIN ${toName("events")} AS ev ON ev.position = d.event LEFT JOIN ${toName("bodies")} AS b ON b.event = d.event
    ORDER BY t.lane, t.place, t.nth
  ) AS rows`;

/** When an endpoint of each lane is ready, and when a lease expires. */
const writeNext = (toName: ToName): string => {
  const first = (lane: string) =>
    `(SELECT min(ready_at) FROM ${toName("endpoints")} WHERE lane = '${lane}' AND ready_at IS NOT NULL)`;
  return writeNote(
    `json_build_object('fast', ${first("fast")}, 'slow', ${first("slow")}, 'lease', (SELECT min(until) FROM ${toName("leases")}))::text`,
  );
};

/** The columns of `lease_due`. In its first and last row, only `payload` is set, with JSON. */
const LEASED = `endpoint bigint, at bigint, "position" bigint, event bigint, serial bigint, started_at bigint, step bigint, due_at bigint,
  extra_at bigint, postponed bigint, crashes bigint, is_recovered bigint, event_id text, type text, subject text, digest text, payload text,
  event_deliveries bigint, attempts text`;

/** The arrays of endpoints. The tokens are `$12`, and the arrays of deliveries `$13` to `$19`. */
const ENDPOINTS =
  "$4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[], $11::text[]";
const GIVEN = `unnest(${ENDPOINTS}) WITH ORDINALITY AS g(id, account, generation, hour, many, duration, lane, last_attempt, place)`;
/** The same with sketches, which are `$21`. */
const GIVEN_SKETCHES = GIVEN.replace(") WITH", ", $21::text[]) WITH").replace("place)", "sketch, place)");

/** The attempts of all deliveries, in one text. JSON and stored texts never contain `chr(2)`. */
const ATTEMPTS = "string_to_array($20, chr(2))";
const ATTEMPTS_SEPARATOR = "\u0002";

/** The deliveries of the leases, with what names the lease. */
const writeLeased = (toName: ToName, columns: string): string =>
  `SELECT ${columns} FROM ${toName("leases")} AS l CROSS JOIN LATERAL json_array_elements_text(l.deliveries::json) AS x WHERE l.token = ANY ($12)`;

/** True if an endpoint or a delivery is not as assumed. */
const writeIsOther = (toName: ToName): string => `EXISTS (
    SELECT 1 FROM ${GIVEN} LEFT JOIN ${toName("endpoints")} AS e ON e.id = g.id
    WHERE e.position IS NULL OR e.account <> g.account OR e.generation <> g.generation OR e.status <> 'ENABLED'
      OR e.failing_since IS NOT NULL OR e.recent NOT LIKE '[{"hour":' || g.hour || ',%'
  ) OR cardinality($14) <> (SELECT count(*) FROM (${writeLeased(toName, "l.token, x.value::bigint")} INTERSECT SELECT ($12)[u.token], u.position FROM unnest($13, $14) AS u(token, position)) AS held)`;

/** The counts of the newest hour with successes: `addRecentAttempts` of `recent-attempts.ts`. */
const COUNTS = `g.hour, (e.recent::json -> 0 ->> 'succeeded')::bigint + g.many,
        e.recent::json -> 0 ->> 'failed', (e.recent::json -> 0 ->> 'durationMs')::bigint + g.duration`;
const OTHER_HOURS = "substr(e.recent, strpos(e.recent, '}') + 1)";

/** Adds up the entries of a sketch. */
const writeCompact = (sketch: string): string =>
  `(SELECT string_agg(name || many, '' ORDER BY name COLLATE "C") FROM (SELECT x[1] AS name, sum(x[2]::bigint) AS many
        FROM regexp_matches(${sketch}, '([a-j]{2})([0-9]+)', 'g') AS x GROUP BY x[1]) AS entries)`;

/** `addToSketch` of `recent-attempts.ts`. */
const SKETCH = `(SELECT CASE WHEN length(own) <= ${MAX_SKETCH_CHARACTERS} THEN own ELSE ${writeCompact("own")} END
        FROM (SELECT coalesce(e.recent::json -> 0 ->> 'sketch', '') || g.sketch AS own OFFSET 0) AS sketches)`;

/** The newest hour with successes. */
const RECENT = `format('[{"hour":%s,"succeeded":%s,"failed":%s,"durationMs":%s,"sketch":"%s"}', ${COUNTS}, ${SKETCH}) || ${OTHER_HOURS}`;

/** Applies successes as `settle-decision.ts` does. Returns when workers should claim. */
const writeSettle = (toName: ToName, rate: RateParts): string => `WITH counted AS MATERIALIZED (
    SELECT e.position, e.in_flight, g.place, g.many, g.lane, g.last_attempt, ${RECENT} AS recent, e.ready_at AS before,
      CASE WHEN e.slow_start + g.many < $2 THEN e.slow_start + g.many END AS slow_start, coalesce(e.ready_at <= $1, false) AS is_ready,
      CASE WHEN e.ready_at <= $1 THEN NULL ELSE (SELECT min(q.at) FROM ${toName("queue")} AS q WHERE q.endpoint = e.position) END AS head
    FROM ${GIVEN_SKETCHES} JOIN ${toName("endpoints")} AS e ON e.id = g.id
  ), settled AS (
    UPDATE ${toName("deliveries")} AS d SET state = 'delivered', reason = NULL, started_at = g.started_at, ended_at = g.ended_at, is_recovered = 0, attempts = g.attempts
      FROM unnest($14, $18, $19, ${ATTEMPTS}) AS g(position, started_at, ended_at, attempts) WHERE d.position = g.position
  ), completed AS (
    INSERT INTO ${toName("completed")} (event, account, ended_at) SELECT g.event, ($5)[g.endpoint], $1
      FROM unnest($15, $16, $17) AS g(event, endpoint, is_only) WHERE g.is_only = 1 ON CONFLICT (event) DO NOTHING
  ), rest AS MATERIALIZED (
    SELECT l.position, ${writeList("l.delivery", "FILTER (WHERE l.delivery <> ALL ($14))")} AS deliveries
      FROM (${writeLeased(toName, "l.position, x.value::bigint AS delivery")}) AS l GROUP BY l.position
  ), ended AS (
    DELETE FROM ${toName("leases")} AS l USING rest AS r WHERE l.position = r.position AND r.deliveries IS NULL
  ), shrunk AS (
    UPDATE ${toName("leases")} AS l SET deliveries = r.deliveries FROM rest AS r WHERE l.position = r.position AND r.deliveries IS NOT NULL
  ), offered AS MATERIALIZED (
    SELECT *, ${writeFree("slow_start", "in_flight - many", "$2")} AS free FROM counted
  ), updated AS (
    UPDATE ${toName("endpoints")} AS e SET lane = o.lane, slow_start = o.slow_start, recent = o.recent, last_attempt = o.last_attempt,
        in_flight = e.in_flight - o.many, pending = e.pending - o.many, delivered = e.delivered + o.many,
        ready_at = CASE WHEN o.is_ready THEN e.ready_at ELSE ${writeReadyAt("o.head", "o.free", rate)} END,
        turn = CASE WHEN o.is_ready OR o.head IS NULL OR o.free <= 0 THEN e.turn ELSE $3 + o.place - 1 END
      FROM offered AS o WHERE e.position = o.position RETURNING e.position, e.ready_at, o.before
  ) SELECT min(ready_at) FROM updated WHERE before IS NULL OR ready_at < before`;

/** Completes events that have several deliveries: `lockEvents` and `completeEvents`. */
const writeComplete = (
  toName: ToName,
): string => `DELETE FROM ${toName("completed")} WHERE event = ANY (others);
    INSERT INTO ${toName("completed")} (event, account, ended_at) SELECT ev.position, ev.account, $1 FROM ${toName("events")} AS ev
      WHERE ev.position = ANY (others) AND NOT EXISTS (SELECT 1 FROM ${toName("deliveries")} AS d WHERE d.event = ev.position AND d.state = 'pending')
      ON CONFLICT (event) DO NOTHING;`;

const describeLease = (toName: ToName, rate: RateParts): string =>
  `CREATE FUNCTION ${toName("lease_due")}(bigint, text, bigint, bigint, bigint, bigint, bigint, bigint${rate.argument}) RETURNS TABLE (${LEASED})
LANGUAGE plpgsql ${SETTINGS} AS $function$
#variable_conflict use_column
DECLARE own bigint[];
BEGIN
  IF $8 = 1 AND (EXISTS (SELECT 1 FROM ${toName("changes")}) OR EXISTS (SELECT 1 FROM ${toName("leases")} WHERE until <= $1)) THEN RETURN; END IF;
  own := ARRAY (${writeReady(toName, "fast", "$4")} UNION ALL ${writeReady(toName, "slow", "$5")});
  RETURN QUERY ${writeLease(toName, rate)};
  RETURN QUERY ${writeNext(toName)};
END $function$;`;

const describeSettle = (toName: ToName, rate: RateParts): string =>
  `CREATE FUNCTION ${toName("settle_delivered")}(bigint, bigint, bigint, text[], text[], bigint[], bigint[], bigint[], bigint[], text[], text[], text[],
  bigint[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[], text, text[]${rate.argument}) RETURNS bigint
LANGUAGE plpgsql ${SETTINGS} AS $function$
#variable_conflict use_column
DECLARE others bigint[]; wake_at bigint;
BEGIN
  PERFORM 1 FROM ${toName("endpoints")} WHERE id = ANY ($4) ORDER BY position FOR UPDATE;
  PERFORM 1 FROM ${toName("leases")} WHERE token = ANY ($12) ORDER BY position FOR UPDATE;
  IF ${writeIsOther(toName)} THEN RETURN -1; END IF;
  others := ARRAY (SELECT DISTINCT g.event FROM unnest($15, $17) AS g(event, is_only) WHERE g.is_only = 0);
  IF cardinality(others) > 0 THEN PERFORM 1 FROM ${toName("events")} WHERE position = ANY (others) ORDER BY position FOR UPDATE; END IF;
  ${writeSettle(toName, rate).replace("SELECT min(ready_at) FROM updated", "SELECT min(ready_at) INTO wake_at FROM updated")};
  IF cardinality(others) > 0 THEN
    ${writeComplete(toName)}
  END IF;
  RETURN wake_at;
END $function$;`;

/** Returns the statements that create the functions. */
export const describeDeliveryFunctions = (toName: ToName): readonly string[] => [
  describeLease(toName, NO_RATE),
  describeLease(toName, LEASE_RATE),
  describeSettle(toName, NO_RATE),
  describeSettle(toName, SETTLE_RATE),
];

/** The texts of calls of the functions. */
export interface DeliveryCalls {
  readonly lease: string;
  readonly settle: string;
  /** With `perSecond` as the last argument. */
  readonly ratedLease: string;
  readonly ratedSettle: string;
}

const writeParameters = (count: number): string =>
  Array.from({ length: count }, (_, index) => `$${index + 1}`).join(", ");

/** Writes calls of the functions. */
export function writeDeliveryCalls(toName: ToName): DeliveryCalls {
  const writeLeaseCall = (count: number): string =>
    `SELECT * FROM ${toName("lease_due")}(${writeParameters(count)})`;
  const writeSettleCall = (count: number): string =>
    `SELECT ${toName("settle_delivered")}(${writeParameters(count)}) AS wake_at`;
  return {
    lease: writeLeaseCall(8),
    settle: writeSettleCall(21),
    ratedLease: writeLeaseCall(9),
    ratedSettle: writeSettleCall(22),
  };
}

/** The result of `settle_delivered` if it has changed nothing. */
export const REFUSED = -1;

/** Reads what `lease_due` returns; `undefined` if it has leased nothing, for others come first. */
export function decodeLeased(rows: readonly DueRow[]): LeasedRound | undefined {
  const [first, last] = [rows[0]?.payload, rows.at(-1)?.payload];
  if (first == null || last == null) return undefined;
  return {
    rows: rows.slice(1, -1),
    endpoints: JSON.parse(first) as LeasedRound["endpoints"],
    next: JSON.parse(last) as LeasedRound["next"],
  };
}

/** The values of an endpoint that is settled. */
export const DELIVERED_ENDPOINT_VALUES = 8;

export const listDeliveredEndpoints = ({ endpoints }: DeliveredBatch): readonly SqlValues[] =>
  endpoints.map((own) => [
    ...[own.id, own.account, own.generation, own.hour, own.count, own.durationMs, own.lane, own.lastAttempt],
  ]);

/** Returns the arrays of deliveries that are settled, the text of their attempts, and sketches. */
export const listDelivered = ({ deliveries, endpoints }: DeliveredBatch): readonly string[] => [
  `{${deliveries.map((own) => own.token).join(",")}}`,
  `{${deliveries.map((own) => own.position).join(",")}}`,
  `{${deliveries.map((own) => own.event).join(",")}}`,
  `{${deliveries.map((own) => own.endpoint).join(",")}}`,
  `{${deliveries.map((own) => own.isOnly).join(",")}}`,
  `{${deliveries.map((own) => own.startedAt).join(",")}}`,
  `{${deliveries.map((own) => own.endedAt).join(",")}}`,
  deliveries.map((own) => own.attempts).join(ATTEMPTS_SEPARATOR),
  `{${endpoints.map(({ sketch }) => sketch).join(",")}}`,
];
