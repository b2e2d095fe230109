-- A key by which someone tries the draft of an agent.
ALTER TABLE api_keys ADD COLUMN opens_draft boolean NOT NULL DEFAULT false;
