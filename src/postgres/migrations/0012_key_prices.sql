-- What one call of a key may cost at most, 1e-8 credit; null or no row: no limit.
CREATE TABLE key_max_prices (
  key_id     text PRIMARY KEY REFERENCES api_keys,
  account_id text NOT NULL REFERENCES accounts,
  max_price  bigint CHECK (max_price > 0)
);
