-- What replaces months that retention has taken away, so that totals and the audit stay exact.

-- Of each account with entries in a retired month: the sums of all its entries up to the end of it. Amounts count 1e-8
-- credit.
CREATE TABLE closing_balances (
  account_id  text NOT NULL,
  -- The first instant after the month.
  closed_at   timestamptz NOT NULL,
  balance     bigint NOT NULL,
  held        bigint NOT NULL,
  used        bigint NOT NULL,
  entry_count bigint NOT NULL,
  PRIMARY KEY (account_id, closed_at)
);

-- Of each key with calls in a retired month: what they were in that month.
CREATE TABLE closing_usage (
  key_id     text NOT NULL,
  account_id text NOT NULL,
  -- The first instant after the month.
  closed_at  timestamptz NOT NULL,
  row_count  bigint NOT NULL,
  call_count bigint NOT NULL,
  cost       bigint NOT NULL,
  PRIMARY KEY (key_id, account_id, closed_at)
);

CREATE VIEW last_closings AS
SELECT DISTINCT ON (account_id) * FROM closing_balances ORDER BY account_id, closed_at DESC;

-- The last verify that found no difference, and what it leaves for the next one, which reads what was written since.
CREATE TABLE verified (
  only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- What was written before this instant is in the sums below.
  marked_at  timestamptz NOT NULL,
  -- The last one that read everything.
  full_at    timestamptz NOT NULL
);
-- The sum of the entries of each account.
CREATE TABLE verified_wallets (
  account_id text PRIMARY KEY,
  balance    bigint NOT NULL,
  held       bigint NOT NULL,
  used       bigint NOT NULL
);
-- The cost of the calls of each key that has a grant.
CREATE TABLE verified_grants (
  key_id text PRIMARY KEY,
  spent  bigint NOT NULL
);
