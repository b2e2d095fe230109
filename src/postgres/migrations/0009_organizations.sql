-- Who belongs to an organization, what its keys may spend, and who changed what.
ALTER TABLE accounts ADD COLUMN allowed_models text[];

CREATE TABLE members (
  organization_id text NOT NULL REFERENCES accounts,
  account_id      text NOT NULL REFERENCES accounts,
  role            text NOT NULL CHECK (role IN ('admin', 'member')),
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, account_id),
  CHECK (organization_id <> account_id)
);

CREATE TABLE key_requests (
  id              text PRIMARY KEY,
  organization_id text NOT NULL,
  member_id       text NOT NULL,
  name            text NOT NULL,
  agent_id        text,
  note            text,
  state           text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'denied', 'withdrawn')),
  decided_by      text,
  decided_at      timestamptz,
  key_id          text REFERENCES api_keys,
  created_at      timestamptz NOT NULL DEFAULT now(),
  CHECK ((state = 'approved') = (key_id IS NOT NULL))
);
CREATE INDEX key_requests_organization ON key_requests (organization_id, id);

-- One row for each employee and agent key. `spent` is the sum of its booked charges.
CREATE TABLE grants (
  key_id      text PRIMARY KEY REFERENCES api_keys,
  account_id  text NOT NULL REFERENCES accounts,
  member_id   text,
  approved_by text,
  spend_cap   bigint CHECK (spend_cap >= 0),
  spent       bigint NOT NULL DEFAULT 0 CHECK (spent >= 0),
  version     bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);
CREATE INDEX grants_member ON grants (account_id, member_id) WHERE member_id IS NOT NULL;
INSERT INTO grants (key_id, account_id, spend_cap, spent)
SELECT k.id, k.account_id, k.spend_cap,
  coalesce((SELECT sum(cost) FROM usage_rows AS u WHERE u.key_id = k.id), 0)
FROM api_keys AS k WHERE k.kind IN ('employee', 'agent');

-- What calls in flight may still cost a capped key; gone when the call's row is booked.
CREATE TABLE cap_reservations (
  request_id text PRIMARY KEY,
  key_id     text NOT NULL,
  amount     bigint NOT NULL CHECK (amount >= 0),
  -- A process that died before it wrote anything down leaves one behind. Null: a task's, which ends with it.
  expires_at timestamptz
);
CREATE INDEX cap_reservations_key ON cap_reservations (key_id);
