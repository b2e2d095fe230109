/** After any chaos: each admitted call has exactly one row, and all books agree. */
import type { Test } from 'tap'
import { printCredits } from '../../../schemas/money.ts'
import { connect as connectToLog } from '../../../src/clickhouse/connection.ts'
import { connect } from '../../../src/postgres/connection.ts'
import { verifyWallets } from '../../support/connections.ts'
import { bookedByDay, loggedByDay } from '../../support/rollup.ts'
import { type TestService, until } from '../../support/service.ts'
import { gauge } from './gauge.ts'
import type { SeenCall } from './load.ts'

const MAX_SHOWN = 10

export interface Caller {
  readonly accountId: string
  readonly key: string
}

interface StoredRow {
  readonly request_id: string
  readonly account_id: string
  readonly status: string
  readonly cost: string
  readonly input_tokens: string
  readonly output_tokens: string
}

interface Upstream {
  readonly request_id: string
  readonly state: 'running' | 'completed' | 'client_closed' | 'faulted'
  readonly output_tokens: number
}

const COLUMNS = 'request_id, account_id, status, input_tokens, output_tokens'

/** Every call that reached the provider. */
async function upstreamCalls(service: TestService): Promise<Upstream[]> {
  return (await (await fetch(`${service.engines.simulatorUrl}/simulator/calls`)).json()) as Upstream[]
}

/** The rows as each engine has them, once nothing more is on its way. */
async function readRows(service: TestService, awaited: ReadonlySet<string>) {
  const { databaseUrl, clickhouseUrl } = service.engines
  const sql = connect(databaseUrl, { max: 1, name: 'audit' })
  const log = connectToLog(clickhouseUrl)
  try {
    let missing: string[] = []
    await until('all is booked and copied', async () => {
      const [mark] = await sql<[{ upto: bigint; last: bigint; found: string[] }]>`
          SELECT copied_upto AS upto, (SELECT coalesce(max(id), 0) FROM usage_rows) AS last,
            (SELECT coalesce(array_agg(request_id), '{}') FROM usage_rows) AS found FROM usage_copy`
      const found = new Set(mark.found)
      missing = [...awaited].filter((id) => !found.has(id))
      return (
        missing.length === 0 &&
        mark.upto === mark.last &&
        (await gauge(service, 'tollgate_journal_unbooked')) === 0
      )
    }).catch((error: Error) => {
      throw new Error(`${error.message}; ${missing.length} without a row: ${missing.slice(0, MAX_SHOWN)}`)
    })
    const booked = await sql<StoredRow[]>`
      SELECT ${sql.unsafe(COLUMNS)}, cost::text FROM usage_rows ORDER BY request_id`
    const answer = await log.query({
      query: `SELECT ${COLUMNS}, toString(toInt128(cost * 100000000)) AS cost FROM calls ORDER BY request_id`,
      format: 'JSONEachRow',
    })
    const [holds] = await sql<[{ open: bigint }]>`SELECT count(*) AS open FROM holds WHERE state = 'open'`
    const [refused] = await sql<[{ count: bigint }]>`SELECT count(*) FROM settlements_refused`
    const ledger = await sql<{ account_id: string; balance: string }[]>`
      SELECT account_id, sum(amount)::text AS balance FROM ledger_entries GROUP BY account_id`
    return {
      booked: booked.map(plain),
      logged: (await answer.json<StoredRow>()).map(plain),
      bookedByDay: await bookedByDay(sql),
      loggedByDay: await loggedByDay(log),
      openHolds: Number(holds.open),
      refused: Number(refused.count),
      ledger: new Map(ledger.map((row) => [row.account_id, BigInt(row.balance)])),
    }
  } finally {
    await sql.end()
    await log.close()
  }
}

const plain = ({ request_id, account_id, status, cost, input_tokens, output_tokens }: StoredRow) =>
  [request_id, account_id, status, cost, input_tokens, output_tokens].map(String).join(' ')

/**
 * The service runs, the load is over.
 * @param seen what clients saw; a call with a 200 was admitted
 */
export async function audit(
  t: Test,
  service: TestService,
  callers: readonly Caller[],
  seen: readonly SeenCall[],
): Promise<void> {
  const upstream = await upstreamCalls(service)
  const reached = new Set(upstream.map(({ request_id }) => request_id))
  const answered = seen.filter(({ status }) => status === 200).map(({ requestId }) => requestId ?? 'no id')
  const { booked, logged, openHolds, refused, ledger, ...sums } = await readRows(
    service,
    new Set([...reached, ...answered]),
  )
  const ids = booked.map((row) => row.split(' ', 1)[0])
  t.equal(new Set(ids).size, ids.length, `no call has two rows, of ${ids.length}`)
  t.same(first(answered.filter((id) => !reached.has(id))), [], 'every answer came from upstream')
  // A client that left owes the prompt from the moment on in which the call was handed to the network.
  const charged = booked.filter((row) => {
    const [id = '', , status, cost, , output] = row.split(' ')
    return !reached.has(id) && cost !== '0' && (status !== 'interrupted' || output !== '0')
  })
  t.same(first(charged), [], 'no call that never reached the provider costs more than its prompt')
  const onlyBooked = booked.filter((row) => !logged.includes(row))
  const onlyLogged = logged.filter((row) => !booked.includes(row))
  t.same(first(onlyBooked), [], 'the call log has every row')
  t.same(first(onlyLogged), [], 'and no other')
  t.equal(logged.length, booked.length, 'and each once')
  t.same(sums.loggedByDay, sums.bookedByDay, 'and its sums by day are those of the rows')
  t.equal(openHolds, 0, 'no hold is open')
  t.equal(refused, 0, 'no settlement was refused')
  await auditWallets(t, service, callers, ledger)
}

async function auditWallets(
  t: Test,
  service: TestService,
  callers: readonly Caller[],
  ledger: ReadonlyMap<string, bigint>,
): Promise<void> {
  const report = await verifyWallets(service)
  t.same(report.differences.slice(0, MAX_SHOWN), [], 'the audit of the wallets finds no difference')
  t.ok(report.ok)
  for (const { key, accountId } of callers) {
    const expected = printCredits(ledger.get(accountId) ?? 0n)
    const shown = async () => {
      const response = await service.get(key, '/v1/key/balance')
      return ((await response.json()) as { remaining: string }).remaining
    }
    await until(`${accountId} is shown ${expected}`, async () => (await shown()) === expected).catch(
      async () => {
        t.equal(await shown(), expected, 'the balance that the key is shown is the sum of the ledger')
      },
    )
  }
}

const first = <T>(all: readonly T[]): T[] => all.slice(0, MAX_SHOWN)
