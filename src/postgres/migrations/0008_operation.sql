-- What operators do to the running service.

-- Channels that take no new calls; the others have no row. No reference: channels are in the configuration.
CREATE TABLE channel_holds (
  id         text PRIMARY KEY,
  state      text NOT NULL CHECK (state IN ('paused', 'draining')),
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
