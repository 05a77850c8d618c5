-- True if an endpoint keeps its turn, whatever has changed about it: it is ready already.
-- `keepsTurn` of storage/queue/endpoint.ts.
CREATE FUNCTION keeps_turn(p_ready_at bigint, p_now bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN coalesce(p_ready_at <= p_now, false);
