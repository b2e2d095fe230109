/** Rows of a year of calls, written straight into the tables: booking them would measure something else. */
import type { Sql } from '../../src/postgres/connection.ts'

const COST = 700n
const CREDIT = 100_000_000_000_000n
const CALLS_PER_ACCOUNT = 1_000
const CHUNK_ROWS = 500_000
const DAY_MS = 86_400_000

/** Calls spread evenly over a time; number `first` and those after it. */
export interface Calls {
  readonly first: number
  readonly count: number
  /** Epoch milliseconds. */
  readonly from: number
  readonly to: number
}

export const yearBefore = (now: number): Pick<Calls, 'from' | 'to'> => ({ from: now - 365 * DAY_MS, to: now })

export async function addAccounts(sql: Sql, calls: number): Promise<number> {
  const accounts = Math.max(1, Math.ceil(calls / CALLS_PER_ACCOUNT))
  await sql`INSERT INTO accounts (id, name, kind) SELECT 'acc_' || n, 'bench', 'personal' FROM generate_series(1, ${accounts}) AS n`
  await sql`INSERT INTO wallets (account_id) SELECT 'acc_' || n FROM generate_series(1, ${accounts}) AS n`
  await sql`
    INSERT INTO ledger_entries (account_id, kind, amount, created_at)
    SELECT 'acc_' || n, 'trial', ${CREDIT}, now() - interval '366 days' FROM generate_series(1, ${accounts}) AS n`
  await sql`UPDATE wallets SET balance = ${CREDIT}`
  return accounts
}

/** Adds the calls with their charges, and charges the wallets. */
export async function addCalls(sql: Sql, accounts: number, { first, count, from, to }: Calls): Promise<void> {
  const step = (to - from) / count
  for (let at = 0; at < count; at += CHUNK_ROWS) {
    const [start, end] = [at, Math.min(count, at + CHUNK_ROWS) - 1]
    await sql`
      INSERT INTO usage_rows (
        id, submitted_at, created_at, booked_at, latency_ms, ttfb_ms, input_tokens, output_tokens, cached_tokens,
        cache_write_tokens, reasoning_tokens, server_tool_calls, cost, estimate, attempts_count, stream, request_id,
        account_id, key_id, model, protocol, status, usage_source, channel_id, detail)
      SELECT (ms * 1000)::bigint, ms, ms + 1200, ms + 2000, 1200, 150, 1200, 340, 100, 0, 12, 0, ${COST}, 96000, 1, true,
        'req_' || lpad((${first}::bigint + n)::text, 26, '0'), 'acc_' || (n % ${accounts} + 1),
        'key_' || (n % ${accounts} + 1), 'sonata-large', 'chat-completions', 'success', 'upstream', 'primary',
        '{"prompt_bytes":2048,"first_token_us":150000,"before_upstream_us":300}'
      FROM (SELECT n, (${from}::float8 + n * ${step}::float8)::bigint AS ms FROM generate_series(${start}::bigint, ${end}::bigint) AS n) AS calls`
    await sql`
      INSERT INTO ledger_entries (account_id, kind, amount, ref, created_at)
      SELECT 'acc_' || (n % ${accounts} + 1), 'charge', ${-COST}, 'req_' || lpad((${first}::bigint + n)::text, 26, '0'),
        to_timestamp((${from}::float8 + n * ${step}::float8) / 1000)
      FROM generate_series(${start}::bigint, ${end}::bigint) AS n`
  }
  await sql`
    UPDATE wallets AS w SET balance = balance - s.cost, used = used + s.cost, version = version + 1
    FROM (
      SELECT 'acc_' || (n % ${accounts} + 1) AS account_id, ${COST} * count(*) AS cost
      FROM generate_series(0, ${count - 1}::bigint) AS n GROUP BY 1
    ) AS s WHERE w.account_id = s.account_id`
}
