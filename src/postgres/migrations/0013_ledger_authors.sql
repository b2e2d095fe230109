-- Who put credits in or took them out, and under which reference: the same reference never counts twice in an account.
ALTER TABLE ledger_entries ADD COLUMN actor text, ADD COLUMN reference text;
CREATE UNIQUE INDEX ledger_entries_reference ON ledger_entries (account_id, reference) WHERE reference IS NOT NULL;

-- The rows that are there keep to the stricter constraint that this replaces, so they need not be read.
ALTER TABLE ledger_entries DROP CONSTRAINT ledger_kind_and_sign;
ALTER TABLE ledger_entries ADD CONSTRAINT ledger_kind_and_sign CHECK (
  CASE kind
    WHEN 'charge' THEN amount < 0 AND ref IS NOT NULL
    WHEN 'hold' THEN amount <= 0 AND ref IS NOT NULL
    WHEN 'release' THEN amount >= 0 AND ref IS NOT NULL
    WHEN 'refund' THEN amount >= 0 AND ref IS NOT NULL
    WHEN 'topup' THEN amount > 0
    WHEN 'trial' THEN amount > 0
    WHEN 'adjustment' THEN amount <> 0 AND note IS NOT NULL AND actor IS NOT NULL
    ELSE false
  END
) NOT VALID;

-- What was booked is corrected by another entry, never by changing it.
CREATE FUNCTION refuse_booked_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Rows of % are only ever added, never changed or deleted', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER ledger_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_booked_change();
CREATE TRIGGER usage_rows_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON usage_rows
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_booked_change();
