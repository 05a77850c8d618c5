-- Adds the attempts of another sketch: `addToSketch` of storage/queue/recent-attempts.ts.
CREATE FUNCTION add_to_sketch(p_sketch text, p_added text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE
  WHEN length(p_sketch || p_added) <= max_sketch_characters() THEN p_sketch || p_added
  ELSE compact_sketch(p_sketch || p_added)
END;
