-- The master keys that this database was used with.
CREATE TABLE master_keys (
  check_value    bytea PRIMARY KEY,
  -- What outlives a master key, sealed with this one. Null for the first, which those secrets are derived from.
  sealed_secrets bytea,
  replaced_at    timestamptz
);
-- One is current.
CREATE UNIQUE INDEX master_keys_current ON master_keys ((true)) WHERE replaced_at IS NULL;
INSERT INTO master_keys (check_value) SELECT check_value FROM master_key_check;
DROP TABLE master_key_check;

-- Whether new keys are kept only as hashes.
CREATE TABLE key_storage (
  only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  hash_only boolean NOT NULL
);
INSERT INTO key_storage (hash_only) VALUES (false);

-- A key that is sealed again, or whose copy is deleted, is the same to every gateway.
DROP TRIGGER api_keys_changed ON api_keys;
CREATE TRIGGER api_keys_changed AFTER INSERT OR DELETE ON api_keys
  FOR EACH ROW EXECUTE FUNCTION notify_change('key');
CREATE TRIGGER api_keys_updated AFTER UPDATE ON api_keys
  FOR EACH ROW WHEN (OLD.sealed_key IS NOT DISTINCT FROM NEW.sealed_key) EXECUTE FUNCTION notify_change('key');
