-- Calls, ledger, audit record and tasks become partitioned by month in three steps, so that no lock stops calls while
-- rows are read: this one names the instant up to which the tables of today are one partition, the next one checks that
-- every row is older, and the last one puts partitioned tables in their place.

-- Partitions, as they were made and retired. A default partition is not among them.
CREATE TABLE partitions (
  name       text PRIMARY KEY,
  table_name text NOT NULL,
  -- Null: from the beginning.
  starts_at  timestamptz,
  ends_at    timestamptz NOT NULL,
  state      text NOT NULL DEFAULT 'attached' CHECK (state IN ('attached', 'detached', 'dropped')),
  -- Of one that retention has taken away: how many rows it had, and when.
  row_count  bigint,
  retired_at timestamptz,
  CHECK ((state = 'attached') = (retired_at IS NULL))
);
CREATE INDEX partitions_table ON partitions (table_name, ends_at);

-- Bookings wait here and not for the tables one after another.
SELECT pg_advisory_xact_lock(7811001);
SET LOCAL lock_timeout = '20ms';
DO $$
DECLARE
  -- Rows go on arriving until the last step: of a database in use the next month is part of the past too.
  bound timestamptz := date_trunc('month', now(), 'UTC');
BEGIN
  IF EXISTS (SELECT FROM accounts) THEN
    bound := (bound AT TIME ZONE 'UTC' + interval '2 months') AT TIME ZONE 'UTC';
  END IF;
  INSERT INTO partitions (name, table_name, ends_at)
  SELECT name || '_past', name, bound FROM unnest(ARRAY['usage_rows', 'ledger_entries', 'audit_entries', 'tasks']) AS name;
  EXECUTE format('ALTER TABLE usage_rows ADD CONSTRAINT usage_rows_past CHECK (submitted_at < %s) NOT VALID',
    (extract(epoch FROM bound) * 1000)::bigint);
  EXECUTE format('ALTER TABLE tasks ADD CONSTRAINT tasks_past CHECK (submitted_at < %s) NOT VALID',
    (extract(epoch FROM bound) * 1000)::bigint);
  EXECUTE format('ALTER TABLE ledger_entries ADD CONSTRAINT ledger_entries_past CHECK (created_at < %L) NOT VALID', bound);
  EXECUTE format('ALTER TABLE audit_entries ADD CONSTRAINT audit_entries_past CHECK (at < %L) NOT VALID', bound);
END
$$;

-- A partitioned table has no unique index on a column that says nothing of the month: each partition has one. Bookings
-- that wait for the last step run the function as it was when they began, so it already asks for no index by its column.
-- A new database has no function yet.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_proc WHERE proname = 'book_settlements' AND pronamespace = current_schema()::regnamespace) THEN
    EXECUTE (
      SELECT replace(pg_get_functiondef(oid), 'ON CONFLICT (request_id) DO NOTHING', 'ON CONFLICT DO NOTHING')
      FROM pg_proc WHERE proname = 'book_settlements' AND pronamespace = current_schema()::regnamespace);
  END IF;
END
$$;
