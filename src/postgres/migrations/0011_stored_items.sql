-- Items of responses that an upstream keeps, by which a later call may name them: the response that each is a part of, its
-- channel, and the tokens of that response's output, which no item exceeds; null while unknown.
CREATE TABLE stored_items (
  account_id  text NOT NULL,
  id          text NOT NULL,
  response_id text NOT NULL,
  channel_id  text NOT NULL,
  tokens      bigint CHECK (tokens >= 0),
  expires_at  timestamptz NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX stored_items_expiry ON stored_items (expires_at);
CREATE INDEX stored_items_response ON stored_items (account_id, response_id);
