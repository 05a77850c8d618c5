-- Leases due deliveries once: what `serveRound` of storage/sql/claim.ts does row by row. Returns
-- nulls if `p_is_checking`, and changes wait to be added up or leases have expired.
--
-- `p_per_second`: null for any number; an endpoint may have a limit of its own. `p_turn`: the first of
-- as many numbers as endpoints may be served.
--
-- The settings have every statement planned by index, whatever the server knows of tables that grow
-- and shrink quickly.
CREATE FUNCTION lease_due(
  p_now bigint, p_token text, p_lease_until bigint, p_fast_room bigint, p_slow_room bigint,
  p_per_endpoint bigint, p_per_second bigint, p_turn bigint, p_is_checking boolean,
  OUT leased_rows json, OUT served_endpoints json, OUT next_times json
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
  locked bigint[];
BEGIN
  IF p_is_checking AND (
    EXISTS (SELECT FROM changes) OR EXISTS (SELECT FROM leases WHERE until <= p_now)
  ) THEN
    RETURN;
  END IF;

  -- A statement of its own: the next one sees what the transactions before have left in the queues.
  locked := ARRAY (
    SELECT * FROM (
      SELECT position FROM endpoints WHERE ready_at <= p_now AND lane = 'fast'
      ORDER BY ready_at, turn LIMIT p_fast_room FOR UPDATE SKIP LOCKED
    ) AS fast
    UNION ALL
    SELECT * FROM (
      SELECT position FROM endpoints WHERE ready_at <= p_now AND lane = 'slow'
      ORDER BY ready_at, turn LIMIT p_slow_room FOR UPDATE SKIP LOCKED
    ) AS slow
  );

  WITH ready AS MATERIALIZED (
    SELECT e.position, e.lane, e.claimed_second, e.claimed_count,
      coalesce(e.per_second, p_per_second) AS per_second,
      CASE e.lane WHEN 'fast' THEN p_fast_room ELSE p_slow_room END AS room,
      count_free_slots(e.slow_start, e.in_flight, p_per_endpoint) AS free_slots,
      count(*) OVER (PARTITION BY e.lane) AS endpoints_of_lane,
      row_number() OVER (PARTITION BY e.lane ORDER BY e.ready_at, e.turn) - 1 AS place,
      row_number() OVER (ORDER BY e.lane, e.ready_at, e.turn) - 1 AS turns_before
    FROM endpoints AS e WHERE e.position = ANY (locked)
  ), shared AS MATERIALIZED (
    SELECT *, greatest(0, least(
      free_slots,
      divide_room(room, endpoints_of_lane, place),
      count_left(per_second, claimed_second, claimed_count, p_now)
    )) AS share
    FROM ready
  ), due AS MATERIALIZED (
    -- One delivery more than the share tells when the endpoint may be served next.
    SELECT s.position AS endpoint, s.lane, s.place, s.share, q.at, q.delivery, q.nth
    FROM shared AS s CROSS JOIN LATERAL (
      SELECT at, delivery, row_number() OVER (ORDER BY at, delivery) AS nth
      FROM (
        SELECT at, delivery FROM queue WHERE endpoint = s.position AND at <= p_now
        ORDER BY at, delivery LIMIT s.share + 1
      ) AS first
    ) AS q
  ), taken AS MATERIALIZED (
    SELECT * FROM due WHERE nth <= share
  ), served AS MATERIALIZED (
    SELECT s.position, s.turns_before, s.free_slots, s.per_second, coalesce(d.taken, 0) AS taken,
      find_second(s.claimed_second, p_now) AS claimed_second,
      count_claimed(s.claimed_second, s.claimed_count, p_now) + coalesce(d.taken, 0) AS claimed_count,
      coalesce(d.head, (
        SELECT min(q.at) FROM queue AS q WHERE q.endpoint = s.position AND q.at > p_now
      )) AS head
    FROM shared AS s LEFT JOIN (
      SELECT endpoint, count(*) FILTER (WHERE nth <= share) AS taken, min(at) FILTER (WHERE nth > share) AS head
      FROM due GROUP BY endpoint
    ) AS d ON d.endpoint = s.position
  ), offered AS MATERIALIZED (
    SELECT *, find_ready_time(
      head, free_slots - taken, find_open_time(per_second, claimed_second, claimed_count, p_now)
    ) AS ready_at
    FROM served
  ), updated AS (
    UPDATE endpoints AS e SET
      in_flight = e.in_flight + o.taken,
      ready_at = o.ready_at,
      turn = CASE WHEN o.ready_at IS NULL THEN e.turn ELSE p_turn + o.turns_before END,
      claimed_second = CASE WHEN o.per_second IS NULL THEN e.claimed_second ELSE o.claimed_second END,
      claimed_count = CASE WHEN o.per_second IS NULL THEN e.claimed_count ELSE o.claimed_count END
    FROM offered AS o WHERE e.position = o.position
    RETURNING e.position, e.id, e.lane, e.status, e.updated_at, e.failing_since, e.warned_at, e.notice_at, e.ready_at
  ), removed AS (
    DELETE FROM queue AS q USING taken AS t
    WHERE q.endpoint = t.endpoint AND q.at = t.at AND q.delivery = t.delivery
  ), leased AS (
    INSERT INTO leases (token, until, deliveries)
    SELECT p_token, p_lease_until, '[' || string_agg(delivery::text, ',') || ']' FROM taken HAVING count(*) > 0
  )
  SELECT
    (SELECT coalesce(json_agg(r), '[]') FROM (
      SELECT t.endpoint, t.at, d.position, d.event, d.serial, d.started_at, d.step, d.due_at, d.extra_at,
        d.postponed, d.crashes, d.is_recovered, d.attempts, ev.id AS event_id, ev.type, ev.subject, ev.tags, ev.digest,
        CASE WHEN ev.deliveries = 1 AND ev.keep_ms IS NULL THEN 1 ELSE 0 END AS is_only, b.payload
      FROM taken AS t
        JOIN deliveries AS d ON d.position = t.delivery
        JOIN events AS ev ON ev.position = d.event
        LEFT JOIN bodies AS b ON b.event = d.event
      ORDER BY t.lane, t.place, t.nth
    ) AS r),
    (SELECT coalesce(json_agg(u), '[]') FROM updated AS u)
  INTO leased_rows, served_endpoints;

  next_times := json_build_object(
    'fast', (SELECT min(ready_at) FROM endpoints WHERE lane = 'fast' AND ready_at IS NOT NULL),
    'slow', (SELECT min(ready_at) FROM endpoints WHERE lane = 'slow' AND ready_at IS NOT NULL),
    'lease', (SELECT min(until) FROM leases)
  );
END
$function$;
