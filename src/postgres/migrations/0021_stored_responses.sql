-- Responses that an upstream keeps, by which a later call of the same account may go on: the channel that keeps each,
-- and the tokens that a call which goes on with it reads again. Nothing of the content is here.
CREATE TABLE stored_responses (
  account_id text NOT NULL,
  id         text NOT NULL,
  channel_id text NOT NULL,
  tokens     bigint NOT NULL CHECK (tokens >= 0),
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX stored_responses_expiry ON stored_responses (expires_at);
