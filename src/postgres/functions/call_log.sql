-- Moves the ids of usage rows up to the clock, in microseconds. Once for a booking, whose rows then take a step each.
CREATE OR REPLACE FUNCTION advance_usage_row_ids() RETURNS void LANGUAGE sql AS $$
  SELECT setval('usage_row_ids', greatest(
    nextval('usage_row_ids'), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))
$$;

-- A settlement as a booking sends it. The columns are those of schemas/call-log/columns.ts, as everywhere in braces.
DROP TYPE IF EXISTS settled_call;
CREATE TYPE settled_call AS ({{settled_types}});

-- Books settlements in the caller's transaction; each is the text of a settled_call. Returns one row: the wallets that were
-- charged, the request ids that are new, and those refused, which the caller keeps: their account is not known, or
-- retention has taken away the calls of their month, so that it cannot be said whether they were booked.
--
-- Charges of keys that have a grant count as spent of it, those that a budget covers count in its period, and both end
-- their reservations. Such keys and budgets are among the wallets returned, under their ids, with what they leave.
--
-- The lock makes bookings one at a time: ids of usage rows rise in the order of commit, and two bookings never wait for
-- each other's wallets. A transaction that also changes a wallet must take it first.
--
-- Composites, because PostgreSQL reads them at half the cost of a JSON document. A request id occurs once in them.
--
-- Few settlements come twice, so their request ids are looked for only when the unique index refuses one. ON CONFLICT
-- looks for each, and writes a second record of each row into the write-ahead log. The same request id comes to the same
-- partition each time.
CREATE OR REPLACE FUNCTION book_settlements(
  settlements text[], known_columns integer, OUT wallets json, OUT booked json, OUT refused json
) LANGUAGE plpgsql
-- One plan for all batches, made once a session: planning costs more than booking a small batch. Wallets are
-- found by their index even where the statistics still say that the table is small.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  calls settled_call[];
  granted_keys text[];
  granted_costs bigint[];
  budgeted_accounts text[];
  unknown_accounts text[];
  kept_since_ms bigint;
  booked_ms bigint;
  booked_before text[];
BEGIN
  -- A process of an earlier version knows the first columns and not the last.
  IF known_columns < {{settled_count}} THEN
    settlements := ARRAY(
      SELECT left(call, -1) || repeat(',', {{settled_count}} - known_columns) || ')' FROM unnest(settlements) AS call);
  END IF;
  calls := settlements::settled_call[];
  PERFORM pg_advisory_xact_lock(7811001);
  PERFORM advance_usage_row_ids();
  -- A separate statement, so that it sees what was committed while it waited for the lock.
  SELECT array_agg(account_id) FROM (SELECT DISTINCT account_id FROM unnest(calls)) AS s
  WHERE NOT EXISTS (SELECT FROM wallets AS w WHERE w.account_id = s.account_id)
  INTO unknown_accounts;
  kept_since_ms := ms_of(kept_since('usage_rows'));
  IF unknown_accounts IS NOT NULL OR kept_since_ms IS NOT NULL THEN
    SELECT json_agg(request_id)
    FROM unnest(calls)
    WHERE account_id = ANY (unknown_accounts) OR submitted_at < kept_since_ms INTO refused;
  END IF;
  booked_ms := extract(epoch FROM clock_timestamp()) * 1000;
  LOOP
    BEGIN
      WITH inserted AS (
        INSERT INTO usage_rows ({{settled_columns}}, booked_at)
        SELECT {{settled_values}}, booked_ms FROM unnest(calls)
        WHERE (unknown_accounts IS NULL OR account_id <> ALL (unknown_accounts))
          AND (kept_since_ms IS NULL OR submitted_at >= kept_since_ms)
          AND (booked_before IS NULL OR request_id <> ALL (booked_before))
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
        granted.key_ids, granted.costs,
        (SELECT array_agg(account_id) FROM (SELECT DISTINCT account_id FROM inserted) AS s
          WHERE EXISTS (SELECT FROM budgets AS b WHERE b.account_id = s.account_id))
      FROM granted
      INTO wallets, booked, granted_keys, granted_costs, budgeted_accounts;
      EXIT;
    EXCEPTION WHEN unique_violation THEN
      IF booked_before IS NOT NULL THEN
        RAISE;
      END IF;
      SELECT coalesce(array_agg(request_id), '{}') FROM usage_rows
      WHERE request_id IN (SELECT request_id FROM unnest(calls)) INTO booked_before;
    END;
  END LOOP;
  -- After the wallets, as everywhere: a transaction that locks both locks the wallet first.
  IF granted_keys IS NOT NULL THEN
    UPDATE grants AS g SET spent = g.spent + s.cost, version = g.version + 1
    FROM unnest(granted_keys, granted_costs) AS s(key_id, cost)
    WHERE g.key_id = s.key_id AND s.cost > 0;
  END IF;
  -- Also of accounts whose budgets were deleted during the call. Most of the time nothing is reserved anywhere.
  IF EXISTS (SELECT FROM cap_reservations) THEN
    DELETE FROM cap_reservations WHERE ref IN (SELECT json_array_elements_text(book_settlements.booked));
  END IF;
  -- Most keys have no grant, and most accounts no budget.
  IF granted_keys IS NULL AND budgeted_accounts IS NULL THEN
    RETURN;
  END IF;
  SELECT (coalesce(book_settlements.wallets::jsonb, '[]') || coalesce(jsonb_agg(totals), '[]'))::json
  FROM (
    SELECT g.account_id, g.balance::text, g.held::text, g.used::text, g.version::text
    FROM grant_wallets AS g WHERE g.account_id = ANY (granted_keys)
  ) AS totals
  INTO wallets;
  IF budgeted_accounts IS NOT NULL THEN
    wallets := (wallets::jsonb || spend_budgets(
      budgeted_accounts, book_settlements.booked, (SELECT min(submitted_at) FROM unnest(calls))))::json;
  END IF;
END
$$;
