-- Inserts events with their deliveries: what `insertEvents` of storage/sql/insert-events.ts does table by
-- table. Returns the position of each, in their order; null for one whose id another process has just
-- stored. One call costs one round trip, and its plan is kept behind a pooler too: an event may be
-- written in a transaction of the host, where both count.
--
-- `p_events`: a list of `NewEvent`. `p_assumed`: a list of `AssumedAccount`, both of
-- storage/sql/database.ts; null if nothing is assumed. If an event is known, or an account is not as
-- assumed, nothing is inserted and no row returned. `p_channel`: where to notify workers that sleep;
-- null for nobody.
CREATE FUNCTION append_events(p_now bigint, p_events json, p_assumed json, p_channel text) RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $function$
BEGIN
  PERFORM check_encoding();
  IF p_assumed IS NOT NULL AND (
    EXISTS (
      SELECT FROM json_to_recordset(p_events) AS g(account text, id text) CROSS JOIN LATERAL (
        SELECT FROM events AS e WHERE e.account = g.account AND e.id = g.id
        UNION ALL
        SELECT FROM remembered AS r WHERE r.account = g.account AND r.id = g.id AND r.expires_at > p_now
      ) AS known
    ) OR EXISTS (
      SELECT FROM json_to_recordset(p_assumed) AS g(account text, webhooks text, "maxPending" bigint) CROSS JOIN LATERAL (
        SELECT coalesce(string_agg(w.position || ':' || e.updated_at, ',' ORDER BY w.position), '') AS webhooks,
          coalesce(sum(e.pending), 0) AS pending
        FROM webhooks AS w JOIN endpoints AS e ON e.position = w.position WHERE w.account = g.account
      ) AS found
      WHERE found.webhooks <> g.webhooks OR found.pending > g."maxPending"
    )
  ) THEN
    RETURN;
  END IF;

  IF p_channel IS NOT NULL AND NOT nobody_sleeps() THEN
    PERFORM pg_notify(p_channel, p_now::text);
  END IF;

  RETURN QUERY WITH given AS MATERIALIZED (
    SELECT nextval('events_position_seq') AS position, g.*
    FROM ROWS FROM (json_to_recordset(p_events) AS (
      account text, id text, type text, subject text, tags json, digest text, payload text, bytes bigint,
      "rememberUntil" bigint, receivers text, "isTest" boolean, endpoints json, filtered json,
      "keepMs" bigint
    )) WITH ORDINALITY AS g(
      account, id, type, subject, tags, digest, payload, bytes, remember_until, receivers, is_test, endpoints,
      filtered, keep_ms, place
    )
  ), stored AS (
    INSERT INTO events (
      position, account, id, type, subject, tags, digest, bytes, stored_at, remember_until, receivers, is_test, deliveries,
      keep_ms
    )
    SELECT position, account, id, type, subject, tags::text, digest, bytes, p_now, remember_until, receivers, is_test::int,
      json_array_length(endpoints), keep_ms
    FROM given ORDER BY place
    ON CONFLICT (account, id) DO NOTHING
    RETURNING events.position
  ), added AS MATERIALIZED (
    SELECT given.* FROM given JOIN stored ON stored.position = given.position
  ), body AS (
    INSERT INTO bodies (event, payload) SELECT position, payload FROM added
  ), tagged AS (
    INSERT INTO event_tags (account, tag, event)
    SELECT added.account, t.value, added.position
    FROM added CROSS JOIN LATERAL json_array_elements_text(added.tags) AS t(value)
    WHERE json_typeof(added.tags) = 'array'
  ), ended AS (
    INSERT INTO completed (event, account, place)
    SELECT position, account, find_free_place(p_now, keep_ms) FROM added WHERE json_array_length(endpoints) = 0
  ), created AS MATERIALIZED (
    SELECT nextval('deliveries_position_seq') AS position, added.position AS event, e.value::bigint AS endpoint
    FROM added CROSS JOIN LATERAL json_array_elements_text(added.endpoints) WITH ORDINALITY AS e(value, nth)
    ORDER BY added.place, e.nth
  ), delivery AS (
    INSERT INTO deliveries (
      position, endpoint, event, serial, created_at, state, step, due_at, postponed, crashes, is_recovered,
      queued_at, attempts
    )
    SELECT position, endpoint, event, 0, p_now, 'pending', 0, p_now, 0, 0, 0,
      find_queue_time(NULL, p_now, NULL, p_now), ''
    FROM created
  ), queued AS (
    INSERT INTO queue (endpoint, at, delivery)
    SELECT endpoint, find_queue_time(NULL, p_now, NULL, p_now), position FROM created
  ), counted AS (
    INSERT INTO changes (counts, events, bytes)
    SELECT (
        SELECT coalesce(json_agg(counts), '[]')::text
        FROM (
          SELECT json_build_array(endpoint, count(*)) AS counts FROM created GROUP BY endpoint
          UNION ALL
          SELECT json_build_array(f.value::bigint, 0, 0, 0, 0, 0, count(*))
          FROM added CROSS JOIN LATERAL json_array_elements_text(added.filtered) AS f(value) GROUP BY f.value
        ) AS counts_of_endpoint
      ), count(*), sum(bytes)
    FROM added HAVING count(*) > 0
  )
  SELECT stored.position FROM given LEFT JOIN stored ON stored.position = given.position ORDER BY given.place;
END
$function$;
