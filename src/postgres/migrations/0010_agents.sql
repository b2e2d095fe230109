CREATE TABLE agents (
  id         text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  state      text NOT NULL DEFAULT 'draft' CHECK (state IN ('draft', 'published', 'deleted')),
  file       json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX agents_account ON agents (account_id, id);
CREATE INDEX api_keys_agent ON api_keys (agent_id) WHERE agent_id IS NOT NULL;

CREATE TRIGGER agents_changed AFTER UPDATE OR DELETE ON agents
  FOR EACH ROW EXECUTE FUNCTION notify_change('agent');
CREATE TRIGGER agents_audited AFTER INSERT OR UPDATE OR DELETE ON agents
  FOR EACH ROW EXECUTE FUNCTION audit_change('agent', 'id', 'account_id', 'create', 'delete');
