-- Every amount counts 1e-8 credit.

CREATE TABLE accounts (
  id                  text PRIMARY KEY,
  name                text NOT NULL,
  kind                text NOT NULL CHECK (kind IN ('personal', 'organization')),
  enabled             boolean NOT NULL DEFAULT true,
  requests_per_minute integer CHECK (requests_per_minute > 0),
  concurrency         integer CHECK (concurrency > 0),
  created_at          timestamptz NOT NULL DEFAULT now()
);

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
  PRIMARY KEY (account_id, id),
  CONSTRAINT ledger_kind_and_sign CHECK (
    CASE kind
      WHEN 'charge' THEN amount < 0 AND ref IS NOT NULL
      WHEN 'hold' THEN amount <= 0 AND ref IS NOT NULL
      WHEN 'release' THEN amount >= 0 AND ref IS NOT NULL
      WHEN 'refund' THEN amount >= 0 AND ref IS NOT NULL
      WHEN 'topup' THEN amount > 0
      WHEN 'trial' THEN amount > 0
      ELSE false
    END
  )
);

-- One charge, one hold, one release a request or task: a second delivery changes nothing.
CREATE UNIQUE INDEX ledger_entries_ref_kind ON ledger_entries (ref, kind) WHERE ref IS NOT NULL;

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
