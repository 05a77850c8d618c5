-- How many deliveries may be claimed at `p_now`; null for any number.
-- `countLeft` of storage/queue/endpoint.ts.
CREATE FUNCTION count_left(p_per_second bigint, p_second bigint, p_count bigint, p_now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN CASE
  WHEN p_per_second IS NOT NULL THEN greatest(0, p_per_second - count_claimed(p_second, p_count, p_now))
END;
