-- Reads every row, and stops no call meanwhile.
ALTER TABLE usage_rows VALIDATE CONSTRAINT usage_rows_past;
ALTER TABLE ledger_entries VALIDATE CONSTRAINT ledger_entries_past, VALIDATE CONSTRAINT ledger_kind_and_sign;
ALTER TABLE audit_entries VALIDATE CONSTRAINT audit_entries_past;
ALTER TABLE tasks VALIDATE CONSTRAINT tasks_past;
