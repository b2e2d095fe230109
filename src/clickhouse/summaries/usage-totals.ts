/** Sums over one account's calls in a window of time, computed on demand. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { Credits } from '../../../schemas/money.ts'
import { readRows } from '../connection.ts'
import { toClickHouseInstant } from '../instant.ts'
import { type AccountWindow, type CallSums, type SumsRow, toSums } from './summed-rows.ts'

/** Cost of one model on one UTC day. */
export interface DayCost {
  /** `2026-01-31`. */
  readonly day: string
  readonly model: string
  readonly cost: Credits
}

const IN_WINDOW = `
  account_id = {accountId:String} AND ({isOfAllKeys:Bool} OR key_id IN {keyIds:Array(String)})
  AND ({sessionId:String} = '' OR session_id = {sessionId:String}) AND created_at >= {from:DateTime64(3, 'UTC')} AND created_at < {to:DateTime64(3, 'UTC')}`
/** Counts 1e-8 credit. */
const COST_UNITS = 'toString(toInt128(sum(cost) * 100000000))'

/** The calls to sum up. */
export interface UsageWindow extends AccountWindow {
  /** The session that the client named; absent: all calls. */
  readonly sessionId?: string
}

const toParameters = ({ accountId, keyIds, sessionId = '', from, to }: UsageWindow) => ({
  accountId,
  isOfAllKeys: keyIds === null,
  keyIds: keyIds ?? [],
  sessionId,
  from: toClickHouseInstant(from),
  to: toClickHouseInstant(to),
})

export async function sumUsage(
  client: ClickHouseClient,
  window: UsageWindow,
  signal: AbortSignal,
): Promise<CallSums> {
  const [row] = await readRows<SumsRow>(client, {
    query: `
      SELECT sum(call_count) AS calls, ${COST_UNITS} AS cost_units,
             sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached
      FROM calls WHERE ${IN_WINDOW}`,
    query_params: toParameters(window),
    abort_signal: signal,
  })
  return toSums(row!)
}

/** Returns the costs in the order of the days, then of the models' names, without zeros. */
export async function sumCostByDay(
  client: ClickHouseClient,
  window: AccountWindow,
  signal: AbortSignal,
): Promise<DayCost[]> {
  const rows = await readRows<{ day: string; model: string; cost_units: string }>(client, {
    query: `
      SELECT toString(toDate(created_at, 'UTC')) AS day, model, ${COST_UNITS} AS cost_units
      FROM calls WHERE ${IN_WINDOW} AND cost != 0
      GROUP BY day, model ORDER BY day, model`,
    query_params: toParameters(window),
    abort_signal: signal,
  })
  return rows.map(({ day, model, cost_units }) => ({ day, model, cost: BigInt(cost_units) }))
}
