-- The session of the request that made a task: its row of the call log has it too.
SET LOCAL lock_timeout = '20ms';
ALTER TABLE tasks ADD COLUMN session_id text;
