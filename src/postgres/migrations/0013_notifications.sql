-- The outbox: what accounts and operators are notified of, written in the transaction of what happened.

CREATE TABLE events (
  -- What receivers know it by, in every delivery.
  id            text PRIMARY KEY DEFAULT 'evt_' || replace(gen_random_uuid()::text, '-', ''),
  type          text NOT NULL,
  -- Null: an event of the installation, for its operators. No reference: an event outlives nothing and is never read on
  -- the way of a call.
  account_id    text,
  -- The task, key, payment, budget, account or channel that it is about.
  subject_id    text NOT NULL,
  -- Names what is crossed once, such as a threshold in a period; a second event of the same name is not recorded.
  crossing      text UNIQUE,
  data          jsonb NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  -- Null until its deliveries are made.
  dispatched_at timestamptz
);
CREATE INDEX events_to_dispatch ON events (created_at) WHERE dispatched_at IS NULL;
CREATE INDEX events_of_account ON events (account_id, created_at DESC);
