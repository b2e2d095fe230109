-- Events of the installation are alerts for its operators. One of them acknowledges an alert, and says what was done.
ALTER TABLE events
  ADD COLUMN IF NOT EXISTS acknowledged_at timestamptz,
  ADD COLUMN IF NOT EXISTS acknowledged_by text,
  ADD COLUMN IF NOT EXISTS acknowledgement text;
CREATE INDEX IF NOT EXISTS wallets_negative ON wallets (account_id) WHERE balance < 0;
CREATE INDEX IF NOT EXISTS events_of_installation ON events (created_at DESC) WHERE account_id IS NULL;
