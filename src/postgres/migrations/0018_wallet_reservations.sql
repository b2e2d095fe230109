-- What calls under way may still cost an account whose balance is low; deleted when their rows are booked.
CREATE TABLE wallet_reservations (
  -- The request.
  ref        text PRIMARY KEY,
  account_id text NOT NULL,
  amount     bigint NOT NULL CHECK (amount >= 0),
  -- A process that died before it wrote to its journal leaves a reservation behind.
  expires_at timestamptz NOT NULL
);
CREATE INDEX wallet_reservations_account ON wallet_reservations (account_id);

-- The sum of an account's reservations, at the instant of the statement that asks.
CREATE FUNCTION reserved_in(account text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(amount), 0)::bigint FROM wallet_reservations
  WHERE account_id = account AND expires_at > now()
$$;

-- Reserves the amount where the balance covers it beside all other reservations, else returns false. A second time
-- under one ref changes nothing.
CREATE FUNCTION reserve_wallet(account text, wanted_ref text, wanted bigint, lifetime interval)
RETURNS boolean LANGUAGE plpgsql AS $$
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
  INSERT INTO wallet_reservations (ref, account_id, amount, expires_at)
  VALUES (wanted_ref, account, wanted, now() + lifetime);
  RETURN true;
END
$$;

-- Ends the reservations of booked calls, and returns the wallets of the booking with what stays reserved in them. Most
-- of the time nothing is reserved anywhere.
CREATE FUNCTION end_reservations(booked json, wallets json) RETURNS json LANGUAGE plpgsql AS $$
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
