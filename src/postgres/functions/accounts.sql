-- Every gateway process caches keys and accounts, and is notified when any program changes them. Wallets have no
-- trigger: settlements change them all the time.
CREATE OR REPLACE FUNCTION notify_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_changes', TG_ARGV[0] || ':' || CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER accounts_changed AFTER UPDATE OR DELETE ON accounts
  FOR EACH ROW EXECUTE FUNCTION notify_change('account');
-- A key that is sealed again, or whose copy is deleted, is the same to every gateway.
CREATE OR REPLACE TRIGGER api_keys_changed AFTER INSERT OR DELETE ON api_keys
  FOR EACH ROW EXECUTE FUNCTION notify_change('key');
CREATE OR REPLACE TRIGGER api_keys_updated AFTER UPDATE ON api_keys
  FOR EACH ROW WHEN (OLD.sealed_key IS NOT DISTINCT FROM NEW.sealed_key OR OLD.key_hash <> NEW.key_hash)
  EXECUTE FUNCTION notify_change('key');
CREATE OR REPLACE TRIGGER agents_changed AFTER UPDATE OR DELETE ON agents
  FOR EACH ROW EXECUTE FUNCTION notify_change('agent');

-- For the keys that open drafts.
CREATE OR REPLACE FUNCTION notify_draft_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_changes', 'agent:' || coalesce(NEW.agent_id, OLD.agent_id));
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER agent_drafts_changed AFTER INSERT OR UPDATE OR DELETE ON agent_drafts
  FOR EACH ROW EXECUTE FUNCTION notify_draft_change();

CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'The audit record is only ever added to';
END
$$;

CREATE OR REPLACE TRIGGER audit_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- The acting account, `operator:<user>` on the command line, or the role of the connection.
CREATE OR REPLACE FUNCTION audit_actor() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('tollgate.actor', true), ''), 'database:' || session_user)
$$;

-- 1e-8 credit in decimal digits, as every program prints them.
CREATE OR REPLACE FUNCTION print_credits(units numeric) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT trim_scale(units / 100000000)::text
$$;

-- A row as the audit record shows it: nothing secret, nothing that changes by itself. All other columns are shown, new
-- ones too: owner and admins of the account read them by GET /audit. What they must not read is named here.
CREATE OR REPLACE FUNCTION audited(entry jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT shown || coalesce((
    SELECT jsonb_object_agg(name, print_credits((shown ->> name)::numeric))
    FROM unnest(ARRAY['spend_cap', 'max_price', 'amount']) AS name WHERE shown ->> name IS NOT NULL
  ), '{}')
  FROM (SELECT entry - ARRAY['key_hash', 'sealed_key', 'token_hash', 'password_hash', 'sealed_secret', 'sealed_former_secret', 'failing_since', 'public_key', 'credential_id', 'counter', 'last_period', 'spent', 'version', 'page_count', 'updated_at', 'counts_from'] AS shown) AS fields
$$;

-- What was done to a row that was there before, from what has changed.
CREATE OR REPLACE FUNCTION audit_verb(subject text, before jsonb, after jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN after ->> 'revoked_at' IS NOT NULL AND before ->> 'revoked_at' IS NULL THEN 'revoke'
    WHEN subject = 'key' AND after ->> 'prefix' <> before ->> 'prefix' THEN 'rotate'
    WHEN after -> 'enabled' = 'true' AND before -> 'enabled' = 'false' THEN 'enable'
    WHEN after -> 'enabled' = 'false' AND before -> 'enabled' = 'true' THEN 'disable'
    WHEN after ->> 'state' = before ->> 'state' THEN 'update'
    WHEN subject IN ('key_request', 'agent', 'channel') THEN CASE after ->> 'state'
      WHEN 'approved' THEN 'approve'
      WHEN 'denied' THEN 'deny'
      WHEN 'withdrawn' THEN 'withdraw'
      WHEN 'published' THEN 'publish'
      WHEN 'draft' THEN 'unpublish'
      WHEN 'deleted' THEN 'delete'
      WHEN 'paused' THEN 'pause'
      WHEN 'draining' THEN 'drain'
      ELSE 'update'
    END
    ELSE 'update'
  END
$$;

-- One operation. Of a change, what is the same before and after is left out; where all of it is, nothing was done.
CREATE OR REPLACE FUNCTION record_act(action text, account text, subject_id text, before jsonb, after jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  old_fields jsonb := before;
  new_fields jsonb := after;
BEGIN
  IF before IS NOT NULL AND after IS NOT NULL THEN
    SELECT jsonb_object_agg(field, before -> field), jsonb_object_agg(field, after -> field)
    INTO old_fields, new_fields
    FROM jsonb_object_keys(before || after) AS field
    WHERE before -> field IS DISTINCT FROM after -> field;
    IF new_fields IS NULL THEN
      RETURN;
    END IF;
  END IF;
  INSERT INTO audit_entries (actor, action, account_id, subject_id, before, after)
  VALUES (audit_actor(), action, account, subject_id, old_fields, new_fields);
END
$$;

-- Its arguments: what a row is, the column of its id, the column of the account that it belongs to, and what it is
-- called when one is made and when one is deleted. Where the table has no column of that name, as channel_holds has no
-- account_id, the entry has no account: it is the installation's, and only operators read it.
CREATE OR REPLACE FUNCTION audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN audited(to_jsonb(OLD)) END;
  after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN audited(to_jsonb(NEW)) END;
  either jsonb := coalesce(after, before);
  verb text := CASE TG_OP
    WHEN 'INSERT' THEN TG_ARGV[3]
    WHEN 'DELETE' THEN TG_ARGV[4]
    ELSE audit_verb(TG_ARGV[0], before, after)
  END;
BEGIN
  PERFORM record_act(TG_ARGV[0] || '.' || verb, either ->> TG_ARGV[2], either ->> TG_ARGV[1], before, after);
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER accounts_audited AFTER INSERT OR UPDATE OR DELETE ON accounts
  FOR EACH ROW EXECUTE FUNCTION audit_change('account', 'id', 'id', 'create', 'delete');
CREATE OR REPLACE TRIGGER api_keys_audited AFTER INSERT OR UPDATE OR DELETE ON api_keys
  FOR EACH ROW EXECUTE FUNCTION audit_change('key', 'id', 'account_id', 'create', 'delete');
CREATE OR REPLACE TRIGGER key_max_prices_audited AFTER INSERT OR UPDATE ON key_max_prices
  FOR EACH ROW EXECUTE FUNCTION audit_change('key', 'key_id', 'account_id', 'update', '');
CREATE OR REPLACE TRIGGER members_audited AFTER INSERT OR UPDATE OR DELETE ON members
  FOR EACH ROW EXECUTE FUNCTION audit_change('member', 'account_id', 'organization_id', 'add', 'remove');
CREATE OR REPLACE TRIGGER key_requests_audited AFTER INSERT OR UPDATE OR DELETE ON key_requests
  FOR EACH ROW EXECUTE FUNCTION audit_change('key_request', 'id', 'organization_id', 'create', 'delete');
CREATE OR REPLACE TRIGGER agents_audited AFTER INSERT OR UPDATE OR DELETE ON agents
  FOR EACH ROW EXECUTE FUNCTION audit_change('agent', 'id', 'account_id', 'create', 'delete');
