-- The time by which a pending delivery is queued: first attempts that are due come first.
-- `findQueueTime` of storage/queue/endpoint.ts.
CREATE FUNCTION find_queue_time(p_started_at bigint, p_due_at bigint, p_extra_at bigint, p_now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN coalesce(p_extra_at, p_due_at)
  - CASE WHEN p_started_at IS NULL AND coalesce(p_extra_at, p_due_at) <= p_now THEN head_start_ms() ELSE 0 END;
