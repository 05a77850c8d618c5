-- The key of the advisory lock that a worker holds while it sleeps. Each schema has another one.
CREATE FUNCTION sleep_key() RETURNS bigint
LANGUAGE sql STABLE
RETURN hashtextextended('postbell sleep ' || 'endpoints'::regclass::oid, 0);
