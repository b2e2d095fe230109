-- An account may have several customers at the payment provider: one that was deleted there, or made with other keys, is
-- replaced. The newest is the current one; payments that an earlier one began are still booked.
ALTER TABLE payment_customers
  DROP CONSTRAINT payment_customers_pkey, DROP CONSTRAINT payment_customers_id_key, ADD PRIMARY KEY (id);
CREATE INDEX payment_customers_account ON payment_customers (account_id, created_at DESC);
