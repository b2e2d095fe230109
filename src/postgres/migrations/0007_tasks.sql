-- Work that outlives its request. Instants are epoch milliseconds, amounts count 1e-8 credit; whoever moves a
-- task names the version that was read.
CREATE TABLE tasks (
  id             text PRIMARY KEY,
  kind           text NOT NULL,
  account_id     text NOT NULL REFERENCES accounts,
  key_id         text NOT NULL,
  request_id     text NOT NULL,
  model          text NOT NULL,
  protocol       text NOT NULL,
  job            json NOT NULL,
  price          json NOT NULL,
  hold           bigint NOT NULL CHECK (hold >= 0),
  is_early       boolean NOT NULL,
  channel_ids    text[] NOT NULL,
  state          text NOT NULL,
  version        integer NOT NULL DEFAULT 1,
  chain          integer NOT NULL DEFAULT 0,
  channel_id     text,
  upstream_model text,
  upstream_id    text,
  upstream_state text,
  result         json,
  error_code     text,
  error_message  text,
  refused_status integer,
  attempts       json NOT NULL DEFAULT '[]',
  cost           bigint,
  submitted_at   bigint NOT NULL,
  accepted_at    bigint,
  ended_at       bigint,
  deadline_at    bigint NOT NULL,
  deleted_at     bigint,
  touched_at     bigint NOT NULL,
  -- The Idempotency-Key that it was made under; null again once another task may be made under it.
  intent_key     text,
  intent_hash    bytea,
  CHECK ((state IN ('succeeded', 'failed', 'expired', 'cancelled', 'refused')) = (ended_at IS NOT NULL))
);
CREATE UNIQUE INDEX tasks_intent ON tasks (account_id, intent_key) WHERE intent_key IS NOT NULL;
CREATE INDEX tasks_request ON tasks (request_id);
-- Ids rise with time: a list reads from the newest on.
CREATE INDEX tasks_list ON tasks (account_id, kind, id);
CREATE INDEX tasks_open_by_account ON tasks (account_id, id) WHERE ended_at IS NULL;
CREATE INDEX tasks_open_by_touch ON tasks (touched_at) WHERE ended_at IS NULL;
CREATE INDEX tasks_open_by_deadline ON tasks (deadline_at) WHERE ended_at IS NULL AND state <> 'storing';

-- Files of the object store that do not last for ever.
CREATE TABLE stored_objects (
  key        text PRIMARY KEY,
  expires_at bigint NOT NULL
);
CREATE INDEX stored_objects_expiry ON stored_objects (expires_at);

ALTER TABLE usage_rows
  ADD COLUMN task_id text, ADD COLUMN result_urls text[], ADD COLUMN result_expires_at bigint;
CREATE UNIQUE INDEX usage_rows_task ON usage_rows (task_id) WHERE task_id IS NOT NULL;

DROP FUNCTION book_settlements(
  text[], text[], text[], text[], text[], boolean[], text[], text[], text[], bigint[], bigint[], bigint[],
  bigint[], bigint[], bigint[], text[], text[], bigint[], bigint[], text[], bigint[], bigint[], bigint[],
  bigint[], text[], integer[], json[], text[]);

-- As before, with the task. A settler that knows none of it leaves it out.
CREATE FUNCTION book_settlements(
  request_ids text[], account_ids text[], key_ids text[], models text[], protocols text[], streams boolean[],
  statuses text[], error_codes text[], error_messages text[], input_tokens bigint[], output_tokens bigint[],
  cached_tokens bigint[], cache_write_tokens bigint[], reasoning_tokens bigint[], server_tool_calls bigint[],
  unit_counts text[], unit_types text[], costs bigint[], estimates bigint[], usage_sources text[],
  submitted_ats bigint[], created_ats bigint[], latencies_ms bigint[], ttfbs_ms bigint[], channel_ids text[],
  attempts_counts integer[], attempts json[], details text[] DEFAULT NULL,
  task_ids text[] DEFAULT NULL, result_urls json[] DEFAULT NULL, result_expires_ats bigint[] DEFAULT NULL,
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
      book_settlements.attempts, details, task_ids, book_settlements.result_urls, result_expires_ats
    ) WITH ORDINALITY AS s(
      request_id, account_id, key_id, model, protocol, stream, status, error_code, error_message,
      input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls,
      unit_count, unit_type, cost, estimate, usage_source, submitted_at, created_at, latency_ms, ttfb_ms,
      channel_id, attempts_count, attempts, detail, task_id, result_urls, result_expires_at, position)
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
      channel_id, attempts_count, attempts, detail, task_id, result_urls, result_expires_at, booked_at)
    SELECT
      request_id, account_id, key_id, model, protocol, stream, status, error_code, error_message,
      input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls,
      unit_count, unit_type, cost, estimate, usage_source, submitted_at, created_at, latency_ms, ttfb_ms,
      channel_id, attempts_count, attempts, detail, task_id,
      CASE WHEN result_urls IS NOT NULL
        THEN (SELECT array_agg(url) FROM json_array_elements_text(result_urls) AS url) END,
      result_expires_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    FROM incoming WHERE is_known ORDER BY position
    ON CONFLICT (request_id) DO NOTHING
    RETURNING coalesce(task_id, request_id) AS ref, request_id, account_id, cost
  ), charged AS (
    INSERT INTO ledger_entries (account_id, kind, amount, ref)
    SELECT account_id, 'charge', -cost, ref FROM inserted WHERE cost > 0
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
