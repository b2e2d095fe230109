-- A refused payment event that an operator has dealt with: no difference of the books any more.
ALTER TABLE payment_events
  ADD COLUMN closed_at    timestamptz,
  ADD COLUMN closed_by    text,
  ADD COLUMN close_reason text,
  ADD CONSTRAINT payment_events_closed CHECK (
    num_nonnulls(closed_at, closed_by, close_reason) IN (0, 3) AND (closed_at IS NULL OR refusal IS NOT NULL));
