-- Work that outlives its request. Instants are epoch milliseconds, amounts count 1e-8 credit. Each transition names the
-- version of the task that was read. Partitioned by month.
CREATE TABLE tasks (
  id             text NOT NULL,
  kind           text NOT NULL,
  account_id     text NOT NULL,
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
  -- Whether the request that made the task waits for its end. Such a task is no job that outlives its request.
  is_awaited     boolean NOT NULL DEFAULT false,
  -- What its own events are delivered to, besides the endpoints of its account.
  callback_url   text,
  -- The session of the request that made it.
  session_id     text,
  CHECK ((state IN ('succeeded', 'failed', 'expired', 'cancelled', 'refused')) = (ended_at IS NOT NULL))
) PARTITION BY RANGE (submitted_at);

-- Files of the object store that do not last for ever.
CREATE TABLE stored_objects (
  key        text PRIMARY KEY,
  expires_at bigint NOT NULL
);
CREATE INDEX stored_objects_expiry ON stored_objects (expires_at);

-- Submits of which nobody knows what became: their customers have an error and the money, and what the provider may have
-- begun is the operator's. Names the facts of its task, which retention may take away before. Instants are epoch
-- milliseconds, amounts count 1e-8 credit.
CREATE TABLE lost_submits (
  task_id        text PRIMARY KEY,
  account_id     text NOT NULL,
  request_id     text NOT NULL,
  kind           text NOT NULL,
  model          text NOT NULL,
  channel_id     text,
  lost_at        bigint NOT NULL,
  -- What the customer was answered.
  reason         text NOT NULL,
  state          text NOT NULL DEFAULT 'open',
  upstream_id    text,
  upstream_state text,
  checks         integer NOT NULL DEFAULT 0,
  checked_at     bigint,
  -- Null: its provider is not asked any more, or cannot be.
  next_check_at  bigint,
  -- What the operator pays for it; null where that is not known.
  cost           bigint CHECK (cost >= 0),
  closed_at      bigint,
  -- The operator who closed it, and why; null where the provider's answer did.
  closed_by      text,
  close_reason   text,
  CHECK ((state IN ('open', 'found')) = (closed_at IS NULL))
);
CREATE INDEX lost_submits_due ON lost_submits (next_check_at) WHERE closed_at IS NULL;
CREATE INDEX lost_submits_list ON lost_submits (lost_at, task_id);
CREATE INDEX lost_submits_open ON lost_submits (lost_at, task_id) WHERE closed_at IS NULL;
