-- Wallets, the ledger, and what is reserved in wallets and caps. Every amount counts 1e-8 credit.

-- Room is left on each page, so that an update stays on its page and no index changes.
CREATE TABLE wallets (
  account_id text PRIMARY KEY REFERENCES accounts,
  balance    bigint NOT NULL DEFAULT 0,
  held       bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
  used       bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
  version    bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);

-- No foreign key on account_id: an entry is only ever written beside an update of its wallet, and the
-- check would cost as much as the entry. The audit finds an entry without a wallet.
CREATE TABLE ledger_entries (
  id         bigint GENERATED ALWAYS AS IDENTITY,
  account_id text NOT NULL,
  kind       text NOT NULL,
  amount     bigint NOT NULL,
  ref        text,
  note       text,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Who put credits in or took them out, and under which reference.
  actor      text,
  reference  text,
  PRIMARY KEY (account_id, id),
  CONSTRAINT ledger_kind_and_sign CHECK (
    CASE kind
      WHEN 'charge' THEN amount < 0 AND ref IS NOT NULL
      WHEN 'hold' THEN amount <= 0 AND ref IS NOT NULL
      WHEN 'release' THEN amount >= 0 AND ref IS NOT NULL
      WHEN 'refund' THEN amount >= 0 AND ref IS NOT NULL
      WHEN 'topup' THEN amount > 0
      WHEN 'trial' THEN amount > 0
      WHEN 'adjustment' THEN amount <> 0 AND note IS NOT NULL AND actor IS NOT NULL
      ELSE false
    END
  )
);
-- One charge, one hold, one release a request or task: a second delivery changes nothing.
CREATE UNIQUE INDEX ledger_entries_ref_kind ON ledger_entries (ref, kind) WHERE ref IS NOT NULL;
-- One reference never counts twice in an account.
CREATE UNIQUE INDEX ledger_entries_reference ON ledger_entries (account_id, reference) WHERE reference IS NOT NULL;

CREATE TABLE holds (
  ref        text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  amount     bigint NOT NULL CHECK (amount >= 0),
  state      text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'settled', 'returned')),
  charged    bigint NOT NULL DEFAULT 0 CHECK (charged >= 0),
  created_at timestamptz NOT NULL DEFAULT now(),
  closed_at  timestamptz,
  CHECK ((state = 'open') = (closed_at IS NULL)),
  CHECK (state = 'settled' OR charged = 0)
);

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

-- A capped key as a wallet: what it may still spend is the balance.
CREATE VIEW grant_wallets AS
SELECT key_id AS account_id, spend_cap - spent AS balance, 0::bigint AS held, spent AS used, version
FROM grants WHERE spend_cap IS NOT NULL;

-- What calls and tasks under way may still cost a capped key; deleted when their rows are booked.
CREATE TABLE cap_reservations (
  -- The request or the task.
  ref        text PRIMARY KEY,
  key_id     text NOT NULL,
  amount     bigint NOT NULL CHECK (amount >= 0),
  -- A process that died before it wrote to its journal leaves a reservation behind. Null: a task's, which ends with it.
  expires_at timestamptz
);
CREATE INDEX cap_reservations_key ON cap_reservations (key_id);

-- What calls under way may still cost an account whose balance is low; deleted when their rows are booked.
CREATE TABLE wallet_reservations (
  -- The request.
  ref        text PRIMARY KEY,
  account_id text NOT NULL,
  amount     bigint NOT NULL CHECK (amount >= 0),
  -- A process that died before it wrote to its journal leaves a reservation behind.
  expires_at timestamptz NOT NULL
);
CREATE INDEX wallet_reservations_account ON wallet_reservations (account_id);
