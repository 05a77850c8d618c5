-- Settles deliveries that were delivered, of healthy endpoints: what `settleAny` of
-- storage/sql/settle.ts does row by row. `is_settled` is false, and nothing was changed, unless all
-- endpoints are as assumed and all deliveries are still leased. `wake_at`: when workers should claim;
-- null for no earlier than before.
--
-- `p_endpoints`: a list of `DeliveredEndpoint`, `p_deliveries`: a list of `DeliveredRow`, both of
-- storage/sql/database.ts. `p_turn`: the first of as many numbers as there are endpoints.
CREATE FUNCTION settle_delivered(
  p_now bigint, p_per_endpoint bigint, p_per_second bigint, p_turn bigint, p_endpoints jsonb, p_deliveries jsonb,
  OUT is_settled boolean, OUT wake_at bigint
)
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET jit = off
AS $function$
DECLARE
  webhooks text[] := ARRAY (SELECT g ->> 'id' FROM jsonb_array_elements(p_endpoints) AS g);
  tokens text[];
  positions bigint[];
  shared_events bigint[];
BEGIN
  is_settled := false;
  SELECT array_agg(g.token), array_agg(g.position), array_agg(g.event) FILTER (WHERE NOT g."isOnly")
  INTO tokens, positions, shared_events
  FROM jsonb_to_recordset(p_deliveries) AS g(token text, position bigint, event bigint, "isOnly" boolean);
  PERFORM FROM endpoints WHERE id = ANY (webhooks) ORDER BY position FOR UPDATE;
  PERFORM FROM leases WHERE token = ANY (tokens) ORDER BY position FOR UPDATE;

  IF EXISTS (
    SELECT FROM jsonb_to_recordset(p_endpoints) AS g(id text, account text, generation bigint, hour bigint)
      LEFT JOIN endpoints AS e ON e.id = g.id
    WHERE e.position IS NULL OR e.account <> g.account OR e.generation <> g.generation
      OR e.status <> 'ENABLED' OR e.failing_since IS NOT NULL OR e.recent_hour IS DISTINCT FROM g.hour
  ) OR EXISTS (
    SELECT g.token, g.position FROM unnest(tokens, positions) AS g(token, position)
    EXCEPT
    SELECT l.token, d.value::bigint
    FROM leases AS l CROSS JOIN LATERAL json_array_elements_text(l.deliveries::json) AS d
    WHERE l.token = ANY (tokens)
  ) THEN
    RETURN;
  END IF;

  PERFORM FROM events WHERE position = ANY (shared_events) ORDER BY position FOR UPDATE;

  WITH counted AS MATERIALIZED (
    SELECT e.position, e.account, e.in_flight, e.ready_at, e.claimed_second, e.claimed_count, g.*,
      coalesce(e.per_second, p_per_second) AS per_second,
      grow_slow_start(e.slow_start, g.count, p_per_endpoint) AS slow_start,
      add_to_sketch(e.recent_sketch, g.sketch) AS sketch_of_hour,
      keeps_turn(e.ready_at, p_now) AS keeps_turn
    FROM ROWS FROM (
      jsonb_to_recordset(p_endpoints) AS (id text, lane text, count bigint, "durationMs" bigint, "lastAttempt" text, sketch text)
    ) WITH ORDINALITY AS g(id, lane, count, duration_ms, last_attempt, sketch, place)
      JOIN endpoints AS e ON e.id = g.id
  ), delivered AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(p_deliveries) AS g(
      position bigint, event bigint, account text, "isOnly" boolean, "startedAt" bigint, "endedAt" bigint, attempts text
    )
  ), settled AS (
    UPDATE deliveries AS d SET
      state = 'delivered', reason = NULL, started_at = g."startedAt", ended_at = g."endedAt", is_recovered = 0,
      attempts = g.attempts
    FROM delivered AS g WHERE d.position = g.position
  ), completed_alone AS (
    INSERT INTO completed (event, account, place)
    SELECT g.event, g.account, p_now FROM delivered AS g WHERE g."isOnly"
    ON CONFLICT (event) DO NOTHING
  ), rest AS MATERIALIZED (
    SELECT l.position,
      '[' || string_agg(d.value, ',') FILTER (WHERE d.value::bigint <> ALL (positions)) || ']' AS deliveries
    FROM leases AS l CROSS JOIN LATERAL json_array_elements_text(l.deliveries::json) AS d
    WHERE l.token = ANY (tokens)
    GROUP BY l.position
  ), ended AS (
    DELETE FROM leases AS l USING rest AS r WHERE l.position = r.position AND r.deliveries IS NULL
  ), shrunk AS (
    UPDATE leases AS l SET deliveries = r.deliveries
    FROM rest AS r WHERE l.position = r.position AND r.deliveries IS NOT NULL
  ), offered AS MATERIALIZED (
    SELECT c.*, CASE WHEN c.keeps_turn THEN c.ready_at ELSE find_ready_time(
      (SELECT min(q.at) FROM queue AS q WHERE q.endpoint = c.position),
      count_free_slots(c.slow_start, c.in_flight - c.count, p_per_endpoint),
      find_open_time(c.per_second, c.claimed_second, c.claimed_count, p_now)
    ) END AS offered_at
    FROM counted AS c
  ), updated AS (
    UPDATE endpoints AS e SET
      lane = o.lane,
      slow_start = o.slow_start,
      recent_succeeded = e.recent_succeeded + o.count,
      recent_duration_ms = e.recent_duration_ms + o.duration_ms,
      recent_sketch = o.sketch_of_hour,
      last_attempt = o.last_attempt,
      in_flight = e.in_flight - o.count,
      pending = e.pending - o.count,
      delivered = e.delivered + o.count,
      ready_at = o.offered_at,
      turn = CASE WHEN o.keeps_turn OR o.offered_at IS NULL THEN e.turn ELSE p_turn + o.place - 1 END
    FROM offered AS o WHERE e.position = o.position
    RETURNING e.ready_at, o.ready_at AS before
  )
  SELECT min(ready_at) FROM updated WHERE is_earlier(ready_at, before) INTO wake_at;

  IF cardinality(shared_events) > 0 THEN
    DELETE FROM completed WHERE event = ANY (shared_events);
    INSERT INTO completed (event, account, place)
    SELECT ev.position, ev.account, find_free_place(p_now, ev.keep_ms) FROM events AS ev
    WHERE ev.position = ANY (shared_events)
      AND NOT EXISTS (SELECT FROM deliveries AS d WHERE d.event = ev.position AND d.state = 'pending')
    ON CONFLICT (event) DO NOTHING;
  END IF;
  is_settled := true;
END
$function$;
