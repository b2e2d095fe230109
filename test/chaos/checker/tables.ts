/** The engines' tables as the checker reads them: by SQL alone. Amounts count 1e-8 credit. */
import postgres from 'postgres'

export interface Row {
  readonly request_id: string
  readonly account_id: string
  readonly key_id: string
  readonly model: string
  readonly status: string
  readonly error_code: string | null
  readonly task_id: string | null
  readonly cost: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly attempts: number
  /** Epoch milliseconds. */
  readonly submitted_at: number
  readonly created_at: number
}

export interface Task {
  readonly id: string
  readonly account_id: string
  readonly request_id: string
  readonly model: string
  readonly state: string
  /** The client's name for it, in the prompt. */
  readonly intent: string | null
  readonly cost: number | null
  readonly ended_at: number | null
}

export interface Tables {
  readonly rows: readonly Row[]
  /** Of ClickHouse, as `comparable` prints those of PostgreSQL. */
  readonly logged: readonly string[]
  readonly tasks: readonly Task[]
  readonly wallets: readonly { account_id: string; balance: number; held: number; used: number }[]
  /** The sum of each account's entries. */
  readonly ledger: readonly { account_id: string; balance: number; charged: number }[]
  readonly entries: readonly { ref: string; amount: number }[]
  readonly grants: readonly { key_id: string; spend_cap: number; spent: number }[]
  readonly openHolds: readonly string[]
  /** Reservations of calls that are booked. */
  readonly leftReservations: readonly string[]
  readonly refusedSettlements: readonly string[]
  /** Journals with something in them that is not booked. */
  readonly unbookedJournals: readonly string[]
}

const COMPARED = ['request_id', 'account_id', 'key_id', 'model', 'status', 'input_tokens', 'output_tokens']

export const comparable = (row: Row): string =>
  [...COMPARED.map((name) => row[name as keyof Row]), row.cost].join(' ')

/** Numbers are below 2^53: sums of a run are. */
const BIGINT = { to: 20, from: [20, 1700], serialize: String, parse: Number }

export async function readTables(databaseUrl: string, clickhouseUrl: string): Promise<Tables> {
  const sql = postgres(databaseUrl, { max: 1, types: { bigint: BIGINT }, onnotice: () => {} })
  try {
    const names = (rows: readonly { name: string }[]) => rows.map(({ name }) => name)
    return {
      rows: await sql<Row[]>`
        SELECT request_id, account_id, key_id, model, status, error_code, task_id, cost, input_tokens, output_tokens,
          coalesce(attempts_count, 0) AS attempts, submitted_at, created_at FROM usage_rows ORDER BY id`,
      logged: await readLogged(clickhouseUrl),
      tasks: await sql<Task[]>`
        SELECT id, account_id, request_id, model, state, substring(job::text FROM 'image-\\d+') AS intent, cost, ended_at
        FROM tasks ORDER BY id`,
      wallets: await sql<{ account_id: string; balance: number; held: number; used: number }[]>`
        SELECT account_id, balance, held, used FROM wallets`,
      ledger: await sql<{ account_id: string; balance: number; charged: number }[]>`
        SELECT account_id, sum(amount) AS balance,
          coalesce(-sum(amount) FILTER (WHERE kind NOT IN ('trial', 'topup', 'adjustment')), 0) AS charged
        FROM ledger_entries GROUP BY account_id`,
      entries: await sql<{ ref: string; amount: number }[]>`
        SELECT ref, sum(amount) AS amount FROM ledger_entries WHERE ref IS NOT NULL GROUP BY ref`,
      grants: await sql<{ key_id: string; spend_cap: number; spent: number }[]>`
        SELECT key_id, spend_cap, spent FROM grants WHERE spend_cap IS NOT NULL`,
      openHolds: names(await sql`SELECT ref AS name FROM holds WHERE state = 'open'`),
      leftReservations: names(
        await sql`
        SELECT ref AS name FROM (SELECT ref FROM cap_reservations UNION SELECT ref FROM wallet_reservations) r
        WHERE EXISTS (SELECT FROM usage_rows u WHERE u.request_id = r.ref)`,
      ),
      refusedSettlements: names(await sql`SELECT request_id AS name FROM settlements_refused`),
      unbookedJournals: names(
        await sql`
        SELECT directory AS name FROM journals WHERE outcome IS NULL AND (open_calls > 0 OR unbooked_calls > 0)`,
      ),
    }
  } finally {
    await sql.end()
  }
}

async function readLogged(clickhouseUrl: string): Promise<string[]> {
  const url = new URL(clickhouseUrl)
  const credentials = Buffer.from(`${url.username}:${decodeURIComponent(url.password)}`).toString('base64')
  const columns = [...COMPARED, 'toString(toInt128(cost * 100000000))'].map((name) => `toString(${name})`)
  const query = `SELECT concat(${columns.join(`, ' ', `)}) AS line FROM calls FORMAT TSVRaw`
  const database = url.pathname.slice(1)
  const target = `${url.origin}/${database === '' ? '' : `?database=${database}`}`
  const response = await fetch(target, {
    method: 'POST',
    body: query,
    headers: { authorization: `Basic ${credentials}` },
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`ClickHouse answered ${response.status}: ${text}`)
  return text.split('\n').filter((line) => line !== '')
}
