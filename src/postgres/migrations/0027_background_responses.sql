-- Responses that an upstream makes in the background are tasks. Each is noted under the upstream's id, and under the one
-- of its task, which stands for it where its client has no other.
ALTER TABLE stored_responses ADD COLUMN task_id text, ADD COLUMN upstream_id text;
CREATE INDEX stored_responses_task ON stored_responses (task_id) WHERE task_id IS NOT NULL;

-- Conversations that an upstream keeps for an account: the channel that has each, and the tokens that a call which goes
-- on with it reads. Nothing of the content is here.
CREATE TABLE stored_conversations (
  account_id text NOT NULL,
  id         text NOT NULL,
  channel_id text NOT NULL,
  tokens     bigint NOT NULL CHECK (tokens >= 0),
  PRIMARY KEY (account_id, id)
);
