-- Answers to billed requests that carried an Idempotency-Key. A running record belongs to the request that claimed it
-- until frees_at; a stored one is replayed until expires_at.
CREATE TABLE idempotency_records (
  account_id   text NOT NULL,
  key          text NOT NULL,
  state        text NOT NULL CHECK (state IN ('running', 'stored', 'too_large')),
  request_hash bytea NOT NULL,
  request_id   text NOT NULL,
  frees_at     timestamptz,
  expires_at   timestamptz NOT NULL,
  status       smallint,
  headers      json,
  body         bytea,
  PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_records_expiry ON idempotency_records (expires_at);
