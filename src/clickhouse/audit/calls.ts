/** The call log's calls, summed for an audit: by account and month, by ranges of ids, and one by one. */
import type { ClickHouseClient } from '@clickhouse/client'
import type {
  AuditedCall,
  BucketSum,
  CallSum,
  ComparedCalls,
  MonthCalls,
  MonthSum,
} from '../../../schemas/call-log/audit.ts'
import { readRows } from '../connection.ts'
import { isInMonth, listMonths } from '../tables/months.ts'

const IS_COMPARED = `id >= {from:UInt64} AND id <= {upto:UInt64}
  AND submitted_at >= fromUnixTimestamp64Milli({admittedSince:Int64}, 'UTC')`

const toParameters = ({ from, upto, admittedSince }: ComparedCalls) => ({
  from: from.toString(),
  upto: upto.toString(),
  admittedSince,
})

const SUMS = `
  toString(count()) AS rows, toString(sum(toInt128(id))) AS ids, toString(toInt128(sum(cost) * 100000000)) AS cost_units`

interface SumRow {
  readonly rows: string
  readonly ids: string
  /** Counts 1e-8 credit. */
  readonly cost_units: string
}

const toSum = ({ rows, ids, cost_units }: SumRow): CallSum => ({
  rows: BigInt(rows),
  ids: BigInt(ids),
  cost: BigInt(cost_units),
})

/** Returns the sums of each month. One statement a month: none takes long, however long the history. */
export async function sumMonths(client: ClickHouseClient, compared: ComparedCalls): Promise<MonthSum[]> {
  const sums: MonthSum[] = []
  for (const month of await listMonths(client, [{ table: 'calls', at: 'created_at' }])) {
    const rows = await readRows<SumRow & { account_id: string }>(client, {
      query: `
        SELECT account_id, ${SUMS} FROM calls
        WHERE ${isInMonth('created_at')} AND ${IS_COMPARED} GROUP BY account_id`,
      query_params: { month, ...toParameters(compared) },
    })
    for (const { account_id, ...sum } of rows) sums.push({ accountId: account_id, month, ...toSum(sum) })
  }
  return sums
}

/** Returns the sums of the calls of one account and month by their id divided by `bucketIds`. */
export async function bucketSums(
  client: ClickHouseClient,
  { accountId, month }: MonthCalls,
  compared: ComparedCalls,
  bucketIds: number,
): Promise<BucketSum[]> {
  const rows = await readRows<SumRow & { bucket: string }>(client, {
    query: `
      SELECT toString(intDiv(id, {bucketIds:UInt64})) AS bucket, ${SUMS} FROM calls
      WHERE account_id = {accountId:String} AND ${isInMonth('created_at')} AND ${IS_COMPARED}
      GROUP BY bucket`,
    query_params: { accountId, month, ...toParameters(compared), bucketIds },
  })
  return rows.map(({ bucket, ...sum }) => ({ bucket: BigInt(bucket), ...toSum(sum) }))
}

/** Returns the calls of one account and month; a duplicate is returned twice. */
export async function listCallsBetween(
  client: ClickHouseClient,
  { accountId, month }: MonthCalls,
  compared: ComparedCalls,
): Promise<AuditedCall[]> {
  const rows = await readRows<{ call_id: string; request_id: string; cost_units: string }>(client, {
    query: `
      SELECT toString(id) AS call_id, request_id, toString(toInt128(cost * 100000000)) AS cost_units FROM calls
      WHERE account_id = {accountId:String} AND ${isInMonth('created_at')} AND ${IS_COMPARED}
      ORDER BY id`,
    query_params: { accountId, month, ...toParameters(compared) },
  })
  return rows.map(({ call_id, request_id, cost_units }) => ({
    id: BigInt(call_id),
    requestId: request_id,
    cost: BigInt(cost_units),
  }))
}
