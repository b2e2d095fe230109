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

-- All that was ever added, whatever reports have said since. What is known of conversations from before is no measure.
ALTER TABLE stored_conversations
  ADD COLUMN added bigint NOT NULL DEFAULT 0,
  ALTER COLUMN tokens DROP NOT NULL;
UPDATE stored_conversations SET tokens = NULL;

-- Responses without a report were noted with no tokens at all.
ALTER TABLE stored_responses ALTER COLUMN tokens DROP NOT NULL;
UPDATE stored_responses SET tokens = NULL WHERE tokens = 0;
