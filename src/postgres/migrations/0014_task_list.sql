-- Operators list the tasks of all accounts, the newest first.
CREATE INDEX tasks_by_submit ON tasks (submitted_at, id);
