-- Triggers of what operators do to the running service.
CREATE OR REPLACE TRIGGER channel_holds_changed AFTER INSERT OR UPDATE OR DELETE ON channel_holds
  FOR EACH ROW EXECUTE FUNCTION notify_change('channel');
CREATE OR REPLACE TRIGGER channels_paused AFTER INSERT ON channel_holds
  FOR EACH ROW WHEN (NEW.state = 'paused')
  EXECUTE FUNCTION audit_change('channel', 'id', 'account_id', 'pause', 'resume');
CREATE OR REPLACE TRIGGER channels_drained AFTER INSERT ON channel_holds
  FOR EACH ROW WHEN (NEW.state = 'draining')
  EXECUTE FUNCTION audit_change('channel', 'id', 'account_id', 'drain', 'resume');
CREATE OR REPLACE TRIGGER channel_holds_updated AFTER UPDATE OR DELETE ON channel_holds
  FOR EACH ROW EXECUTE FUNCTION audit_change('channel', 'id', 'account_id', 'pause', 'resume');
