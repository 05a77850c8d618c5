-- Adds up the entries of a sketch of durations: `writeSketch` of storage/queue/recent-attempts.ts.
CREATE FUNCTION compact_sketch(p_sketch text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN (
  SELECT string_agg(name || attempts, '' ORDER BY name COLLATE "C")
  FROM (
    SELECT entry[1] AS name, sum(entry[2]::bigint) AS attempts
    FROM regexp_matches(p_sketch, '([a-j]{2})([0-9]{1,15})', 'g') AS entry
    GROUP BY entry[1]
  ) AS entries
);
