-- How many more attempts an endpoint may have in flight; below 0 after the limit was lowered.
-- `countFreeSlots` of storage/queue/endpoint.ts. `p_slow_start`: null for `p_per_endpoint`.
CREATE FUNCTION count_free_slots(p_slow_start bigint, p_in_flight bigint, p_per_endpoint bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN least(p_per_endpoint, p_slow_start) - p_in_flight;
