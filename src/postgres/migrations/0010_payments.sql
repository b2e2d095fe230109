-- Payments by card. Amounts of money count the smallest unit of their currency, amounts of credits 1e-8 credit.

-- Accounts as the payment provider knows them. An account may have several: one that was deleted there, or made with other
-- keys, is replaced. The newest is the current one; payments that an earlier one began are still booked.
CREATE TABLE payment_customers (
  account_id text NOT NULL REFERENCES accounts,
  id         text PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX payment_customers_account ON payment_customers (account_id, created_at DESC);

-- Cards that customers saved. The newest that is not removed pays automatic top-ups.
CREATE TABLE payment_methods (
  id         text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  brand      text NOT NULL,
  last4      text NOT NULL,
  expires    text NOT NULL,
  created_at timestamptz NOT NULL,
  removed_at timestamptz
);
CREATE INDEX payment_methods_account ON payment_methods (account_id, created_at DESC) WHERE removed_at IS NULL;

CREATE TABLE payments (
  id              text PRIMARY KEY,
  account_id      text NOT NULL REFERENCES accounts,
  kind            text NOT NULL CHECK (kind IN ('checkout', 'automatic')),
  state           text NOT NULL DEFAULT 'created'
    CHECK (state IN ('created', 'open', 'confirming', 'paid', 'failed', 'expired')),
  credits         bigint NOT NULL CHECK (credits > 0),
  amount          bigint NOT NULL CHECK (amount > 0),
  currency        text NOT NULL,
  saves_method    boolean NOT NULL DEFAULT false,
  -- The saved card of an automatic payment.
  method_id       text,
  session_id      text UNIQUE,
  intent_id       text UNIQUE,
  url             text,
  failure_code    text,
  failure_message text,
  created_by      text NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  paid_at         timestamptz,
  -- Of the process that asks the provider; another one takes over after it.
  claimed_until   timestamptz,
  CHECK ((state = 'paid') = (paid_at IS NOT NULL)),
  CHECK (state <> 'paid' OR intent_id IS NOT NULL)
);
CREATE INDEX payments_account ON payments (account_id, id);
CREATE INDEX payments_open ON payments (created_at) WHERE state IN ('created', 'open', 'confirming');
-- One attempt of an account at a time, over all processes.
CREATE UNIQUE INDEX payments_one_automatic ON payments (account_id)
  WHERE kind = 'automatic' AND state IN ('created', 'open', 'confirming');

-- Refunds and disputes, under the provider's ids.
CREATE TABLE payment_reversals (
  id          text PRIMARY KEY,
  payment_id  text NOT NULL REFERENCES payments,
  kind        text NOT NULL CHECK (kind IN ('refund', 'chargeback')),
  state       text NOT NULL CHECK (state IN ('taken', 'returned')),
  amount      bigint NOT NULL CHECK (amount > 0),
  credits     bigint NOT NULL CHECK (credits >= 0),
  created_at  timestamptz NOT NULL DEFAULT now(),
  returned_at timestamptz
);
CREATE INDEX payment_reversals_payment ON payment_reversals (payment_id);

-- Events of the provider that were taken, each once.
CREATE TABLE payment_events (
  id          text PRIMARY KEY,
  type        text NOT NULL,
  payment_id  text,
  -- Why it was not booked: it contradicts our own row. The audit names it.
  refusal     text,
  created_at  timestamptz NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now(),
  -- A refused one that an operator has dealt with: it is no difference of the books any longer.
  closed_at    timestamptz,
  closed_by    text,
  close_reason text,
  CONSTRAINT payment_events_closed CHECK (
    num_nonnulls(closed_at, closed_by, close_reason) IN (0, 3) AND (closed_at IS NULL OR refusal IS NOT NULL))
);
CREATE INDEX payment_events_payment ON payment_events (payment_id, created_at) WHERE payment_id IS NOT NULL;
CREATE INDEX payment_events_refused ON payment_events (received_at) WHERE refusal IS NOT NULL;

CREATE TABLE automatic_topups (
  account_id      text PRIMARY KEY REFERENCES accounts,
  enabled         boolean NOT NULL,
  threshold       bigint NOT NULL CHECK (threshold >= 0),
  amount          bigint NOT NULL CHECK (amount > 0),
  monthly_maximum bigint NOT NULL CHECK (monthly_maximum >= amount),
  failures        integer NOT NULL DEFAULT 0,
  off_reason      text CHECK (off_reason IN ('failures', 'method_removed', 'refund', 'chargeback')),
  waits_until     timestamptz,
  waits_for       text CHECK (waits_for IN ('retry', 'month')),
  CHECK (NOT enabled OR off_reason IS NULL)
);
-- What every second a search for low balances reads.
CREATE INDEX automatic_topups_enabled ON automatic_topups (account_id) WHERE enabled;

-- The last number of a receipt: counted in the transaction that issues it, so that no number is left out.
CREATE TABLE receipt_numbers (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  last     bigint NOT NULL
);
INSERT INTO receipt_numbers (last) VALUES (0);

CREATE TABLE receipts (
  number       bigint PRIMARY KEY,
  kind         text NOT NULL CHECK (kind IN ('receipt', 'credit_note')),
  payment_id   text NOT NULL REFERENCES payments,
  reversal_id  text REFERENCES payment_reversals,
  account_id   text NOT NULL REFERENCES accounts,
  account_name text NOT NULL,
  amount       bigint NOT NULL,
  currency     text NOT NULL,
  credits      bigint NOT NULL,
  issued_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX receipts_payment ON receipts (payment_id, number);
CREATE INDEX receipts_account ON receipts (account_id, number DESC);

-- Up to when the provider's list of events was compared with those that were taken.
CREATE TABLE payment_reconciliation (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  until    timestamptz NOT NULL
);
