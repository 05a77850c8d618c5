-- The second that counts at `p_now`: the one that was claimed in last, or the current one.
-- `getSecond` of storage/queue/endpoint.ts. `p_second`: null before the first claim.
CREATE FUNCTION find_second(p_second bigint, p_now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN CASE
  WHEN p_second BETWEEN p_now / ms_per_second() AND p_now / ms_per_second() + max_seconds_ahead() THEN p_second
  ELSE p_now / ms_per_second()
END;
