-- The session that the client names for a conversation or the run of an agent.
SET LOCAL lock_timeout = '20ms';
ALTER TABLE usage_rows ADD COLUMN session_id text;
