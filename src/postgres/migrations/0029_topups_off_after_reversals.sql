-- A refund or a dispute switches automatic top-ups off.
ALTER TABLE automatic_topups DROP CONSTRAINT automatic_topups_off_reason_check,
  ADD CONSTRAINT automatic_topups_off_reason_check
    CHECK (off_reason IN ('failures', 'method_removed', 'refund', 'chargeback'));
