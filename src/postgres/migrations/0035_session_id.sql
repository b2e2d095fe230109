-- The session that the client names for a conversation or the run of an agent.
ALTER TABLE usage_rows ADD COLUMN session_id text;
