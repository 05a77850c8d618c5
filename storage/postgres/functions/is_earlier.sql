-- True if sleeping workers must be notified: an endpoint is ready earlier than before.
-- `isEarlier` of storage/queue/endpoint.ts.
CREATE FUNCTION is_earlier(p_ready_at bigint, p_before bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN p_ready_at IS NOT NULL AND (p_before IS NULL OR p_ready_at < p_before);
