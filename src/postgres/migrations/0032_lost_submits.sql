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
