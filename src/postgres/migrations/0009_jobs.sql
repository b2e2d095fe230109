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
  ended_at   timestamptz
);

-- One at a time of each kind, over all processes; of imports one for each base.
CREATE UNIQUE INDEX jobs_open ON jobs (kind, coalesce(subject_id, '')) WHERE ended_at IS NULL;
CREATE INDEX jobs_by_subject ON jobs (subject_id, created_at DESC) WHERE subject_id IS NOT NULL;
CREATE INDEX jobs_by_age ON jobs (created_at DESC);
