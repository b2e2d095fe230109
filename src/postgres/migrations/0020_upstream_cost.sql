-- What the operator pays for a call, by the cost of its channel; null where that is not known. No answer to a customer has
-- it.
ALTER TABLE usage_rows ADD COLUMN upstream_cost bigint CHECK (upstream_cost >= 0);

-- Booking has one more argument: its file creates it again.
DROP FUNCTION IF EXISTS book_settlements(
  text[], text[], text[], text[], text[], boolean[], text[], text[], text[], bigint[], bigint[], bigint[], bigint[],
  bigint[], bigint[], text[], text[], bigint[], bigint[], text[], bigint[], bigint[], bigint[], bigint[], text[], integer[],
  json[], text[], text[], json[], bigint[], integer[]);
