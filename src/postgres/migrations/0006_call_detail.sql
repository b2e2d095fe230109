-- What shaped a call and what became of it, for whoever looks into that one call: JSON as the gateway wrote it.
-- Text, because nothing here reads it, and nothing in it may keep a call from being booked.
ALTER TABLE usage_rows ADD COLUMN detail text;

DROP FUNCTION book_settlements(
  text[], text[], text[], text[], text[], boolean[], text[], text[], text[], bigint[], bigint[], bigint[],
  bigint[], bigint[], bigint[], text[], text[], bigint[], bigint[], text[], bigint[], bigint[], bigint[],
  bigint[], text[], integer[], json[]);

-- As before, with the detail. A settler that does not know it yet leaves it out.
CREATE FUNCTION book_settlements(
  request_ids text[], account_ids text[], key_ids text[], models text[], protocols text[], streams boolean[],
  statuses text[], error_codes text[], error_messages text[], input_tokens bigint[], output_tokens bigint[],
  cached_tokens bigint[], cache_write_tokens bigint[], reasoning_tokens bigint[], server_tool_calls bigint[],
  unit_counts text[], unit_types text[], costs bigint[], estimates bigint[], usage_sources text[],
  submitted_ats bigint[], created_ats bigint[], latencies_ms bigint[], ttfbs_ms bigint[], channel_ids text[],
  attempts_counts integer[], attempts json[], details text[] DEFAULT NULL,
  OUT wallets json, OUT booked json, OUT refused json
) LANGUAGE plpgsql
-- One plan for all batches, made once a session: planning costs more than booking a small batch. Wallets are
-- found by their index even where the statistics still say that the table is small.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM pg_advisory_xact_lock(7811001);
  -- A statement of its own, so that it sees what was committed while the lock was waited for.
  WITH incoming AS MATERIALIZED (
    SELECT s.*, w.account_id IS NOT NULL AS is_known
    FROM unnest(
      book_settlements.request_ids, account_ids, key_ids, models, protocols, streams, statuses, error_codes,
      error_messages, book_settlements.input_tokens, book_settlements.output_tokens,
      book_settlements.cached_tokens, book_settlements.cache_write_tokens, book_settlements.reasoning_tokens,
      book_settlements.server_tool_calls, unit_counts, unit_types, costs, estimates, usage_sources,
      submitted_ats, created_ats, latencies_ms, ttfbs_ms, channel_ids, attempts_counts,
      book_settlements.attempts, details
    ) WITH ORDINALITY AS s(
      request_id, account_id, key_id, model, protocol, stream, status, error_code, error_message,
      input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls,
      unit_count, unit_type, cost, estimate, usage_source, submitted_at, created_at, latency_ms, ttfb_ms,
      channel_id, attempts_count, attempts, detail, position)
    LEFT JOIN wallets AS w ON w.account_id = s.account_id
  ), unknown AS (
    INSERT INTO settlements_refused (request_id, reason, settlement)
    SELECT request_id, 'unknown account ' || account_id, to_json(incoming)::text
    FROM incoming WHERE NOT is_known
    ON CONFLICT DO NOTHING
  ), inserted AS (
    INSERT INTO usage_rows (
      request_id, account_id, key_id, model, protocol, stream, status, error_code, error_message,
      input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls,
      unit_count, unit_type, cost, estimate, usage_source, submitted_at, created_at, latency_ms, ttfb_ms,
      channel_id, attempts_count, attempts, detail, booked_at)
    SELECT
      request_id, account_id, key_id, model, protocol, stream, status, error_code, error_message,
      input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls,
      unit_count, unit_type, cost, estimate, usage_source, submitted_at, created_at, latency_ms, ttfb_ms,
      channel_id, attempts_count, attempts, detail, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    FROM incoming WHERE is_known ORDER BY position
    ON CONFLICT (request_id) DO NOTHING
    RETURNING request_id, account_id, cost
  ), charged AS (
    INSERT INTO ledger_entries (account_id, kind, amount, ref)
    SELECT account_id, 'charge', -cost, request_id FROM inserted WHERE cost > 0
  ), totals AS (
    UPDATE wallets AS w
    SET balance = w.balance - s.cost, used = w.used + s.cost, version = w.version + 1
    FROM (SELECT account_id, sum(cost)::bigint AS cost FROM inserted WHERE cost > 0 GROUP BY account_id) AS s
    WHERE w.account_id = s.account_id
    RETURNING w.account_id, w.balance::text, w.held::text, w.used::text, w.version::text
  )
  SELECT
    (SELECT json_agg(totals) FROM totals),
    (SELECT json_agg(request_id) FROM inserted),
    (SELECT json_agg(request_id) FROM incoming WHERE NOT is_known)
  INTO wallets, booked, refused;
END
$$;
