-- Partitions by month of the tables that keep growing. `SECURITY DEFINER`: the service has no right to change tables,
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

-- Makes a table with the columns, indexes and triggers of a partition. `%1$s` is its name.
CREATE OR REPLACE FUNCTION make_partition_table(parent text, partition text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  statement text;
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition, parent);
  FOREACH statement IN ARRAY CASE parent
    WHEN 'usage_rows' THEN ARRAY[
      -- The one unique index: a booking looks for each row in every unique index. Ids are unique by their sequence.
      'ALTER TABLE %1$s ADD UNIQUE (request_id)',
      'CREATE INDEX %1$s_id ON %1$s (id)',
      'CREATE INDEX %1$s_task ON %1$s (task_id) WHERE task_id IS NOT NULL']
    WHEN 'ledger_entries' THEN ARRAY[
      'ALTER TABLE %1$s ADD PRIMARY KEY (account_id, id)',
      -- One charge, one hold, one release a request or task: a second delivery changes nothing.
      'CREATE UNIQUE INDEX %1$s_ref_kind ON %1$s (ref, kind) WHERE ref IS NOT NULL',
      'CREATE UNIQUE INDEX %1$s_reference ON %1$s (account_id, reference) WHERE reference IS NOT NULL',
      -- Of the next audit, which reads what was written since: a few pages for millions of entries.
      'CREATE INDEX %1$s_time ON %1$s USING brin (created_at) WITH (autosummarize)']
    WHEN 'audit_entries' THEN ARRAY[
      'ALTER TABLE %1$s ADD PRIMARY KEY (id)',
      'CREATE INDEX %1$s_account ON %1$s (account_id, id)',
      'CREATE INDEX %1$s_subject ON %1$s (subject_id, id)',
      'CREATE INDEX %1$s_at ON %1$s (at)']
    WHEN 'tasks' THEN ARRAY[
      'ALTER TABLE %1$s ADD PRIMARY KEY (id)',
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
-- the past, which takes all rows of the time before the first month, and then each month to `ahead` months from now. Returns its name; null when none is missing. Rows of the month that
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
  SELECT t.name, t.name || '_past' AS partition, this.month AS ends_at, partition_bound(t.name, this.month) AS to_bound
  INTO missing
  FROM partitioned_tables() AS t CROSS JOIN (SELECT date_trunc('month', now(), 'UTC') AS month) AS this
  WHERE NOT EXISTS (SELECT FROM partitions AS p WHERE p.table_name = t.name) LIMIT 1;
  IF FOUND THEN
    PERFORM make_partition_table(missing.name, missing.partition);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%s)',
      missing.name, missing.partition, missing.to_bound);
    INSERT INTO partitions (name, table_name, ends_at) VALUES (missing.partition, missing.name, missing.ends_at);
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

-- Says why the partition cannot be retired yet; null: it can.
CREATE OR REPLACE FUNCTION retirement_obstacle(part partitions) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  newest bigint;
BEGIN
  IF part.table_name <> 'audit_entries' AND EXISTS (
    SELECT FROM tasks WHERE submitted_at < ms_of(part.ends_at) AND ended_at IS NULL)
  THEN
    RETURN 'a task of its time is open';
  END IF;
  IF part.table_name = 'usage_rows' THEN
    EXECUTE format('SELECT max(id) FROM %I', part.name) INTO newest;
    IF newest > (SELECT copied_upto FROM usage_copy) THEN
      RETURN 'the call log does not have all of its calls';
    END IF;
    -- A rebuild reads the months of PostgreSQL here and those before in the log that is there.
    IF EXISTS (
      SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = 7811003 AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    THEN
      RETURN 'the call log is being rebuilt';
    END IF;
  END IF;
  RETURN NULL;
END
$$;

-- Adds the closing balances of a partition of the ledger.
CREATE OR REPLACE FUNCTION close_ledger(part partitions) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format($sql$
    INSERT INTO closing_balances (account_id, closed_at, balance, held, used, entry_count)
    SELECT m.account_id, $1, coalesce(c.balance, 0) + m.balance, coalesce(c.held, 0) + m.held,
      coalesce(c.used, 0) + m.used, coalesce(c.entry_count, 0) + m.entry_count
    FROM (
      SELECT account_id, sum(amount) AS balance, count(*) AS entry_count,
        coalesce(-sum(amount) FILTER (WHERE kind IN ('hold', 'release', 'refund')), 0) AS held,
        coalesce(-sum(amount) FILTER (WHERE kind = 'charge'), 0) AS used
      FROM %I GROUP BY account_id
    ) AS m LEFT JOIN last_closings AS c ON c.account_id = m.account_id
  $sql$, part.name) USING part.ends_at;
END
$$;

-- Makes the table of what stays of a partition that is retired. The check shows that its rows fit, without reading them.
CREATE OR REPLACE FUNCTION make_remainder(part partitions, what text, OUT remainder text) LANGUAGE plpgsql AS $$
BEGIN
  remainder := part.name || '_' || what;
  PERFORM make_partition_table(part.table_name, remainder);
  EXECUTE (
    SELECT format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (%s)', remainder, remainder,
      concat_ws(' AND ', t.key || ' < ' || partition_bound(t.name, part.ends_at),
        t.key || ' >= ' || partition_bound(t.name, part.starts_at)))
    FROM partitioned_tables() AS t WHERE t.name = part.table_name);
END
$$;

-- Takes the oldest partition of a table away that ended before an instant, and two months ago at least: drops it, or
-- detaches it and leaves it as a table. What replaces it is written in the same transaction. Two things stay, as a smaller
-- partition of the same time that is not retired: credits, which are entries of the ledger that belong to no call and no
-- task, and voices and avatars that are ready, because the row of the task is what the customer uses. Returns the
-- partition, with what keeps it where it was not taken; nulls where there is none.
CREATE OR REPLACE FUNCTION retire_partition(
  wanted_table text, before timestamptz, detaches boolean, OUT name text, OUT row_count bigint, OUT obstacle text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  part partitions;
  remainder text;
  made_ids text[];
  newest bigint;
  newest_now bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7811005);
  SELECT p.* INTO part FROM partitions AS p
  WHERE p.table_name = wanted_table AND p.state = 'attached' AND p.ends_at <= before
    AND p.ends_at <= months_later(date_trunc('month', now(), 'UTC'), -2)
  ORDER BY p.ends_at LIMIT 1;
  name := part.name;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  obstacle := retirement_obstacle(part);
  IF obstacle IS NOT NULL THEN
    RETURN;
  END IF;
  IF wanted_table = 'usage_rows' THEN
    EXECUTE format('SELECT max(id) FROM %I', part.name) INTO newest;
  END IF;
  EXECUTE format('SELECT count(*) FROM %I', part.name) INTO row_count;
  IF wanted_table = 'ledger_entries' THEN
    PERFORM close_ledger(part);
    remainder := make_remainder(part, 'credits');
    EXECUTE format(
      'INSERT INTO %I SELECT * FROM %I WHERE kind NOT IN (''charge'', ''hold'', ''release'', ''refund'')', remainder, part.name);
  ELSIF wanted_table = 'tasks' THEN
    EXECUTE format(
      'SELECT array_agg(id) FROM %I WHERE kind IN (''voice'', ''avatar'') AND state = ''succeeded'' AND deleted_at IS NULL',
      part.name) INTO made_ids;
    IF made_ids IS NOT NULL THEN
      remainder := make_remainder(part, 'made');
    END IF;
  ELSIF wanted_table = 'usage_rows' THEN
    EXECUTE format($sql$
      INSERT INTO closing_usage (key_id, account_id, closed_at, row_count, call_count, cost)
      SELECT key_id, account_id, $1, count(*), sum(call_count), sum(cost) FROM %I GROUP BY key_id, account_id
    $sql$, part.name) USING part.ends_at;
  END IF;
  UPDATE partitions AS p SET state = CASE WHEN detaches THEN 'detached' ELSE 'dropped' END,
    row_count = retire_partition.row_count, retired_at = now()
  WHERE p.name = part.name;
  -- From here on calls wait. Bookings wait here, and not in the middle of their tables.
  PERFORM pg_advisory_xact_lock(7811001);
  PERFORM set_config('lock_timeout', '20ms', true);
  IF wanted_table = 'usage_rows' THEN
    EXECUTE format('SELECT max(id) FROM %I', part.name) INTO newest_now;
    IF newest_now IS DISTINCT FROM newest THEN
      RAISE EXCEPTION 'a call of the month was booked while its sums were made' USING ERRCODE = 'lock_not_available';
    END IF;
  END IF;
  EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', wanted_table, part.name);
  IF made_ids IS NOT NULL THEN
    -- Only now: until the partition was locked a customer could delete one.
    EXECUTE format('INSERT INTO %I SELECT * FROM %I WHERE id = ANY ($1) AND deleted_at IS NULL', remainder, part.name)
    USING made_ids;
  END IF;
  IF remainder IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', wanted_table, remainder,
      coalesce(partition_bound(wanted_table, part.starts_at), 'MINVALUE'), partition_bound(wanted_table, part.ends_at));
  END IF;
  IF NOT detaches THEN
    EXECUTE format('DROP TABLE %I', part.name);
  END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION retire_partition(text, timestamptz, boolean) FROM PUBLIC;
