-- One row for each ended call. Instants are epoch milliseconds, as the settlement has them. The id rises
-- in the order of commit, because whoever inserts holds the lock that book_settlements takes; so a reader
-- that has seen an id has seen all below it.
CREATE TABLE usage_rows (
  id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  submitted_at       bigint NOT NULL,
  created_at         bigint NOT NULL,
  booked_at          bigint NOT NULL,
  latency_ms         bigint NOT NULL,
  ttfb_ms            bigint,
  input_tokens       bigint NOT NULL,
  output_tokens      bigint NOT NULL,
  cached_tokens      bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  reasoning_tokens   bigint NOT NULL,
  server_tool_calls  bigint NOT NULL,
  cost               bigint NOT NULL CHECK (cost >= 0),
  estimate           bigint NOT NULL,
  attempts_count     integer,
  stream             boolean NOT NULL,
  request_id         text NOT NULL UNIQUE,
  account_id         text NOT NULL,
  key_id             text NOT NULL,
  model              text NOT NULL,
  protocol           text NOT NULL,
  status             text NOT NULL,
  usage_source       text NOT NULL,
  error_code         text,
  error_message      text,
  unit_count         text,
  unit_type          text,
  channel_id         text,
  attempts           json
);

-- What cannot be booked: kept whole, so that nothing is lost and the rest of its batch goes on.
CREATE TABLE settlements_refused (
  request_id text PRIMARY KEY,
  reason     text NOT NULL,
  settlement text NOT NULL,
  refused_at timestamptz NOT NULL DEFAULT now()
);

-- How far the usage rows are copied into the call log. A claimed range is committed before it is copied.
CREATE TABLE usage_copy (
  only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  copied_upto  bigint NOT NULL DEFAULT 0,
  claimed_upto bigint CHECK (claimed_upto > copied_upto)
);
INSERT INTO usage_copy DEFAULT VALUES;
