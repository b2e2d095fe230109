-- Limits of one key, which hold besides those of its account.
ALTER TABLE api_keys
  ADD COLUMN requests_per_minute integer CHECK (requests_per_minute > 0),
  ADD COLUMN concurrency integer CHECK (concurrency > 0),
  -- Addresses and networks in CIDR notation; null: from anywhere.
  ADD COLUMN allowed_addresses text[] CHECK (cardinality(allowed_addresses) > 0);
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;

-- Secrets that keys had before they were rotated. Of one key at most one still works.
CREATE TABLE former_secrets (
  -- HMAC-SHA256 of the secret.
  key_hash          bytea PRIMARY KEY CHECK (length(key_hash) = 32),
  key_id            text NOT NULL REFERENCES api_keys,
  prefix            text NOT NULL CHECK (length(prefix) = 20),
  replaced_at       timestamptz NOT NULL DEFAULT now(),
  -- For so long it works on after the first use of a later secret.
  grace_seconds     integer NOT NULL CHECK (grace_seconds BETWEEN 0 AND 604800),
  -- First use of a later secret. Null: none was used yet.
  successor_used_at timestamptz,
  -- Use of this secret after it was replaced, to the minute.
  last_used_at      timestamptz,
  ends_at           timestamptz NOT NULL
);
CREATE INDEX former_secrets_key ON former_secrets (key_id, ends_at);
CREATE INDEX former_secrets_ends ON former_secrets (ends_at);
