-- Journals of gateways, so that one whose machine never comes back is seen, and what its calls have reserved is found.

CREATE TABLE journals (
  -- Stays with the directory.
  id            text PRIMARY KEY,
  -- The machine, and where the journal is on its disk.
  node          text NOT NULL,
  directory     text NOT NULL,
  -- The last heartbeat, and what the journal held then. Amounts count 1e-8 credit.
  seen_at       timestamptz NOT NULL DEFAULT now(),
  open_calls    integer NOT NULL DEFAULT 0,
  open_estimate bigint NOT NULL DEFAULT 0,
  unbooked_calls integer NOT NULL DEFAULT 0,
  unbooked_cost bigint NOT NULL DEFAULT 0,
  -- Nothing in it is to be booked any more.
  outcome       text CHECK (outcome IN ('drained', 'imported', 'abandoned')),
  closed_at     timestamptz,
  CHECK ((outcome IS NULL) = (closed_at IS NULL))
);

-- The journal that has the call, and the call as it was admitted; null for a task.
ALTER TABLE wallet_reservations ADD COLUMN journal_id text, ADD COLUMN admission json;
ALTER TABLE cap_reservations ADD COLUMN journal_id text, ADD COLUMN admission json;
CREATE INDEX wallet_reservations_journal ON wallet_reservations (journal_id) WHERE journal_id IS NOT NULL;
CREATE INDEX cap_reservations_journal ON cap_reservations (journal_id) WHERE journal_id IS NOT NULL;

-- Two more arguments.
DROP FUNCTION IF EXISTS reserve_wallet(text, text, bigint, interval);
DROP FUNCTION IF EXISTS reserve_spend(text, text, bigint, bigint, interval);
