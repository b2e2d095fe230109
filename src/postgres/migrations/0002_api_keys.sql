CREATE TABLE api_keys (
  id             text PRIMARY KEY,
  account_id     text NOT NULL REFERENCES accounts,
  name           text NOT NULL,
  kind           text NOT NULL CHECK (kind IN ('console', 'employee', 'agent', 'compute')),
  -- The first 20 characters: what any output may show.
  prefix         text NOT NULL CHECK (length(prefix) = 20),
  -- HMAC-SHA256 of the raw key.
  key_hash       bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32),
  -- The raw key under AES-256-GCM; null for a key kept only as a hash.
  sealed_key     bytea,
  -- null: every model; empty: none.
  allowed_models text[],
  expires_at     timestamptz,
  enabled        boolean NOT NULL DEFAULT true,
  revoked_at     timestamptz,
  agent_id       text,
  spend_cap      bigint CHECK (spend_cap >= 0),
  account_logs   boolean NOT NULL DEFAULT false,
  created_at     timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX api_keys_account ON api_keys (account_id, id);

-- Tells the keyed hash and the seals of one master key from those of another.
CREATE TABLE master_key_check (
  only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  check_value bytea NOT NULL
);

-- Every gateway process keeps what it read of a key and its account; whoever changes them, by whatever
-- program, the processes hear of it. Wallets have no trigger: settlements change them all the time.
CREATE FUNCTION notify_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_changes', TG_ARGV[0] || ':' || CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
  RETURN NULL;
END
$$;

CREATE TRIGGER api_keys_changed AFTER INSERT OR UPDATE OR DELETE ON api_keys
  FOR EACH ROW EXECUTE FUNCTION notify_change('key');
CREATE TRIGGER accounts_changed AFTER UPDATE OR DELETE ON accounts
  FOR EACH ROW EXECUTE FUNCTION notify_change('account');
