-- The instant at which clocks of a zone show this time, the first of two where they are set back over it. Where they are
-- set forward over it, the instant of that.
CREATE OR REPLACE FUNCTION instant_of(clock timestamp, zone text) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN (at - interval '1 hour') AT TIME ZONE zone = clock THEN at - interval '1 hour' ELSE at END
  FROM (SELECT clock AT TIME ZONE zone AS at) AS later
$$;

-- The beginning of the period that an instant is in, or of the one that is `later` periods after it; epoch milliseconds.
-- Weeks begin on Monday.
CREATE OR REPLACE FUNCTION period_start(period text, zone text, at bigint, later integer DEFAULT 0)
RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT (extract(epoch FROM instant_of(
    date_trunc(period, to_timestamp(at / 1000.0) AT TIME ZONE zone) + later * ('1 ' || period)::interval, zone
  )) * 1000)::bigint
$$;

CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

-- The period of a budget at an instant: what is spent in it, and what calls and tasks under way have reserved of it.
CREATE OR REPLACE FUNCTION budget_state(
  budget budgets, at bigint,
  OUT starts_at bigint, OUT resets_at bigint, OUT spent bigint, OUT version bigint, OUT reserved bigint
) LANGUAGE plpgsql STABLE AS $$
BEGIN
  starts_at := period_start(budget.period, budget.timezone, at);
  resets_at := period_start(budget.period, budget.timezone, at, 1);
  SELECT p.spent, p.version INTO spent, version FROM budget_periods AS p
  WHERE p.budget_id = budget.id AND p.starts_at = budget_state.starts_at;
  spent := coalesce(spent, 0);
  version := coalesce(version, 0);
  SELECT coalesce(sum(r.amount), 0) INTO reserved FROM cap_reservations AS r
  WHERE r.account_id = budget.account_id AND budget.subject_id IN (r.account_id, r.member_id, r.key_id)
    AND r.submitted_at >= budget_state.starts_at AND r.submitted_at < budget_state.resets_at
    AND (r.expires_at IS NULL OR r.expires_at > now());
END
$$;

-- Reserves what a call or a task may cost, in the spend cap of its key and in the budgets of the key, its member and its
-- account, in the period of its submission. Returns the limit that leaves too little; nulls where it is reserved, or
-- where nothing limits the key. A second time under one ref changes nothing. `journal` has the call, which is `admitted`.
--
-- Locks the grant and then the budgets in the order of their ids. A transaction that also locks a wallet does that first.
CREATE OR REPLACE FUNCTION reserve_spend(
  wanted_ref text, spender text, wanted bigint, at bigint, lifetime interval,
  journal text DEFAULT NULL, admitted json DEFAULT NULL,
  OUT refused_by text, OUT budget json
) LANGUAGE plpgsql AS $$
DECLARE
  account text;
  member text;
  cap_left bigint;
  has_budgets boolean;
BEGIN
  SELECT k.account_id INTO account FROM api_keys AS k WHERE k.id = spender;
  SELECT g.member_id, g.spend_cap - g.spent INTO member, cap_left FROM grants AS g WHERE g.key_id = spender FOR UPDATE;
  PERFORM FROM budgets AS b
  WHERE b.account_id = account AND b.subject_id IN (account, member, spender) ORDER BY b.id FOR NO KEY UPDATE;
  has_budgets := FOUND;
  IF cap_left IS NULL AND NOT has_budgets THEN
    RETURN;
  END IF;
  -- Statements of their own, so that they see what was committed while the locks were waited for.
  DELETE FROM cap_reservations WHERE ref IN (
    SELECT r.ref FROM cap_reservations AS r
    WHERE r.account_id = account AND r.expires_at <= now() FOR UPDATE SKIP LOCKED);
  IF EXISTS (SELECT FROM cap_reservations AS r WHERE r.ref = wanted_ref) THEN
    RETURN;
  END IF;
  IF wanted > cap_left - (SELECT coalesce(sum(r.amount), 0) FROM cap_reservations AS r
    WHERE r.key_id = spender AND (r.expires_at IS NULL OR r.expires_at > now()))
  THEN
    refused_by := 'spend_cap';
    RETURN;
  END IF;
  IF has_budgets THEN
    -- The one that keeps the caller waiting for longest.
    SELECT 'budget', json_build_object(
      'id', b.id, 'account_id', b.account_id, 'scope', b.scope, 'subject_id', b.subject_id, 'amount', b.amount::text,
      'period', b.period, 'timezone', b.timezone, 'resets_at', s.resets_at)
    INTO refused_by, budget
    FROM budgets AS b, budget_state(b, at) AS s
    WHERE b.account_id = account AND b.subject_id IN (account, member, spender)
      AND wanted > b.amount - s.spent - s.reserved
    ORDER BY s.resets_at DESC LIMIT 1;
    IF FOUND THEN
      RETURN;
    END IF;
  END IF;
  INSERT INTO cap_reservations (
    ref, key_id, account_id, member_id, amount, submitted_at, expires_at, journal_id, admission)
  VALUES (wanted_ref, spender, account, member, wanted, at, now() + lifetime, journal, admitted);
END
$$;

-- Records that what is spent of a budget in a period has reached thresholds that it had not reached before. Each is
-- recorded once in a period, also where the amount changes.
CREATE OR REPLACE FUNCTION record_thresholds(budget budgets, starts_at bigint, spent_before bigint, spent bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_event(
    'budget.threshold', budget.account_id, budget.id,
    concat_ws('/', 'budget.threshold', budget.id, starts_at, percent),
    jsonb_build_object(
      'budget_id', budget.id, 'scope', budget.scope, 'subject_id', budget.subject_id, 'percent', percent,
      'amount', print_credits(budget.amount), 'spent', print_credits(spent), 'period', budget.period,
      'timezone', budget.timezone, 'period_start', print_instant(starts_at),
      'resets_at', print_instant(period_start(budget.period, budget.timezone, starts_at, 1))))
  FROM unnest(ARRAY[50, 80, 100]) AS percent
  WHERE spent_before::numeric * 100 < budget.amount::numeric * percent
    AND spent::numeric * 100 >= budget.amount::numeric * percent
  ORDER BY percent;
END
$$;

-- Epoch milliseconds in RFC 3339.
CREATE OR REPLACE FUNCTION print_instant(at bigint) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT to_char(to_timestamp(at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- Counts booked calls of accounts that have budgets, all admitted since an instant, each in the period of its submission.
-- Returns the periods as wallets.
CREATE OR REPLACE FUNCTION spend_budgets(accounts text[], refs json, since bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  totals jsonb;
BEGIN
  WITH charged AS (
    SELECT b.id, b.amount, period_start(b.period, b.timezone, u.submitted_at) AS starts_at, sum(u.cost)::bigint AS cost
    FROM usage_rows AS u
    LEFT JOIN grants AS g ON g.key_id = u.key_id
    JOIN budgets AS b ON b.account_id = u.account_id AND b.subject_id IN (u.account_id, g.member_id, u.key_id)
      AND u.submitted_at >= b.counts_from
    WHERE u.request_id IN (SELECT json_array_elements_text(refs)) AND u.submitted_at >= since
      AND u.account_id = ANY (accounts) AND u.cost > 0
    GROUP BY 1, 2, 3
  ), spent AS (
    INSERT INTO budget_periods AS p (budget_id, starts_at, spent)
    SELECT c.id, c.starts_at, c.cost FROM charged AS c
    ON CONFLICT (budget_id, starts_at) DO UPDATE SET spent = p.spent + excluded.spent, version = p.version + 1
    RETURNING p.*
  )
  SELECT jsonb_agg(jsonb_build_object(
    'id', c.id, 'starts_at', c.starts_at, 'before', s.spent - c.cost, 'spent', s.spent,
    'account_id', c.id || '@' || c.starts_at, 'balance', (c.amount - s.spent)::text, 'held', '0',
    'used', s.spent::text, 'version', s.version::text))
  INTO totals
  FROM charged AS c JOIN spent AS s ON s.budget_id = c.id AND s.starts_at = c.starts_at;
  PERFORM record_thresholds(b, t.starts_at, t.before, t.spent)
  FROM jsonb_to_recordset(totals) AS t(id text, starts_at bigint, before bigint, spent bigint)
  JOIN budgets AS b ON b.id = t.id;
  RETURN coalesce(totals, '[]');
END
$$;

-- The current periods of budgets as wallets: what may still be spent is the balance.
CREATE OR REPLACE FUNCTION budget_wallets(ids text[])
RETURNS TABLE (account_id text, balance bigint, held bigint, used bigint, version bigint)
LANGUAGE sql STABLE AS $$
  SELECT b.id || '@' || s.starts_at, b.amount - s.spent, 0::bigint, s.spent, s.version
  FROM budgets AS b, budget_state(b, now_ms()) AS s WHERE b.id = ANY (ids)
$$;

-- The budgets that cover a key, with what their current periods leave, and when these and the next ones begin.
CREATE OR REPLACE FUNCTION budgets_of(account text, member text, key text) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_agg(json_build_object(
    'id', b.id, 'account_id', b.account_id, 'scope', b.scope, 'subject_id', b.subject_id, 'amount', b.amount::text,
    'period', b.period, 'timezone', b.timezone, 'spent', s.spent::text, 'version', s.version::text,
    'starts', ARRAY(
      SELECT period_start(b.period, b.timezone, s.starts_at, later) FROM generate_series(0, 4) AS later ORDER BY later)
  ) ORDER BY b.id)
  FROM budgets AS b, budget_state(b, now_ms()) AS s
  WHERE b.account_id = account AND b.subject_id IN (account, member, key)
$$;

-- What booked calls that count in a budget have cost, of those admitted since an instant and booked behind a row.
CREATE OR REPLACE FUNCTION spent_since(
  account text, subject text, since bigint, behind bigint, OUT cost bigint, OUT last_id bigint
) LANGUAGE sql STABLE AS $$
  SELECT
    (SELECT coalesce(sum(u.cost), 0)::bigint
      FROM usage_rows AS u LEFT JOIN grants AS g ON g.key_id = u.key_id
      WHERE u.id > behind AND u.account_id = account AND u.submitted_at >= since
        AND subject IN (u.account_id, g.member_id, u.key_id)),
    (SELECT max(id) FROM usage_rows)
$$;

-- Budgets are part of what gateways cache of a key. What is spent is not: it changes all the time.
CREATE OR REPLACE FUNCTION notify_budget_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  budget budgets := coalesce(NEW, OLD);
BEGIN
  PERFORM pg_notify('tollgate_changes', CASE budget.scope
    WHEN 'key' THEN 'key:' || budget.subject_id ELSE 'account:' || budget.account_id END);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER budgets_changed AFTER INSERT OR UPDATE OR DELETE ON budgets
  FOR EACH ROW EXECUTE FUNCTION notify_budget_change();
CREATE OR REPLACE TRIGGER budgets_audited AFTER INSERT OR UPDATE OR DELETE ON budgets
  FOR EACH ROW EXECUTE FUNCTION audit_change('budget', 'id', 'account_id', 'create', 'delete');
