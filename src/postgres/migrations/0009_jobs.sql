-- Long jobs that operators start: a settler runs them.

CREATE TABLE jobs (
  id         text PRIMARY KEY,
  kind       text NOT NULL CHECK (kind IN ('verify', 'rebuild')),
  state      text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  -- Of a verify the checks, of a rebuild the rows.
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

-- One at a time of each kind, over all processes.
CREATE UNIQUE INDEX jobs_open ON jobs (kind) WHERE ended_at IS NULL;
CREATE INDEX jobs_by_age ON jobs (created_at DESC);
