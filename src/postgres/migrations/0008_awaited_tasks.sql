-- Whether the request that made a task waits for its end: what a client waits for is no job that outlives its request.
ALTER TABLE tasks ADD COLUMN is_awaited boolean NOT NULL DEFAULT false;
