-- When the next delivery may be claimed: now, or when the next second begins.
-- `findOpenTime` of storage/queue/endpoint.ts.
CREATE FUNCTION find_open_time(p_per_second bigint, p_second bigint, p_count bigint, p_now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN CASE
  WHEN count_claimed(p_second, p_count, p_now) >= p_per_second
    THEN (find_second(p_second, p_now) + 1) * ms_per_second()
  ELSE p_now
END;
