-- The place of an event, completed now, among those of its account. `findFreePlace` of
-- storage/queue/append.ts.
CREATE FUNCTION find_free_place(p_now bigint, p_keep_ms bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN p_keep_ms IS NULL THEN p_now ELSE kept_from() + p_now + p_keep_ms END;
