-- Triggers of people and of what opens the management API. A sign-in or a use by itself is not a change.
CREATE OR REPLACE TRIGGER users_audited AFTER INSERT OR DELETE ON users
  FOR EACH ROW EXECUTE FUNCTION audit_change('user', 'id', 'account_id', 'create', 'delete');
CREATE OR REPLACE TRIGGER users_updated AFTER UPDATE ON users
  FOR EACH ROW WHEN (OLD.signed_in_at IS NOT DISTINCT FROM NEW.signed_in_at)
  EXECUTE FUNCTION audit_change('user', 'id', 'account_id', 'create', 'delete');
CREATE OR REPLACE TRIGGER management_tokens_audited AFTER INSERT OR DELETE ON management_tokens
  FOR EACH ROW EXECUTE FUNCTION audit_change('token', 'id', 'account_id', 'create', 'delete');
CREATE OR REPLACE TRIGGER management_tokens_updated AFTER UPDATE ON management_tokens
  FOR EACH ROW WHEN (OLD.last_used_at IS NOT DISTINCT FROM NEW.last_used_at)
  EXECUTE FUNCTION audit_change('token', 'id', 'account_id', 'create', 'delete');
CREATE OR REPLACE TRIGGER passwords_audited AFTER INSERT OR UPDATE OR DELETE ON passwords
  FOR EACH ROW EXECUTE FUNCTION audit_change('password', 'user_id', 'account_id', 'set', 'remove');
CREATE OR REPLACE TRIGGER passkeys_audited AFTER INSERT OR DELETE ON passkeys
  FOR EACH ROW EXECUTE FUNCTION audit_change('passkey', 'id', 'account_id', 'add', 'remove');
CREATE OR REPLACE TRIGGER passkeys_renamed AFTER UPDATE ON passkeys
  FOR EACH ROW WHEN (OLD.name <> NEW.name) EXECUTE FUNCTION audit_change('passkey', 'id', 'account_id', 'add', 'remove');
CREATE OR REPLACE TRIGGER identities_audited AFTER INSERT OR DELETE ON identities
  FOR EACH ROW EXECUTE FUNCTION audit_change('identity', 'user_id', 'account_id', 'link', 'unlink');
CREATE OR REPLACE TRIGGER totps_audited AFTER INSERT OR DELETE ON totps
  FOR EACH ROW EXECUTE FUNCTION audit_change('totp', 'user_id', 'account_id', 'enrol', 'remove');
CREATE OR REPLACE TRIGGER totps_confirmed AFTER UPDATE ON totps
  FOR EACH ROW WHEN (OLD.confirmed_at IS DISTINCT FROM NEW.confirmed_at)
  EXECUTE FUNCTION audit_change('totp', 'user_id', 'account_id', 'enrol', 'remove');
CREATE OR REPLACE TRIGGER invitations_audited AFTER INSERT OR UPDATE OR DELETE ON invitations
  FOR EACH ROW EXECUTE FUNCTION audit_change('invitation', 'id', 'account_id', 'create', 'delete');
CREATE OR REPLACE TRIGGER links_audited AFTER INSERT ON sign_in_links
  FOR EACH ROW EXECUTE FUNCTION audit_change('link', 'user_id', 'account_id', 'create', 'delete');
