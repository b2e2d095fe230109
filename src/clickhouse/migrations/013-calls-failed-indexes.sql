-- The same where the failed calls are; an account may never have had one of some state.
ALTER TABLE calls_failed
  DROP INDEX IF EXISTS by_status,
  DROP INDEX IF EXISTS by_unit_type,
  ADD INDEX IF NOT EXISTS by_state status TYPE bloom_filter(0.01) GRANULARITY 1,
  ADD INDEX IF NOT EXISTS by_unit unit_type TYPE bloom_filter(0.01) GRANULARITY 1,
  MATERIALIZE INDEX by_state,
  MATERIALIZE INDEX by_unit
SETTINGS mutations_sync = 0
