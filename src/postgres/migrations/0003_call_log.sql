-- Ended calls, and how far they are copied into the call log.

-- One row for each ended call, partitioned by month. Instants are epoch milliseconds, as the settlement has them. The id rises in the order
-- of commit, because a booking inserts under the lock that book_settlements takes; so a reader that has seen an id has
-- seen all below it.
CREATE TABLE usage_rows (
  id                 bigint NOT NULL,
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
  request_id         text NOT NULL,
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
  attempts           json,
  -- What shaped a call and what became of it: JSON as the gateway wrote it. Text, because nothing here reads it, and
  -- nothing in it may keep a call from being booked.
  detail             text,
  task_id            text,
  result_urls        text[],
  result_expires_at  bigint,
  -- How many calls a row stands for: refused calls of one key, model and reason share a row where there are too many.
  call_count         integer NOT NULL DEFAULT 1,
  -- What the operator pays for a call, by the cost of its channel; null where that is not known. No answer to a customer
  -- has it.
  upstream_cost      bigint CHECK (upstream_cost >= 0),
  -- The session that the client names for a conversation or the run of an agent.
  session_id         text
) PARTITION BY RANGE (submitted_at);
CREATE SEQUENCE usage_row_ids INCREMENT BY 32 OWNED BY usage_rows.id;

-- Ids of usage rows are shown to customers. They follow the clock, in microseconds, so that two of them tell how much
-- time is between two calls, and not how many calls of others. A booking moves the sequence up to the clock once; each of
-- its rows then takes a step of 32, and a random distance within it. An id stays below 2^53 until the year 2255. The
-- function is here and not in a file of functions, because it is the default of a column.
CREATE FUNCTION next_usage_row_id() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT nextval('usage_row_ids') + floor(random() * 32)::bigint
$$;
ALTER TABLE usage_rows ALTER COLUMN id SET DEFAULT next_usage_row_id();

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

-- Journals of gateways, so that one whose machine never comes back is seen, and what its calls have reserved is found.

CREATE TABLE journals (
  -- Stays with the directory.
  id            text PRIMARY KEY,
  -- The machine, and where the journal is on its disk.
  node          text NOT NULL,
  directory     text NOT NULL,
  -- The last heartbeat, and what the journal held then. Amounts count 1e-8 credit.
  seen_at       timestamptz NOT NULL DEFAULT now(),
  open_calls    integer NOT NULL DEFAULT 0,
  open_estimate bigint NOT NULL DEFAULT 0,
  unbooked_calls integer NOT NULL DEFAULT 0,
  unbooked_cost bigint NOT NULL DEFAULT 0,
  -- Nothing in it is to be booked any more.
  outcome       text CHECK (outcome IN ('drained', 'imported', 'abandoned')),
  closed_at     timestamptz,
  CHECK ((outcome IS NULL) = (closed_at IS NULL))
);
