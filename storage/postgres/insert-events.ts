/**
 * Inserts events with everything that belongs to them in one statement: an event may be written in
 * a transaction of the host, where each round trip counts.
 */

import { FIRST_ATTEMPT_HEAD_START_MS } from "../../src/webhooks/store.js";
import type { NewEvent, SqlValues } from "../sql/database.js";

/** Returns the statement for the tables of a schema. It does what `insertEvents` does. */
export const writeInsertEvents = (toName: (name: string) => string): string => `WITH given AS MATERIALIZED (
    SELECT nextval('${toName("events_position_seq")}') AS position, u.*
      FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[], $11::bigint[], $12::bigint[], $13::text[])
        WITH ORDINALITY AS u(account, id, type, subject, digest, bytes, remember_until, receivers, is_test, deliveries, payload, place)
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
    INSERT INTO ${toName("changes")} (endpoint, pending, delivered, failed, withheld, failed_tests, events, bytes)
      SELECT endpoint, count(*), 0, 0, 0, 0, 0, 0 FROM wanted GROUP BY endpoint
      UNION ALL SELECT 0, 0, 0, 0, 0, 0, count(*), coalesce(sum(bytes), 0) FROM kept
  ) SELECT stored.position FROM given LEFT JOIN stored ON stored.position = given.position ORDER BY given.place`;

/** The values of an event, and of a delivery. */
export const EVENT_VALUES = 11;
export const DELIVERY_VALUES = 2;

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
    times: [now, now - FIRST_ATTEMPT_HEAD_START_MS],
    events: added.map((event) => [
      ...[event.account, event.id, event.type, event.subject, event.digest, event.bytes],
      ...[event.rememberUntil, event.receivers, event.isTest ? 1 : 0, event.endpoints.length, event.payload],
    ]),
    deliveries: added.flatMap(({ endpoints }, index) => endpoints.map((endpoint) => [index + 1, endpoint])),
  };
}
