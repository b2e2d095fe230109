-- Work that outlives its request. Instants are epoch milliseconds, amounts count 1e-8 credit. Each transition names the
-- version of the task that was read.
CREATE TABLE tasks (
  id             text PRIMARY KEY,
  kind           text NOT NULL,
  account_id     text NOT NULL REFERENCES accounts,
  key_id         text NOT NULL,
  request_id     text NOT NULL,
  model          text NOT NULL,
  protocol       text NOT NULL,
  job            json NOT NULL,
  price          json NOT NULL,
  hold           bigint NOT NULL CHECK (hold >= 0),
  is_early       boolean NOT NULL,
  channel_ids    text[] NOT NULL,
  state          text NOT NULL,
  version        integer NOT NULL DEFAULT 1,
  chain          integer NOT NULL DEFAULT 0,
  channel_id     text,
  upstream_model text,
  upstream_id    text,
  upstream_state text,
  result         json,
  error_code     text,
  error_message  text,
  refused_status integer,
  attempts       json NOT NULL DEFAULT '[]',
  cost           bigint,
  submitted_at   bigint NOT NULL,
  accepted_at    bigint,
  ended_at       bigint,
  deadline_at    bigint NOT NULL,
  deleted_at     bigint,
  touched_at     bigint NOT NULL,
  -- The Idempotency-Key that it was made under; null again once another task may be made under it.
  intent_key     text,
  intent_hash    bytea,
  -- Whether the request that made the task waits for its end. Such a task is no job that outlives its request.
  is_awaited     boolean NOT NULL DEFAULT false,
  CHECK ((state IN ('succeeded', 'failed', 'expired', 'cancelled', 'refused')) = (ended_at IS NOT NULL))
);
CREATE UNIQUE INDEX tasks_intent ON tasks (account_id, intent_key) WHERE intent_key IS NOT NULL;
CREATE INDEX tasks_request ON tasks (request_id);
-- Ids rise with time: a list reads from the newest on.
CREATE INDEX tasks_list ON tasks (account_id, kind, id);
CREATE INDEX tasks_open_by_account ON tasks (account_id, id) WHERE ended_at IS NULL;
CREATE INDEX tasks_open_by_touch ON tasks (touched_at) WHERE ended_at IS NULL;
CREATE INDEX tasks_open_by_deadline ON tasks (deadline_at) WHERE ended_at IS NULL AND state <> 'storing';
-- Operators list the tasks of all accounts, the newest first.
CREATE INDEX tasks_by_submit ON tasks (submitted_at, id);

-- Files of the object store that do not last for ever.
CREATE TABLE stored_objects (
  key        text PRIMARY KEY,
  expires_at bigint NOT NULL
);
CREATE INDEX stored_objects_expiry ON stored_objects (expires_at);
