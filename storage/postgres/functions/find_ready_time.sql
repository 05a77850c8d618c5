-- When an endpoint may be served next; null for not before something changes.
-- `findReadyTime` of storage/queue/endpoint.ts. `p_head`: null if the queue is empty.
CREATE FUNCTION find_ready_time(p_head bigint, p_free_slots bigint, p_open_time bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN p_head IS NOT NULL AND p_free_slots > 0 THEN greatest(p_head, p_open_time) END;
