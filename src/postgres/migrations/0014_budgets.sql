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

-- A reservation counts in the key's cap and in every budget that covers the key, the member or the account at the instant
-- of its admission.
ALTER TABLE cap_reservations
  ADD COLUMN account_id text,
  ADD COLUMN member_id text,
  ADD COLUMN submitted_at bigint;
UPDATE cap_reservations AS r
SET account_id = k.account_id, submitted_at = (extract(epoch FROM now()) * 1000)::bigint,
  member_id = (SELECT g.member_id FROM grants AS g WHERE g.key_id = k.id)
FROM api_keys AS k WHERE k.id = r.key_id;
DELETE FROM cap_reservations WHERE account_id IS NULL;
ALTER TABLE cap_reservations
  ALTER COLUMN account_id SET NOT NULL,
  ALTER COLUMN submitted_at SET NOT NULL;
CREATE INDEX cap_reservations_account ON cap_reservations (account_id, submitted_at);

-- Became `reserve_spend`.
DROP FUNCTION IF EXISTS reserve_cap(text, text, bigint, interval);
