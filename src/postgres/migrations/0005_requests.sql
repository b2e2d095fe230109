-- What the gateway keeps of requests for those that follow.

-- Requests with an Idempotency-Key: of calls, tasks, payments and operations. A running record belongs to the request
-- that claimed it until frees_at; a stored one is replayed until expires_at.
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

-- Responses that an upstream keeps, by which a later call of the same account may go on: the channel that keeps each,
-- and the tokens that a call which goes on with it reads again; null while unknown. Nothing of the content is here. One
-- that is made in the background is noted under the upstream's id, and under the id of its task.
CREATE TABLE stored_responses (
  account_id  text NOT NULL,
  id          text NOT NULL,
  channel_id  text NOT NULL,
  tokens      bigint CHECK (tokens >= 0),
  expires_at  timestamptz NOT NULL,
  task_id     text,
  upstream_id text,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX stored_responses_expiry ON stored_responses (expires_at);
CREATE INDEX stored_responses_task ON stored_responses (task_id) WHERE task_id IS NOT NULL;

-- Conversations that an upstream keeps for an account: the channel that has each, and the tokens that a call which goes
-- on with it reads; null while unknown. Nothing of the content is here.
CREATE TABLE stored_conversations (
  account_id text NOT NULL,
  id         text NOT NULL,
  channel_id text NOT NULL,
  tokens     bigint CHECK (tokens >= 0),
  -- All that was ever added, whatever reports have said since.
  added      bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, id)
);

-- Calls under way that go on with a conversation: each counts with all that it may add until its end tells what it added.
CREATE TABLE conversation_calls (
  account_id      text NOT NULL,
  conversation_id text NOT NULL,
  request_id      text NOT NULL,
  -- What the call may add.
  tokens          bigint NOT NULL CHECK (tokens >= 0),
  -- What the conversation held, and all that had ever been added to it, when the call began.
  before          bigint,
  added_before    bigint NOT NULL,
  -- A call whose process was killed has no end.
  expires_at      timestamptz NOT NULL,
  PRIMARY KEY (account_id, conversation_id, request_id)
);
CREATE INDEX conversation_calls_expired ON conversation_calls (expires_at);
