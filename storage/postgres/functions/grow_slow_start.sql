-- The slow start after some successes in a row; null for no limit but `p_per_endpoint`.
-- `growSlowStart` of storage/queue/endpoint.ts.
CREATE FUNCTION grow_slow_start(p_slow_start bigint, p_successes bigint, p_per_endpoint bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN p_slow_start + p_successes < p_per_endpoint THEN p_slow_start + p_successes END;
