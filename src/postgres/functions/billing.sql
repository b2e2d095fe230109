-- Caps are part of what gateways cache of a key. What is spent is not: it changes all the time.
CREATE OR REPLACE FUNCTION notify_cap_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_changes', 'key:' || NEW.key_id);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER grants_changed AFTER UPDATE OF spend_cap ON grants
  FOR EACH ROW EXECUTE FUNCTION notify_cap_change();

-- Bookings change what is spent all the time, and are not audited.
CREATE OR REPLACE TRIGGER grants_audited AFTER INSERT OR UPDATE OF spend_cap, member_id OR DELETE ON grants
  FOR EACH ROW EXECUTE FUNCTION audit_change('grant', 'key_id', 'account_id', 'create', 'delete');

-- The sum of an account's reservations, at the instant of the statement that asks.
CREATE OR REPLACE FUNCTION reserved_in(account text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(amount), 0)::bigint FROM wallet_reservations
  WHERE account_id = account AND expires_at > now()
$$;

-- Reserves the amount where the balance covers it beside all other reservations, else returns false. A second time
-- under one ref changes nothing. `journal` has the call, which is `admitted`.
CREATE OR REPLACE FUNCTION reserve_wallet(
  account text, wanted_ref text, wanted bigint, lifetime interval, journal text DEFAULT NULL, admitted json DEFAULT NULL
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  left_over bigint;
BEGIN
  SELECT balance INTO left_over FROM wallets WHERE account_id = account FOR UPDATE;
  -- Statements after the lock, so that they see what was committed while it was waited for.
  DELETE FROM wallet_reservations WHERE account_id = account AND expires_at <= now();
  IF EXISTS (SELECT FROM wallet_reservations WHERE ref = wanted_ref) THEN
    RETURN true;
  END IF;
  IF left_over IS NULL OR wanted > left_over - reserved_in(account) THEN
    RETURN false;
  END IF;
  INSERT INTO wallet_reservations (ref, account_id, amount, expires_at, journal_id, admission)
  VALUES (wanted_ref, account, wanted, now() + lifetime, journal, admitted);
  RETURN true;
END
$$;

-- Ends the reservations of booked calls, and returns the wallets of the booking with what stays reserved in them. Most
-- of the time nothing is reserved anywhere.
CREATE OR REPLACE FUNCTION end_reservations(booked json, wallets json) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM wallet_reservations) THEN
    RETURN wallets;
  END IF;
  DELETE FROM wallet_reservations WHERE ref IN (SELECT json_array_elements_text(booked));
  RETURN (
    SELECT json_agg(wallet || jsonb_build_object('reserved', reserved_in(wallet ->> 'account_id')::text))
    FROM jsonb_array_elements(wallets::jsonb) AS wallet
  );
END
$$;

-- What was booked is corrected by another entry, never by changing it.
CREATE OR REPLACE FUNCTION refuse_booked_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Rows of % are only ever added, never changed or deleted', TG_TABLE_NAME;
END
$$;
CREATE OR REPLACE TRIGGER ledger_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_booked_change();
CREATE OR REPLACE TRIGGER usage_rows_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON usage_rows
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_booked_change();

CREATE OR REPLACE FUNCTION ms_of(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (extract(epoch FROM at) * 1000)::bigint
$$;

-- Rows before this instant were taken away by retention; null: none were.
CREATE OR REPLACE FUNCTION kept_since(wanted_table text) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT max(ends_at) FROM partitions WHERE table_name = wanted_table AND state <> 'attached'
$$;

-- The instant that an id begins with, epoch milliseconds; null where it has none.
CREATE OR REPLACE FUNCTION id_ms(id text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sum((position(substr(digits, place, 1) IN '0123456789ABCDEFGHJKMNPQRSTVWXYZ') - 1)::bigint << (5 * (10 - place)))::bigint
  FROM substring(id FROM '_([0-9A-HJKMNP-TV-Z]{10})[0-9A-HJKMNP-TV-Z]{16}$') AS digits, generate_series(1, 10) AS place
  WHERE digits IS NOT NULL
$$;
