-- How many deliveries were claimed in the second that counts at `p_now`.
-- `getSecond` of storage/queue/endpoint.ts.
CREATE FUNCTION count_claimed(p_second bigint, p_count bigint, p_now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN p_second = find_second(p_second, p_now) THEN p_count ELSE 0 END;
