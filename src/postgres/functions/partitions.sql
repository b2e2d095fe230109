-- Partitions by month of the tables that grow for ever. `SECURITY DEFINER`: the service has no right to change tables,
-- and these functions do nothing else with it.

-- The tables, and the column that says which month a row belongs to: epoch milliseconds or an instant.
CREATE OR REPLACE FUNCTION partitioned_tables() RETURNS TABLE (name text, key text, is_ms boolean)
LANGUAGE sql IMMUTABLE AS $$
  VALUES ('usage_rows', 'submitted_at', true), ('ledger_entries', 'created_at', false),
    ('audit_entries', 'at', false), ('tasks', 'submitted_at', true)
$$;

-- The instant as the literal that the table's column has.
CREATE OR REPLACE FUNCTION partition_bound(table_name text, at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN t.is_ms THEN ms_of(at)::text ELSE quote_literal(at) END
  FROM partitioned_tables() AS t WHERE t.name = table_name
$$;

CREATE OR REPLACE FUNCTION months_later(at timestamptz, months integer) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT (at AT TIME ZONE 'UTC' + make_interval(months => months)) AT TIME ZONE 'UTC'
$$;

-- Keeps rows of a partition from being changed by its name, as those of its table are.
CREATE OR REPLACE FUNCTION guard_partition(parent text, partition text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF parent <> 'tasks' THEN
    EXECUTE format(
      'CREATE OR REPLACE TRIGGER %I BEFORE UPDATE OR DELETE OR TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION %I()',
      parent || '_stay', partition,
      CASE parent WHEN 'audit_entries' THEN 'refuse_audit_change' ELSE 'refuse_booked_change' END);
  END IF;
END
$$;
-- Partitions that are older than the function: of a new database that of the past.
SELECT guard_partition(p.table_name, p.name) FROM partitions AS p
WHERE p.state = 'attached' AND NOT EXISTS (
  SELECT FROM pg_trigger WHERE tgrelid = to_regclass(p.name) AND tgname = p.table_name || '_stay');

-- Makes a table with the columns, indexes and triggers of a partition. `%1$s` is its name.
CREATE OR REPLACE FUNCTION make_partition_table(parent text, partition text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  statement text;
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition, parent);
  FOREACH statement IN ARRAY CASE parent
    WHEN 'usage_rows' THEN ARRAY[
      'ALTER TABLE %1$s ADD PRIMARY KEY (id), ADD UNIQUE (request_id)',
      'CREATE INDEX %1$s_task ON %1$s (task_id) WHERE task_id IS NOT NULL']
    WHEN 'ledger_entries' THEN ARRAY[
      'ALTER TABLE %1$s ADD PRIMARY KEY (account_id, id)',
      -- One charge, one hold, one release a request or task: a second delivery changes nothing.
      'CREATE UNIQUE INDEX %1$s_ref_kind ON %1$s (ref, kind) WHERE ref IS NOT NULL',
      'CREATE UNIQUE INDEX %1$s_reference ON %1$s (account_id, reference) WHERE reference IS NOT NULL',
      -- Entries come in the order of time: an index of some kilobytes finds those of a day.
      'CREATE INDEX %1$s_created ON %1$s USING brin (created_at) WITH (pages_per_range = 32)']
    WHEN 'audit_entries' THEN ARRAY[
      'ALTER TABLE %1$s ADD PRIMARY KEY (id)',
      'CREATE INDEX %1$s_account ON %1$s (account_id, id)',
      'CREATE INDEX %1$s_subject ON %1$s (subject_id, id)',
      'CREATE INDEX %1$s_at ON %1$s (at)']
    WHEN 'tasks' THEN ARRAY[
      'ALTER TABLE %1$s ADD PRIMARY KEY (id)',
      'CREATE UNIQUE INDEX %1$s_intent ON %1$s (account_id, intent_key) WHERE intent_key IS NOT NULL',
      'CREATE INDEX %1$s_request ON %1$s (request_id)',
      'CREATE INDEX %1$s_list ON %1$s (account_id, kind, id)',
      'CREATE INDEX %1$s_open_by_account ON %1$s (account_id, id) WHERE ended_at IS NULL',
      'CREATE INDEX %1$s_open_by_touch ON %1$s (touched_at) WHERE ended_at IS NULL',
      'CREATE INDEX %1$s_open_by_deadline ON %1$s (deadline_at) WHERE ended_at IS NULL AND state <> ''storing''',
      'CREATE INDEX %1$s_by_submit ON %1$s (submitted_at, id)']
    END
  LOOP
    EXECUTE format(statement, partition);
  END LOOP;
  PERFORM guard_partition(parent, partition);
END
$$;

-- Makes the next partition that is missing: of a table the default partition, which takes rows of months that have none,
-- and then each month to `ahead` months from now. Returns its name; null when none is missing. Rows of the month that
-- are in the default partition move to the new one. A lock that does not come at once is an error: try again.
CREATE OR REPLACE FUNCTION make_next_partition(ahead integer DEFAULT 3) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '50ms'
AS $$
DECLARE
  missing record;
  fallback text;
  has_rows boolean;
BEGIN
  PERFORM pg_advisory_xact_lock(7811005);
  SELECT t.name, t.name || '_default' AS partition INTO missing FROM partitioned_tables() AS t
  WHERE to_regclass(t.name || '_default') IS NULL LIMIT 1;
  IF FOUND THEN
    PERFORM make_partition_table(missing.name, missing.partition);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I DEFAULT', missing.name, missing.partition);
    RETURN missing.partition;
  END IF;
  SELECT t.name, t.key, t.name || to_char(months.at AT TIME ZONE 'UTC', '_YYYY_MM') AS partition,
    months.at AS starts_at, months_later(months.at, 1) AS ends_at,
    partition_bound(t.name, months.at) AS from_bound, partition_bound(t.name, months_later(months.at, 1)) AS to_bound
  INTO missing
  FROM partitioned_tables() AS t
  CROSS JOIN LATERAL (
    SELECT months_later(date_trunc('month', now(), 'UTC'), later) AS at FROM generate_series(0, ahead) AS later
  ) AS months
  WHERE NOT EXISTS (
    SELECT FROM partitions AS p WHERE p.table_name = t.name AND p.ends_at > months.at
      AND (p.starts_at IS NULL OR p.starts_at <= months.at))
  ORDER BY months.at, t.name LIMIT 1;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  fallback := missing.name || '_default';
  PERFORM make_partition_table(missing.name, missing.partition);
  EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE %I >= %s AND %I < %s)',
    fallback, missing.key, missing.from_bound, missing.key, missing.to_bound) INTO has_rows;
  IF has_rows THEN
    EXECUTE format('ALTER TABLE %I DISABLE TRIGGER USER', fallback);
    EXECUTE format(
      'WITH moved AS (DELETE FROM %I WHERE %I >= %s AND %I < %s RETURNING *) INSERT INTO %I SELECT * FROM moved',
      fallback, missing.key, missing.from_bound, missing.key, missing.to_bound, missing.partition);
    EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', fallback);
  END IF;
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
    missing.name, missing.partition, missing.from_bound, missing.to_bound);
  INSERT INTO partitions (name, table_name, starts_at, ends_at)
  VALUES (missing.partition, missing.name, missing.starts_at, missing.ends_at);
  RETURN missing.partition;
END
$$;
REVOKE EXECUTE ON FUNCTION make_next_partition(integer) FROM PUBLIC;
