-- Who belongs to an organization, what its keys may spend, and who changed what.
ALTER TABLE accounts ADD COLUMN allowed_models text[];

CREATE TABLE members (
  organization_id text NOT NULL REFERENCES accounts,
  account_id      text NOT NULL REFERENCES accounts,
  role            text NOT NULL CHECK (role IN ('admin', 'member')),
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, account_id),
  CHECK (organization_id <> account_id)
);

CREATE TABLE key_requests (
  id              text PRIMARY KEY,
  organization_id text NOT NULL,
  member_id       text NOT NULL,
  name            text NOT NULL,
  agent_id        text,
  note            text,
  state           text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'denied', 'withdrawn')),
  decided_by      text,
  decided_at      timestamptz,
  key_id          text REFERENCES api_keys,
  created_at      timestamptz NOT NULL DEFAULT now(),
  CHECK ((state = 'approved') = (key_id IS NOT NULL))
);
CREATE INDEX key_requests_organization ON key_requests (organization_id, id);

-- One row for each employee and agent key. `spent` is the sum of its booked charges.
CREATE TABLE grants (
  key_id      text PRIMARY KEY REFERENCES api_keys,
  account_id  text NOT NULL REFERENCES accounts,
  member_id   text,
  approved_by text,
  spend_cap   bigint CHECK (spend_cap >= 0),
  spent       bigint NOT NULL DEFAULT 0 CHECK (spent >= 0),
  version     bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);
CREATE INDEX grants_member ON grants (account_id, member_id) WHERE member_id IS NOT NULL;
INSERT INTO grants (key_id, account_id, spend_cap, spent)
SELECT k.id, k.account_id, k.spend_cap, coalesce(u.cost, 0)
FROM api_keys AS k
-- All rows are read once: no index has them by key.
LEFT JOIN (SELECT key_id, sum(cost) AS cost FROM usage_rows GROUP BY key_id) AS u ON u.key_id = k.id
WHERE k.kind IN ('employee', 'agent');
ALTER TABLE api_keys DROP COLUMN spend_cap;

-- What calls and tasks under way may still cost a capped key; gone when their rows are booked.
CREATE TABLE cap_reservations (
  -- The request or the task.
  ref        text PRIMARY KEY,
  key_id     text NOT NULL,
  amount     bigint NOT NULL CHECK (amount >= 0),
  -- A process that died before it wrote anything down leaves one behind. Null: a task's, which ends with it.
  expires_at timestamptz
);
CREATE INDEX cap_reservations_key ON cap_reservations (key_id);
INSERT INTO cap_reservations (ref, key_id, amount)
SELECT t.id, t.key_id, t.hold
FROM tasks AS t JOIN grants AS g ON g.key_id = t.key_id JOIN holds AS h ON h.ref = t.id
WHERE h.state = 'open' AND g.spend_cap IS NOT NULL;

-- Whether the key's cap leaves this much, all reservations counted; then it is reserved. A key without a cap spends
-- what it likes. A second time under one ref changes nothing.
CREATE FUNCTION reserve_cap(capped_key text, wanted_ref text, wanted bigint, lifetime interval)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  left_over bigint;
BEGIN
  SELECT spend_cap - spent INTO left_over FROM grants
  WHERE key_id = capped_key AND spend_cap IS NOT NULL FOR UPDATE;
  IF NOT FOUND THEN
    RETURN true;
  END IF;
  -- Statements of their own, so that they see what was committed while the lock was waited for.
  DELETE FROM cap_reservations WHERE key_id = capped_key AND expires_at <= now();
  IF EXISTS (SELECT FROM cap_reservations WHERE ref = wanted_ref) THEN
    RETURN true;
  END IF;
  IF wanted > left_over - (SELECT coalesce(sum(amount), 0) FROM cap_reservations WHERE key_id = capped_key) THEN
    RETURN false;
  END IF;
  INSERT INTO cap_reservations (ref, key_id, amount, expires_at)
  VALUES (wanted_ref, capped_key, wanted, now() + lifetime);
  RETURN true;
END
$$;

-- A capped key as a wallet of its own: what it may still spend is the balance.
CREATE VIEW grant_wallets AS
SELECT key_id AS account_id, spend_cap - spent AS balance, 0::bigint AS held, spent AS used, version
FROM grants WHERE spend_cap IS NOT NULL;

-- Who may spend how much is part of what processes know of a key. What is spent changes all the time, and is told apart.
CREATE FUNCTION notify_cap_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_changes', 'key:' || NEW.key_id);
  RETURN NULL;
END
$$;
CREATE TRIGGER grants_changed AFTER UPDATE OF spend_cap ON grants
  FOR EACH ROW EXECUTE FUNCTION notify_cap_change();

DROP FUNCTION book_settlements(
  text[], text[], text[], text[], text[], boolean[], text[], text[], text[], bigint[], bigint[], bigint[],
  bigint[], bigint[], bigint[], text[], text[], bigint[], bigint[], text[], bigint[], bigint[], bigint[],
  bigint[], text[], integer[], json[], text[], text[], json[], bigint[]);

-- As before; and what was charged to keys that have a grant is spent of it, which ends their reservations. Those keys
-- come back among the wallets, under their own ids, with what their caps leave.
CREATE FUNCTION book_settlements(
  request_ids text[], account_ids text[], key_ids text[], models text[], protocols text[], streams boolean[],
  statuses text[], error_codes text[], error_messages text[], input_tokens bigint[], output_tokens bigint[],
  cached_tokens bigint[], cache_write_tokens bigint[], reasoning_tokens bigint[], server_tool_calls bigint[],
  unit_counts text[], unit_types text[], costs bigint[], estimates bigint[], usage_sources text[],
  submitted_ats bigint[], created_ats bigint[], latencies_ms bigint[], ttfbs_ms bigint[], channel_ids text[],
  attempts_counts integer[], attempts json[], details text[] DEFAULT NULL,
  task_ids text[] DEFAULT NULL, result_urls json[] DEFAULT NULL, result_expires_ats bigint[] DEFAULT NULL,
  OUT wallets json, OUT booked json, OUT refused json
) LANGUAGE plpgsql
-- One plan for all batches, made once a session: planning costs more than booking a small batch. Wallets are
-- found by their index even where the statistics still say that the table is small.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  granted_keys text[];
  granted_costs bigint[];
BEGIN
  PERFORM pg_advisory_xact_lock(7811001);
  -- A statement of its own, so that it sees what was committed while the lock was waited for.
  WITH incoming AS MATERIALIZED (
    SELECT s.*, w.account_id IS NOT NULL AS is_known
    FROM unnest(
      book_settlements.request_ids, account_ids, key_ids, models, protocols, streams, statuses, error_codes,
      error_messages, book_settlements.input_tokens, book_settlements.output_tokens,
      book_settlements.cached_tokens, book_settlements.cache_write_tokens, book_settlements.reasoning_tokens,
      book_settlements.server_tool_calls, unit_counts, unit_types, costs, estimates, usage_sources,
      submitted_ats, created_ats, latencies_ms, ttfbs_ms, channel_ids, attempts_counts,
      book_settlements.attempts, details, task_ids, book_settlements.result_urls, result_expires_ats
    ) WITH ORDINALITY AS s(
      request_id, account_id, key_id, model, protocol, stream, status, error_code, error_message,
      input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls,
      unit_count, unit_type, cost, estimate, usage_source, submitted_at, created_at, latency_ms, ttfb_ms,
      channel_id, attempts_count, attempts, detail, task_id, result_urls, result_expires_at, position)
    LEFT JOIN wallets AS w ON w.account_id = s.account_id
  ), unknown AS (
    INSERT INTO settlements_refused (request_id, reason, settlement)
    SELECT request_id, 'unknown account ' || account_id, to_json(incoming)::text
    FROM incoming WHERE NOT is_known
    ON CONFLICT DO NOTHING
  ), inserted AS (
    INSERT INTO usage_rows (
      request_id, account_id, key_id, model, protocol, stream, status, error_code, error_message,
      input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls,
      unit_count, unit_type, cost, estimate, usage_source, submitted_at, created_at, latency_ms, ttfb_ms,
      channel_id, attempts_count, attempts, detail, task_id, result_urls, result_expires_at, booked_at)
    SELECT
      request_id, account_id, key_id, model, protocol, stream, status, error_code, error_message,
      input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls,
      unit_count, unit_type, cost, estimate, usage_source, submitted_at, created_at, latency_ms, ttfb_ms,
      channel_id, attempts_count, attempts, detail, task_id,
      CASE WHEN result_urls IS NOT NULL
        THEN (SELECT array_agg(url) FROM json_array_elements_text(result_urls) AS url) END,
      result_expires_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    FROM incoming WHERE is_known ORDER BY position
    ON CONFLICT (request_id) DO NOTHING
    RETURNING coalesce(task_id, request_id) AS ref, request_id, account_id, key_id, cost
  ), charged AS (
    INSERT INTO ledger_entries (account_id, kind, amount, ref)
    SELECT account_id, 'charge', -cost, ref FROM inserted WHERE cost > 0
  ), totals AS (
    UPDATE wallets AS w
    SET balance = w.balance - s.cost, used = w.used + s.cost, version = w.version + 1
    FROM (SELECT account_id, sum(cost)::bigint AS cost FROM inserted WHERE cost > 0 GROUP BY account_id) AS s
    WHERE w.account_id = s.account_id
    RETURNING w.account_id, w.balance::text, w.held::text, w.used::text, w.version::text
  ), granted AS (
    SELECT array_agg(s.key_id) AS key_ids, array_agg(s.cost) AS costs
    FROM (SELECT key_id, sum(cost)::bigint AS cost FROM inserted GROUP BY key_id) AS s
    JOIN grants AS g ON g.key_id = s.key_id
  )
  SELECT
    (SELECT json_agg(totals) FROM totals),
    (SELECT json_agg(request_id) FROM inserted),
    (SELECT json_agg(request_id) FROM incoming WHERE NOT is_known),
    granted.key_ids, granted.costs
  FROM granted
  INTO wallets, booked, refused, granted_keys, granted_costs;
  -- Most keys have no grant. After the wallets, as everywhere: whoever locks both locks the wallet first.
  IF granted_keys IS NULL THEN
    RETURN;
  END IF;
  UPDATE grants AS g SET spent = g.spent + s.cost, version = g.version + 1
  FROM unnest(granted_keys, granted_costs) AS s(key_id, cost)
  WHERE g.key_id = s.key_id AND s.cost > 0;
  DELETE FROM cap_reservations WHERE ref IN (SELECT json_array_elements_text(book_settlements.booked));
  SELECT (coalesce(book_settlements.wallets::jsonb, '[]') || coalesce(jsonb_agg(totals), '[]'))::json
  FROM (
    SELECT g.account_id, g.balance::text, g.held::text, g.used::text, g.version::text
    FROM grant_wallets AS g WHERE g.account_id = ANY (granted_keys)
  ) AS totals
  INTO wallets;
END
$$;

-- Who did what, when, and what it changed. Written by triggers, so that whoever changes anything, by whatever program,
-- leaves an entry in the same transaction.
CREATE TABLE audit_entries (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor      text NOT NULL,
  action     text NOT NULL,
  account_id text,
  subject_id text NOT NULL,
  before     jsonb,
  after      jsonb
);
CREATE INDEX audit_entries_account ON audit_entries (account_id, id);
CREATE INDEX audit_entries_subject ON audit_entries (subject_id, id);
CREATE INDEX audit_entries_at ON audit_entries (at);

CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'The audit record is only ever added to';
END
$$;
CREATE TRIGGER audit_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- The acting account where one acts, `operator:<user>` on the command line; else whoever has the connection.
CREATE FUNCTION audit_actor() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('tollgate.actor', true), ''), 'database:' || session_user)
$$;

-- 1e-8 credit in decimal digits, as every program prints them.
CREATE FUNCTION print_credits(units numeric) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT trim_scale(units / 100000000)::text
$$;

-- A row as the audit record shows it: nothing secret, nothing that changes by itself.
CREATE FUNCTION audited(entry jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN shown ->> 'spend_cap' IS NULL THEN shown
    ELSE jsonb_set(shown, '{spend_cap}', to_jsonb(print_credits((shown ->> 'spend_cap')::numeric))) END
  FROM (SELECT entry - ARRAY['key_hash', 'sealed_key', 'spent', 'version', 'page_count', 'updated_at'] AS shown) AS fields
$$;

-- What was done to a row that was there before, from what has changed.
CREATE FUNCTION audit_verb(subject text, before jsonb, after jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN after ->> 'revoked_at' IS NOT NULL AND before ->> 'revoked_at' IS NULL THEN 'revoke'
    WHEN after -> 'enabled' = 'true' AND before -> 'enabled' = 'false' THEN 'enable'
    WHEN after -> 'enabled' = 'false' AND before -> 'enabled' = 'true' THEN 'disable'
    WHEN after ->> 'state' = before ->> 'state' THEN 'update'
    WHEN subject IN ('key_request', 'agent') THEN CASE after ->> 'state'
      WHEN 'approved' THEN 'approve'
      WHEN 'denied' THEN 'deny'
      WHEN 'withdrawn' THEN 'withdraw'
      WHEN 'published' THEN 'publish'
      WHEN 'draft' THEN 'unpublish'
      WHEN 'deleted' THEN 'delete'
      ELSE 'update'
    END
    ELSE 'update'
  END
$$;

-- One act. Of a change, what is the same before and after is left out; where all of it is, nothing was done.
CREATE FUNCTION record_act(action text, account text, subject_id text, before jsonb, after jsonb) RETURNS void
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
-- called when one is made and when one is deleted.
CREATE FUNCTION audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER accounts_audited AFTER INSERT OR UPDATE OR DELETE ON accounts
  FOR EACH ROW EXECUTE FUNCTION audit_change('account', 'id', 'id', 'create', 'delete');
CREATE TRIGGER api_keys_audited AFTER INSERT OR UPDATE OR DELETE ON api_keys
  FOR EACH ROW EXECUTE FUNCTION audit_change('key', 'id', 'account_id', 'create', 'delete');
CREATE TRIGGER members_audited AFTER INSERT OR UPDATE OR DELETE ON members
  FOR EACH ROW EXECUTE FUNCTION audit_change('member', 'account_id', 'organization_id', 'add', 'remove');
CREATE TRIGGER key_requests_audited AFTER INSERT OR UPDATE OR DELETE ON key_requests
  FOR EACH ROW EXECUTE FUNCTION audit_change('key_request', 'id', 'organization_id', 'create', 'delete');
-- Bookings change what is spent all the time: that is no act.
CREATE TRIGGER grants_audited AFTER INSERT OR UPDATE OF spend_cap, member_id OR DELETE ON grants
  FOR EACH ROW EXECUTE FUNCTION audit_change('grant', 'key_id', 'account_id', 'create', 'delete');
