-- Puts partitioned tables in the place of those of today, which become their first partitions. Reads no row: the checks
-- of before show that the rows fit. The functions of partitions make the months that follow.
SELECT pg_advisory_xact_lock(7811001);
SET LOCAL lock_timeout = '20ms';
LOCK TABLE usage_rows, ledger_entries, audit_entries, tasks IN ACCESS EXCLUSIVE MODE;

-- An identity is a table's, a sequence serves all partitions.
DO $$
DECLARE
  numbered record;
  next_id bigint;
BEGIN
  FOR numbered IN SELECT * FROM (VALUES ('ledger_entries', 'ledger_entry_ids'), ('audit_entries', 'audit_entry_ids')) AS n(name, ids) LOOP
    EXECUTE format('SELECT last_value + is_called::integer FROM %s', pg_get_serial_sequence(numbered.name, 'id')) INTO next_id;
    EXECUTE format('ALTER TABLE %I ALTER COLUMN id DROP IDENTITY', numbered.name);
    EXECUTE format('CREATE SEQUENCE %I START %s', numbered.ids, next_id);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN id SET DEFAULT nextval(%L)', numbered.name, numbered.ids);
  END LOOP;
END
$$;

DO $$
DECLARE
  part record;
  bound text;
BEGIN
  FOR part IN
    SELECT p.*, k.key, k.is_ms FROM partitions AS p
    JOIN (VALUES ('usage_rows', 'submitted_at', true), ('ledger_entries', 'created_at', false),
      ('audit_entries', 'at', false), ('tasks', 'submitted_at', true)) AS k(name, key, is_ms) ON k.name = p.table_name
  LOOP
    bound := CASE WHEN part.is_ms THEN (extract(epoch FROM part.ends_at) * 1000)::bigint::text
      ELSE quote_literal(part.ends_at) END;
    EXECUTE format('ALTER TABLE %I RENAME TO %I', part.table_name, part.name);
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (%I)',
      part.table_name, part.name, part.key);
    EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', part.table_name, part.name);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%s)',
      part.table_name, part.name, bound);
    EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', part.name, part.name);
  END LOOP;
END
$$;
ALTER SEQUENCE usage_row_ids OWNED BY usage_rows.id;
ALTER SEQUENCE ledger_entry_ids OWNED BY ledger_entries.id;
ALTER SEQUENCE audit_entry_ids OWNED BY audit_entries.id;
