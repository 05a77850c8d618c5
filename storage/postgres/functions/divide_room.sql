-- How many deliveries an endpoint may get in one round of a claim. `p_index`: its place, from 0.
-- `divideRoom` of storage/queue/endpoint.ts.
CREATE FUNCTION divide_room(p_room bigint, p_endpoints bigint, p_index bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN p_room / p_endpoints + CASE WHEN p_index < p_room % p_endpoints THEN 1 ELSE 0 END;
