-- Events, their receivers, and each delivery.

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

-- Receivers of webhooks, and for each account that uses callbacks one row with the secret that signs them.
CREATE TABLE webhook_endpoints (
  id                   text PRIMARY KEY,
  kind                 text NOT NULL CHECK (kind IN ('webhook', 'callback')),
  -- `installation`: for its operators. No reference, as with events.
  account_id           text NOT NULL,
  -- Null for callbacks: each task names its own.
  url                  text,
  description          text NOT NULL DEFAULT '',
  -- Null: all events.
  events               text[],
  enabled              boolean NOT NULL DEFAULT true,
  -- The first failure since the last success.
  failing_since        timestamptz,
  -- Sealed with the master key.
  sealed_secret        bytea NOT NULL,
  -- Signs as well, until it is over.
  sealed_former_secret bytea,
  former_until         timestamptz,
  rotated_at           timestamptz,
  created_at           timestamptz NOT NULL DEFAULT now(),
  CHECK ((kind = 'callback') = (url IS NULL))
);
CREATE INDEX webhook_endpoints_account ON webhook_endpoints (account_id, id);
CREATE UNIQUE INDEX webhook_endpoints_callback ON webhook_endpoints (account_id) WHERE kind = 'callback';

-- Which events a user gets by email, of an account or of the `installation`; without a row those of the role.
CREATE TABLE email_choices (
  user_id    text NOT NULL REFERENCES users,
  account_id text NOT NULL,
  events     text[] NOT NULL,
  PRIMARY KEY (user_id, account_id)
);

-- One event to one receiver, or a mail of the service to a person.
CREATE TABLE deliveries (
  id          text PRIMARY KEY DEFAULT 'dlv_' || replace(gen_random_uuid()::text, '-', ''),
  position    bigint GENERATED ALWAYS AS IDENTITY,
  account_id  text,
  event_id    text REFERENCES events ON DELETE CASCADE,
  -- Its endpoint, or `mail`: deliveries of one lane wait for one another, and for no others.
  lane        text NOT NULL,
  endpoint_id text REFERENCES webhook_endpoints ON DELETE CASCADE,
  -- Of a callback.
  url         text,
  user_id     text,
  -- Of an email.
  address     text,
  -- What a mail says that is no event, links included; sealed with the master key, gone once it is sent.
  sealed_mail bytea,
  state       text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
  -- Attempts of this run: a replay begins another.
  tries       integer NOT NULL DEFAULT 0,
  attempts    jsonb NOT NULL DEFAULT '[]',
  due_at      timestamptz NOT NULL DEFAULT now(),
  -- When a message named it last; null: none does.
  named_at    timestamptz,
  created_at  timestamptz NOT NULL DEFAULT now(),
  ended_at    timestamptz,
  CHECK ((endpoint_id IS NULL) <> (address IS NULL)),
  CHECK ((event_id IS NULL) = (account_id IS NULL))
);
CREATE UNIQUE INDEX deliveries_webhook ON deliveries (event_id, endpoint_id) WHERE endpoint_id IS NOT NULL;
CREATE UNIQUE INDEX deliveries_email ON deliveries (event_id, user_id) WHERE endpoint_id IS NULL;
CREATE INDEX deliveries_waiting ON deliveries (lane, due_at) WHERE state = 'waiting';
CREATE INDEX deliveries_of_account ON deliveries (account_id, position DESC);
CREATE INDEX deliveries_of_endpoint ON deliveries (endpoint_id, position DESC);
CREATE INDEX deliveries_by_age ON deliveries (created_at);

-- Breakers of channels, over all gateway processes, as operators were last notified. No row: closed.
CREATE TABLE channel_breakers (
  channel_id   text PRIMARY KEY,
  opened_at    timestamptz NOT NULL DEFAULT now(),
  -- Since when no process has it open; null: one has.
  closed_since timestamptz
);
