-- Records an event in the outbox, as part of the caller's transaction. Where `wanted_crossing` has been recorded before,
-- does nothing. The names of types are those of `schemas/notifications/event.ts`.
CREATE OR REPLACE FUNCTION record_event(
  event_type text, account text, subject text, wanted_crossing text, event_data jsonb
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO events (type, account_id, subject_id, crossing, data)
  VALUES (event_type, account, subject, wanted_crossing, event_data)
  ON CONFLICT (crossing) DO NOTHING;
  IF FOUND THEN
    PERFORM pg_notify('tollgate_events', '');
  END IF;
END
$$;

-- Makes the deliveries of events that have none yet, for at most this many events, oldest first. Returns their number.
-- Without mail no email is written, also not later. `by_role` are the events of owners and operators who chose none.
CREATE OR REPLACE FUNCTION dispatch_events(most integer, has_mail boolean, by_role text[]) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  taken text[];
BEGIN
  SELECT array_agg(id) INTO taken FROM (
    SELECT id FROM events WHERE dispatched_at IS NULL ORDER BY created_at LIMIT most FOR UPDATE SKIP LOCKED
  ) AS oldest;
  IF taken IS NULL THEN
    RETURN 0;
  END IF;
  INSERT INTO deliveries (account_id, event_id, lane, endpoint_id)
  SELECT w.account_id, e.id, w.id, w.id
  FROM events AS e JOIN webhook_endpoints AS w ON w.account_id = coalesce(e.account_id, 'installation')
  WHERE e.id = ANY (taken) AND w.kind = 'webhook' AND w.enabled AND (w.events IS NULL OR e.type = ANY (w.events))
  ORDER BY e.created_at
  ON CONFLICT DO NOTHING;
  INSERT INTO deliveries (account_id, event_id, lane, endpoint_id, url)
  SELECT w.account_id, e.id, w.id, w.id, t.callback_url
  FROM events AS e JOIN tasks AS t ON t.id = e.subject_id AND t.callback_url IS NOT NULL
  JOIN webhook_endpoints AS w ON w.account_id = e.account_id AND w.kind = 'callback'
  WHERE e.id = ANY (taken) AND e.type IN ('task.succeeded', 'task.failed')
  ORDER BY e.created_at
  ON CONFLICT DO NOTHING;
  IF has_mail THEN
    INSERT INTO deliveries (account_id, event_id, lane, user_id, address)
    SELECT coalesce(e.account_id, 'installation'), e.id, 'mail', u.id, u.email
    FROM events AS e CROSS JOIN LATERAL (
      SELECT id, email, 'owner' AS role FROM users WHERE account_id = e.account_id AND enabled
      UNION ALL
      SELECT p.id, p.email, m.role FROM members AS m JOIN users AS p ON p.account_id = m.account_id AND p.enabled
      WHERE m.organization_id = e.account_id
      UNION ALL
      SELECT id, email, 'operator' FROM users
      WHERE e.account_id IS NULL AND installation_role = 'operator' AND enabled
    ) AS u
    LEFT JOIN email_choices AS c ON c.user_id = u.id AND c.account_id = coalesce(e.account_id, 'installation')
    WHERE e.id = ANY (taken) AND u.role <> 'member'
      AND e.type = ANY (coalesce(c.events, CASE WHEN u.role IN ('owner', 'operator') THEN by_role END))
    ON CONFLICT DO NOTHING;
  END IF;
  UPDATE events SET dispatched_at = now() WHERE id = ANY (taken);
  RETURN cardinality(taken);
END
$$;

-- Names deliveries that are due and that no message names, with at most `of_lane` of each lane under way.
-- A process that was killed leaves its deliveries named: after `stale_after` they are named again.
CREATE OR REPLACE FUNCTION name_deliveries(of_lane integer, stale_after interval)
RETURNS TABLE (id text, named_at timestamptz) LANGUAGE sql AS $$
  WITH due AS (
    SELECT d.id
    FROM (SELECT w.id AS lane FROM webhook_endpoints AS w UNION ALL SELECT 'mail') AS lanes
    CROSS JOIN LATERAL (
      SELECT count(*) AS named FROM deliveries AS n
      WHERE n.lane = lanes.lane AND n.state = 'waiting' AND n.named_at >= now() - stale_after
    ) AS under_way
    CROSS JOIN LATERAL (
      SELECT w.id FROM deliveries AS w
      WHERE w.lane = lanes.lane AND w.state = 'waiting' AND w.due_at <= now()
        AND (w.named_at IS NULL OR w.named_at < now() - stale_after)
      ORDER BY w.due_at, w.position LIMIT greatest(0, of_lane - under_way.named)
    ) AS d
  )
  UPDATE deliveries AS d SET named_at = clock_timestamp() FROM due
  WHERE d.id = due.id AND d.state = 'waiting' AND (d.named_at IS NULL OR d.named_at < now() - stale_after)
  RETURNING d.id, d.named_at
$$;

-- The balance of a wallet, what is held included, fell below its threshold or to nothing. Rising above it again makes
-- the next fall an event; a hold that comes and goes makes none.
CREATE OR REPLACE FUNCTION record_low_balance() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before bigint := OLD.balance + OLD.held;
  after bigint := NEW.balance + NEW.held;
  facts jsonb := jsonb_build_object(
    'balance', print_credits(NEW.balance), 'held', print_credits(NEW.held),
    'threshold', print_credits(NEW.low_below));
BEGIN
  IF before >= NEW.low_below AND after < NEW.low_below THEN
    PERFORM record_event('balance.low', NEW.account_id, NEW.account_id, NULL, facts);
  END IF;
  IF before > 0 AND after <= 0 THEN
    PERFORM record_event('balance.empty', NEW.account_id, NEW.account_id, NULL, facts);
  END IF;
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER wallets_low AFTER UPDATE OF balance ON wallets FOR EACH ROW WHEN (
  (OLD.balance + OLD.held >= NEW.low_below AND NEW.balance + NEW.held < NEW.low_below)
  OR (OLD.balance + OLD.held > 0 AND NEW.balance + NEW.held <= 0)
) EXECUTE FUNCTION record_low_balance();

CREATE OR REPLACE FUNCTION audit_threshold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_act('alerts.update', NEW.account_id, NEW.account_id,
    jsonb_build_object('balance_low', print_credits(OLD.low_below)),
    jsonb_build_object('balance_low', print_credits(NEW.low_below)));
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER wallets_threshold_audited AFTER UPDATE OF low_below ON wallets
  FOR EACH ROW EXECUTE FUNCTION audit_threshold();

-- Failed deliveries are not an operation.
CREATE OR REPLACE TRIGGER webhook_endpoints_audited AFTER INSERT OR DELETE ON webhook_endpoints
  FOR EACH ROW EXECUTE FUNCTION audit_change('webhook', 'id', 'account_id', 'create', 'delete');
CREATE OR REPLACE TRIGGER webhook_endpoints_updated AFTER UPDATE ON webhook_endpoints
  FOR EACH ROW WHEN (OLD.failing_since IS NOT DISTINCT FROM NEW.failing_since)
  EXECUTE FUNCTION audit_change('webhook', 'id', 'account_id', 'create', 'delete');
CREATE OR REPLACE TRIGGER email_choices_audited AFTER INSERT OR UPDATE OR DELETE ON email_choices
  FOR EACH ROW EXECUTE FUNCTION audit_change('email_choices', 'user_id', 'account_id', 'set', 'delete');
