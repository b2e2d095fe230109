-- A booking moves the ids up to the clock once, not once for each row; each row then takes a step of 32, and a random
-- distance within it.
ALTER SEQUENCE usage_row_ids INCREMENT BY 32;
CREATE OR REPLACE FUNCTION next_usage_row_id() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT nextval('usage_row_ids') + floor(random() * 32)::bigint
$$;
