-- Ids of usage rows are shown to customers. They follow the clock, in microseconds, so that two of them tell how much
-- time is between two calls, and not how many calls of others. They still rise in the order of commit, because whoever
-- inserts holds the lock that book_settlements takes; rows of one batch stand a random distance apart. An id stays
-- below 2^53 until the year 2255. The rows that are there keep their ids, which are lower.
ALTER TABLE usage_rows ALTER COLUMN id DROP IDENTITY;
CREATE SEQUENCE usage_row_ids OWNED BY usage_rows.id;
CREATE FUNCTION next_usage_row_id() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT setval('usage_row_ids', greatest(
    nextval('usage_row_ids') + floor(random() * 64)::bigint,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))
$$;
ALTER TABLE usage_rows ALTER COLUMN id SET DEFAULT next_usage_row_id();
