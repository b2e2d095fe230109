-- Wallets, the ledger, and what is reserved in wallets and caps. Every amount counts 1e-8 credit.

-- Room is left on each page, so that an update stays on its page and no index changes.
CREATE TABLE wallets (
  account_id text PRIMARY KEY REFERENCES accounts,
  balance    bigint NOT NULL DEFAULT 0,
  held       bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
  used       bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
  version    bigint NOT NULL DEFAULT 1,
  -- The balance, what is held included, below which the account is notified; null: never.
  low_below  bigint DEFAULT 2000000000 CHECK (low_below > 0)
) WITH (fillfactor = 50);

-- Partitioned by month; each partition has its own indexes. No foreign key on account_id: an entry is only written beside
-- an update of its wallet, and the check would cost as much as the entry. The audit finds an entry without a wallet.
CREATE SEQUENCE ledger_entry_ids;
CREATE TABLE ledger_entries (
  id         bigint NOT NULL DEFAULT nextval('ledger_entry_ids'),
  account_id text NOT NULL,
  kind       text NOT NULL,
  amount     bigint NOT NULL,
  ref        text,
  note       text,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Who put credits in or took them out, and under which reference.
  actor      text,
  reference  text,
  CONSTRAINT ledger_kind_and_sign CHECK (
    CASE kind
      WHEN 'charge' THEN amount < 0 AND ref IS NOT NULL
      WHEN 'hold' THEN amount <= 0 AND ref IS NOT NULL
      WHEN 'release' THEN amount >= 0 AND ref IS NOT NULL
      WHEN 'refund' THEN amount >= 0 AND ref IS NOT NULL
      WHEN 'topup' THEN amount > 0
      WHEN 'trial' THEN amount > 0
      WHEN 'adjustment' THEN amount <> 0 AND note IS NOT NULL AND actor IS NOT NULL
      -- Credits of a payment that was refunded or disputed, and those that a won dispute gives back.
      WHEN 'reversal' THEN amount <> 0 AND reference IS NOT NULL AND actor IS NOT NULL
      ELSE false
    END
  )
) PARTITION BY RANGE (created_at);
ALTER SEQUENCE ledger_entry_ids OWNED BY ledger_entries.id;

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

-- Budgets: what a key, a member or an account may spend in a day, a week or a month. Amounts count 1e-8 credit, instants
-- are epoch milliseconds.
CREATE TABLE budgets (
  id          text PRIMARY KEY,
  -- The payer, an account or an organization.
  account_id  text NOT NULL REFERENCES accounts,
  scope       text NOT NULL CHECK (scope IN ('key', 'member', 'account')),
  -- The key, the account of the member, or the account itself. Such ids are never the same.
  subject_id  text NOT NULL,
  amount      bigint NOT NULL CHECK (amount > 0),
  period      text NOT NULL CHECK (period IN ('day', 'week', 'month')),
  timezone    text NOT NULL,
  -- The beginning of its first period: calls of former periods may be booked later.
  counts_from bigint NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  UNIQUE (account_id, subject_id, period),
  CHECK ((scope = 'account') = (subject_id = account_id))
);

-- What was spent in each period, the costs of the booked calls that were admitted in it. A period without a charge may
-- have no row.
CREATE TABLE budget_periods (
  budget_id text NOT NULL REFERENCES budgets ON DELETE CASCADE,
  starts_at bigint NOT NULL,
  spent     bigint NOT NULL CHECK (spent >= 0),
  -- Rises with every change of the amount or of what is spent.
  version   bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (budget_id, starts_at)
) WITH (fillfactor = 50);

-- What calls and tasks under way may still cost: it counts in the key's cap and in every budget that covers the key, the
-- member or the account at the instant of its admission. Deleted when their rows are booked.
CREATE TABLE cap_reservations (
  -- The request or the task.
  ref          text PRIMARY KEY,
  key_id       text NOT NULL,
  account_id   text NOT NULL,
  member_id    text,
  amount       bigint NOT NULL CHECK (amount >= 0),
  submitted_at bigint NOT NULL,
  -- A process that died before it wrote to its journal leaves a reservation behind. Null: a task's, which ends with it.
  expires_at   timestamptz,
  -- The journal that has the call, and the call as it was admitted; null for a task.
  journal_id   text,
  admission    json
);
CREATE INDEX cap_reservations_key ON cap_reservations (key_id);
CREATE INDEX cap_reservations_account ON cap_reservations (account_id, submitted_at);
CREATE INDEX cap_reservations_journal ON cap_reservations (journal_id) WHERE journal_id IS NOT NULL;

-- What calls under way may still cost an account whose balance is low; deleted when their rows are booked.
CREATE TABLE wallet_reservations (
  -- The request.
  ref        text PRIMARY KEY,
  account_id text NOT NULL,
  amount     bigint NOT NULL CHECK (amount >= 0),
  -- A process that died before it wrote to its journal leaves a reservation behind.
  expires_at timestamptz NOT NULL,
  journal_id text,
  admission  json
);
CREATE INDEX wallet_reservations_account ON wallet_reservations (account_id);
CREATE INDEX wallet_reservations_journal ON wallet_reservations (journal_id) WHERE journal_id IS NOT NULL;
