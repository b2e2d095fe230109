/** What the call log says was charged, for comparison with the ledger. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { Credits } from '../../schemas/money.ts'

/** One account's share of the log. */
export interface LogTotal {
  readonly accountId: string
  readonly rows: bigint
  readonly cost: Credits
}

export interface LogTotalsQuery {
  /** Default: every account. */
  readonly accountIds?: readonly string[]
  /** Only rows with this id and below, so that a comparison leaves out what is not copied yet. */
  readonly throughId?: bigint
}

/** Parameters travel in the address of the request, which is bounded. */
const ACCOUNTS_PER_QUERY = 100

interface Row {
  readonly account_id: string
  readonly rows: string
  /** Counts 1e-8 credit. */
  readonly cost_units: string
}

async function totalsOf(
  client: ClickHouseClient,
  accountIds: readonly string[] | null,
  throughId: bigint | undefined,
): Promise<LogTotal[]> {
  const conditions = [
    ...(accountIds === null ? [] : ['account_id IN {accountIds:Array(String)}']),
    ...(throughId === undefined ? [] : ['id <= {throughId:UInt64}']),
  ]
  const answer = await client.query({
    query: `
      SELECT account_id, count() AS rows, toString(toInt128(sum(cost) * 100000000)) AS cost_units FROM calls
      ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
      GROUP BY account_id`,
    query_params: {
      ...(accountIds !== null && { accountIds }),
      ...(throughId !== undefined && { throughId: throughId.toString() }),
    },
    format: 'JSONEachRow',
  })
  const rows = await answer.json<Row>()
  return rows.map((row) => ({
    accountId: row.account_id,
    rows: BigInt(row.rows),
    cost: BigInt(row.cost_units),
  }))
}

/** An account without a row is absent. */
export async function logTotals(
  client: ClickHouseClient,
  { accountIds, throughId }: LogTotalsQuery = {},
): Promise<LogTotal[]> {
  if (accountIds === undefined) return totalsOf(client, null, throughId)
  const totals: LogTotal[] = []
  for (let at = 0; at < accountIds.length; at += ACCOUNTS_PER_QUERY) {
    const some = accountIds.slice(at, at + ACCOUNTS_PER_QUERY)
    totals.push(...(await totalsOf(client, some, throughId)))
  }
  return totals
}
