-- Accounts, their members, keys and agents, and the audit record of changes to them.

CREATE TABLE accounts (
  id                  text PRIMARY KEY,
  name                text NOT NULL,
  kind                text NOT NULL CHECK (kind IN ('personal', 'organization')),
  enabled             boolean NOT NULL DEFAULT true,
  requests_per_minute integer CHECK (requests_per_minute > 0),
  concurrency         integer CHECK (concurrency > 0),
  created_at          timestamptz NOT NULL DEFAULT now(),
  -- null: every model; empty: none.
  allowed_models      text[]
);

CREATE TABLE api_keys (
  id                  text PRIMARY KEY,
  account_id          text NOT NULL REFERENCES accounts,
  name                text NOT NULL,
  kind                text NOT NULL CHECK (kind IN ('console', 'employee', 'agent', 'compute')),
  -- The first 20 characters: what any output may show.
  prefix              text NOT NULL CHECK (length(prefix) = 20),
  -- HMAC-SHA256 of the raw key.
  key_hash            bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32),
  -- The raw key under AES-256-GCM; null for a key kept only as a hash.
  sealed_key          bytea,
  -- null: every model; empty: none.
  allowed_models      text[],
  expires_at          timestamptz,
  enabled             boolean NOT NULL DEFAULT true,
  revoked_at          timestamptz,
  agent_id            text,
  -- Tries the draft of its agent.
  opens_draft         boolean NOT NULL DEFAULT false,
  account_logs        boolean NOT NULL DEFAULT false,
  -- Limits of this key, which hold besides those of its account.
  requests_per_minute integer CHECK (requests_per_minute > 0),
  concurrency         integer CHECK (concurrency > 0),
  -- Addresses and networks in CIDR notation; null: from anywhere.
  allowed_addresses   text[] CHECK (cardinality(allowed_addresses) > 0),
  created_at          timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX api_keys_account ON api_keys (account_id, id);
CREATE INDEX api_keys_agent ON api_keys (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;

-- Secrets that keys had before they were rotated. Of one key at most one still works.
CREATE TABLE former_secrets (
  -- HMAC-SHA256 of the secret.
  key_hash          bytea PRIMARY KEY CHECK (length(key_hash) = 32),
  key_id            text NOT NULL REFERENCES api_keys,
  prefix            text NOT NULL CHECK (length(prefix) = 20),
  replaced_at       timestamptz NOT NULL DEFAULT now(),
  -- How long it works after the first use of a later secret.
  grace_seconds     integer NOT NULL CHECK (grace_seconds BETWEEN 0 AND 604800),
  -- First use of a later secret. Null: none was used yet.
  successor_used_at timestamptz,
  -- Use of this secret after it was replaced, to the minute.
  last_used_at      timestamptz,
  ends_at           timestamptz NOT NULL
);
CREATE INDEX former_secrets_key ON former_secrets (key_id, ends_at);
CREATE INDEX former_secrets_ends ON former_secrets (ends_at);

-- The master keys that this database was used with.
CREATE TABLE master_keys (
  check_value    bytea PRIMARY KEY,
  -- What outlives a master key, sealed with this one. Null for the first, which those secrets are derived from.
  sealed_secrets bytea,
  replaced_at    timestamptz
);
-- One is current.
CREATE UNIQUE INDEX master_keys_current ON master_keys ((true)) WHERE replaced_at IS NULL;

-- Whether new keys are kept only as hashes.
CREATE TABLE key_storage (
  only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  hash_only boolean NOT NULL
);
INSERT INTO key_storage (hash_only) VALUES (false);

CREATE TABLE members (
  organization_id text NOT NULL REFERENCES accounts,
  account_id      text NOT NULL REFERENCES accounts,
  role            text NOT NULL CHECK (role IN ('owner', 'admin', 'billing', 'member')),
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, account_id),
  CHECK (organization_id <> account_id)
);

CREATE TABLE key_requests (
  id              text PRIMARY KEY,
  organization_id text NOT NULL,
  member_id       text NOT NULL,
  name            text NOT NULL,
  agent_id        text,
  note            text,
  state           text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'denied', 'withdrawn')),
  decided_by      text,
  decided_at      timestamptz,
  key_id          text REFERENCES api_keys,
  created_at      timestamptz NOT NULL DEFAULT now(),
  CHECK ((state = 'approved') = (key_id IS NOT NULL))
);
CREATE INDEX key_requests_organization ON key_requests (organization_id, id);

CREATE TABLE agents (
  id         text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  state      text NOT NULL DEFAULT 'draft' CHECK (state IN ('draft', 'published', 'deleted')),
  file       json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX agents_account ON agents (account_id, id);

-- An edit of an agent that is not published yet.
CREATE TABLE agent_drafts (
  agent_id   text PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
  file       jsonb NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- Who did what, when, and what it changed. Triggers write it, so that a change by any program leaves an entry in the
-- same transaction. Partitioned by month.
CREATE SEQUENCE audit_entry_ids;
CREATE TABLE audit_entries (
  id         bigint NOT NULL DEFAULT nextval('audit_entry_ids'),
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor      text NOT NULL,
  action     text NOT NULL,
  account_id text,
  subject_id text NOT NULL,
  before     jsonb,
  after      jsonb
) PARTITION BY RANGE (at);
ALTER SEQUENCE audit_entry_ids OWNED BY audit_entries.id;
