-- An instant as notifications have it: RFC 3339 in UTC with milliseconds.
CREATE OR REPLACE FUNCTION print_instant(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- A gateway process keeps both secrets of a key that was rotated, and reads them again when the end of one is known.
CREATE OR REPLACE FUNCTION notify_secret_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_changes', 'key:' || NEW.key_id);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER former_secrets_changed AFTER UPDATE ON former_secrets
  FOR EACH ROW WHEN (OLD.ends_at <> NEW.ends_at OR OLD.successor_used_at IS DISTINCT FROM NEW.successor_used_at)
  EXECUTE FUNCTION notify_secret_change();

-- A key that tries the draft of an agent is nothing that anyone is notified of.
CREATE OR REPLACE FUNCTION record_key_revoked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_event('key.revoked', NEW.account_id, NEW.id, 'key.revoked ' || NEW.id, jsonb_build_object(
    'key_id', NEW.id, 'name', NEW.name, 'key_prefix', NEW.prefix, 'revoked_at', print_instant(NEW.revoked_at)));
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER api_keys_revoked AFTER UPDATE ON api_keys
  FOR EACH ROW WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL AND NOT NEW.opens_draft)
  EXECUTE FUNCTION record_key_revoked();
