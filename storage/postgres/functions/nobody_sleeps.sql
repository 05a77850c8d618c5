-- True if no worker sleeps: the lock that a sleeping worker shares can be taken alone.
CREATE FUNCTION nobody_sleeps() RETURNS boolean
LANGUAGE sql VOLATILE
RETURN CASE WHEN pg_try_advisory_lock(sleep_key()) THEN pg_advisory_unlock(sleep_key()) ELSE false END;
