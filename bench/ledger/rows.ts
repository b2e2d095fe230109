/** Rows of a year of calls, written straight into the tables: booking them would measure something else. */
import type { Queryable, Sql } from '../../src/postgres/connection.ts'

const COST = 700n
const CREDIT = 100_000_000_000_000n
const CALLS_PER_ACCOUNT = 1_000
const CHUNK_ROWS = 500_000
const DAY_MS = 86_400_000
/** For indexes of the year. */
const INDEX_MEMORY = '1GB'

/** Calls spread evenly over a time; number `first` and those after it. */
interface Calls {
  readonly first: number
  readonly count: number
  /** Epoch milliseconds. */
  readonly from: number
  readonly to: number
}

export const listAccounts = (calls: number): number => Math.max(1, Math.ceil(calls / CALLS_PER_ACCOUNT))

/**
 * Fills empty tables with the calls of the year before an instant and their charges, of accounts with credits. What
 * `checkpoint` throws ends it.
 */
export async function addYear(sql: Sql, count: number, now: number, checkpoint: () => void): Promise<void> {
  const calls = { first: 0, count, from: now - 365 * DAY_MS, to: now }
  const accounts = listAccounts(count)
  await sql`INSERT INTO accounts (id, name, kind) SELECT 'acc_' || n, 'bench', 'personal' FROM generate_series(1, ${accounts}) AS n`
  await sql`INSERT INTO wallets (account_id, balance) SELECT 'acc_' || n, ${CREDIT} FROM generate_series(1, ${accounts}) AS n`
  await Promise.all([
    filled(sql, 'usage_rows', (transaction) => addUsage(transaction, accounts, calls, checkpoint)),
    filled(sql, 'ledger_entries', async (transaction) => {
      await transaction`
        INSERT INTO ledger_entries (account_id, kind, amount, created_at)
        SELECT 'acc_' || n, 'trial', ${CREDIT}, now() - interval '366 days' FROM generate_series(1, ${accounts}) AS n`
      await addCharges(transaction, accounts, calls, checkpoint)
    }),
  ])
  await chargeWallets(sql, accounts, calls)
}

/** Adds the calls with their charges, and charges the wallets. */
export async function addCalls(
  sql: Sql,
  accounts: number,
  calls: Calls,
  checkpoint: () => void,
): Promise<void> {
  await addUsage(sql, accounts, calls, checkpoint)
  await addCharges(sql, accounts, calls, checkpoint)
  await chargeWallets(sql, accounts, calls)
}

/** Returns the number of calls that were charged to the wallets. */
export async function chargedCalls(sql: Sql): Promise<number> {
  const [{ calls }] = await sql<
    [{ calls: bigint }]
  >`SELECT (coalesce(sum(used), 0) / ${COST})::bigint AS calls FROM wallets`
  return Number(calls)
}

/**
 * Fills an empty table in one transaction, which writes no log for one that it truncated, and makes its indexes when the
 * rows are there.
 */
async function filled(
  sql: Sql,
  table: string,
  add: (transaction: Queryable) => Promise<void>,
): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction`SELECT set_config('maintenance_work_mem', ${INDEX_MEMORY}, true)`
    await transaction`TRUNCATE ${sql(table)}`
    const indexes = await transaction<{ drop: string; make: string }[]>`
      SELECT CASE WHEN c.oid IS NULL THEN format('DROP INDEX %I', i.relname)
          ELSE format('ALTER TABLE %I DROP CONSTRAINT %I', ${table}::text, c.conname) END AS drop,
        CASE WHEN c.oid IS NULL THEN pg_get_indexdef(x.indexrelid)
          ELSE format('ALTER TABLE %I ADD CONSTRAINT %I %s', ${table}::text, c.conname, pg_get_constraintdef(c.oid)) END AS make
      FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid LEFT JOIN pg_constraint AS c ON c.conindid = x.indexrelid
      WHERE x.indrelid = ${table}::regclass`
    for (const { drop } of indexes) await transaction.unsafe(drop)
    await add(transaction)
    for (const { make } of indexes) await transaction.unsafe(make)
  })
  await sql`VACUUM (ANALYZE) ${sql(table)}`
}

/** Adds rows in pieces: the server keeps the numbers of a piece in memory. */
async function inPieces(
  count: number,
  checkpoint: () => void,
  add: (start: number, end: number) => PromiseLike<unknown>,
): Promise<void> {
  for (let at = 0; at < count; at += CHUNK_ROWS) {
    checkpoint()
    await add(at, Math.min(count, at + CHUNK_ROWS) - 1)
  }
}

const addUsage = (
  sql: Queryable,
  accounts: number,
  { first, count, from, to }: Calls,
  checkpoint: () => void,
): Promise<void> =>
  inPieces(
    count,
    checkpoint,
    (start, end) => sql`
      INSERT INTO usage_rows (
        id, submitted_at, created_at, booked_at, latency_ms, ttfb_ms, input_tokens, output_tokens, cached_tokens,
        cache_write_tokens, reasoning_tokens, server_tool_calls, cost, estimate, attempts_count, stream, request_id,
        account_id, key_id, model, protocol, status, usage_source, channel_id, detail)
      SELECT (ms * 1000)::bigint, ms, ms + 1200, ms + 2000, 1200, 150, 1200, 340, 100, 0, 12, 0, ${COST}, 96000, 1, true,
        'req_' || lpad((${first}::bigint + n)::text, 26, '0'), 'acc_' || (n % ${accounts} + 1),
        'key_' || (n % ${accounts} + 1), 'sonata-large', 'chat-completions', 'success', 'upstream', 'primary',
        '{"prompt_bytes":2048,"first_token_us":150000,"before_upstream_us":300}'
      FROM (
        SELECT n, (${from}::float8 + n * ${(to - from) / count}::float8)::bigint AS ms
        FROM generate_series(${start}::bigint, ${end}::bigint) AS n
      ) AS calls`,
  )

const addCharges = (
  sql: Queryable,
  accounts: number,
  { first, count, from, to }: Calls,
  checkpoint: () => void,
): Promise<void> =>
  inPieces(
    count,
    checkpoint,
    (start, end) => sql`
      INSERT INTO ledger_entries (account_id, kind, amount, ref, created_at)
      SELECT 'acc_' || (n % ${accounts} + 1), 'charge', ${-COST}, 'req_' || lpad((${first}::bigint + n)::text, 26, '0'),
        to_timestamp((${from}::float8 + n * ${(to - from) / count}::float8) / 1000)
      FROM generate_series(${start}::bigint, ${end}::bigint) AS n`,
  )

const chargeWallets = (sql: Queryable, accounts: number, { count }: Calls) => sql`
  UPDATE wallets AS w SET balance = balance - s.cost, used = used + s.cost, version = version + 1
  FROM (
    SELECT 'acc_' || (n % ${accounts} + 1) AS account_id, ${COST} * count(*) AS cost
    FROM generate_series(0, ${count - 1}::bigint) AS n GROUP BY 1
  ) AS s WHERE w.account_id = s.account_id`
