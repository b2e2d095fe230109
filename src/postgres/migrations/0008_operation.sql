-- What operators do to the running service.

-- Channels that take no new calls; the others have no row. No reference: channels are in the configuration.
CREATE TABLE channel_holds (
  id         text PRIMARY KEY,
  state      text NOT NULL CHECK (state IN ('paused', 'draining')),
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Long jobs. A settler verifies and rebuilds for operators, the task worker imports into knowledge bases.

CREATE TABLE jobs (
  id         text PRIMARY KEY,
  kind       text NOT NULL CHECK (kind IN ('verify', 'rebuild', 'import')),
  state      text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  -- Of an import the account, the knowledge base and the uploaded files.
  account_id text REFERENCES accounts,
  subject_id text,
  input      jsonb,
  -- Of a verify the checks, of a rebuild the rows, of an import the files.
  done       bigint NOT NULL DEFAULT 0,
  total      bigint NOT NULL DEFAULT 0,
  result     jsonb,
  error      text,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  -- The last sign of life of the process that runs it.
  touched_at timestamptz,
  ended_at   timestamptz,
  -- How often a process has begun it: one whose processes all end under it fails.
  attempts   integer NOT NULL DEFAULT 0
);

-- One at a time of each kind, over all processes; of imports one for each base.
CREATE UNIQUE INDEX jobs_open ON jobs (kind, coalesce(subject_id, '')) WHERE ended_at IS NULL;
CREATE INDEX jobs_by_subject ON jobs (subject_id, created_at DESC) WHERE subject_id IS NOT NULL;
CREATE INDEX jobs_by_age ON jobs (created_at DESC);

-- Partitions, as they were made and retired. A default partition is not among them.
CREATE TABLE partitions (
  name       text PRIMARY KEY,
  table_name text NOT NULL,
  -- Null: from the beginning.
  starts_at  timestamptz,
  ends_at    timestamptz NOT NULL,
  state      text NOT NULL DEFAULT 'attached' CHECK (state IN ('attached', 'detached', 'dropped')),
  -- Of one that retention has taken away: how many rows it had, and when.
  row_count  bigint,
  retired_at timestamptz,
  CHECK ((state = 'attached') = (retired_at IS NULL))
);
CREATE INDEX partitions_table ON partitions (table_name, ends_at);

-- What replaces months that retention has taken away, so that totals and the audit stay exact.

-- Of each account with entries in a retired month: the sums of all its entries up to the end of it. Amounts count 1e-8
-- credit.
CREATE TABLE closing_balances (
  account_id  text NOT NULL,
  -- The first instant after the month.
  closed_at   timestamptz NOT NULL,
  balance     bigint NOT NULL,
  held        bigint NOT NULL,
  used        bigint NOT NULL,
  entry_count bigint NOT NULL,
  PRIMARY KEY (account_id, closed_at)
);

-- Of each key with calls in a retired month: what they were in that month.
CREATE TABLE closing_usage (
  key_id     text NOT NULL,
  account_id text NOT NULL,
  -- The first instant after the month.
  closed_at  timestamptz NOT NULL,
  row_count  bigint NOT NULL,
  call_count bigint NOT NULL,
  cost       bigint NOT NULL,
  PRIMARY KEY (key_id, account_id, closed_at)
);

CREATE VIEW last_closings AS
SELECT DISTINCT ON (account_id) * FROM closing_balances ORDER BY account_id, closed_at DESC;

-- The last verify that found no difference, and what it leaves for the next one, which reads what was written since.
CREATE TABLE verified (
  only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- What was written before this instant is in the sums below.
  marked_at  timestamptz NOT NULL,
  -- The last one that read everything.
  full_at    timestamptz NOT NULL
);
-- The sum of the entries of each account.
CREATE TABLE verified_wallets (
  account_id text PRIMARY KEY,
  balance    bigint NOT NULL,
  held       bigint NOT NULL,
  used       bigint NOT NULL
);
-- The cost of the calls of each key that has a grant.
CREATE TABLE verified_grants (
  key_id text PRIMARY KEY,
  spent  bigint NOT NULL
);
