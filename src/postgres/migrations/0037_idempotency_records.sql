-- One table of requests with an Idempotency-Key: of calls, tasks, payments and acts. A running record belongs to the
-- request that claimed it until frees_at; a stored one is replayed until expires_at.
SET LOCAL lock_timeout = '20ms';
DROP TABLE idempotency_records, management_requests;
CREATE TABLE idempotency_records (
  -- Whose key it is: account:<id> of calls and tasks, payments:<actor>, actor:<actor> of acts.
  scope        text NOT NULL,
  key          text NOT NULL,
  state        text NOT NULL CHECK (state IN ('running', 'stored', 'too_large')),
  request_hash bytea NOT NULL,
  request_id   text NOT NULL,
  -- The task or payment that the request created; null again once another task may be created.
  subject      text,
  frees_at     timestamptz,
  expires_at   timestamptz NOT NULL,
  status       smallint,
  headers      json,
  -- Sealed where the scope is an actor: an answer to an act may hold a key.
  body         bytea,
  PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_records_expiry ON idempotency_records (expires_at);
CREATE INDEX idempotency_records_subject ON idempotency_records (subject) WHERE subject IS NOT NULL;

ALTER TABLE tasks DROP COLUMN intent_key, DROP COLUMN intent_hash;
ALTER TABLE payments DROP COLUMN idempotency_key;
