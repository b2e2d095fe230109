-- An edit of an agent that is not in force yet: publishing takes it up.
CREATE TABLE agent_drafts (
  agent_id   text PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
  file       jsonb NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);
