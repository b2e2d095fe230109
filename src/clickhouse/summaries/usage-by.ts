/** Sums the calls of one account or of all in a window of time, by one column. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { UsageGroup } from '../../../schemas/management/calls/usage.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { LogWindow } from '../../core/call-log/window.ts'
import { readRows } from '../connection.ts'
import { type CallSums, SUMS, type SumColumn, type SumsRow, selectSummedRows, toSums } from './summed-rows.ts'

export interface UsageByQuery extends LogWindow {
  /** Null: all accounts. */
  readonly accountId: string | null
  readonly by: UsageGroup
  /** In which days begin; default: UTC. */
  readonly timezone?: string
}

/** Columns that are not grouped by are null; a key comes with its account. Days are such as `2026-01-31`. */
export interface UsageSums extends CallSums {
  readonly accountId: string | null
  readonly keyId: string | null
  readonly model: string | null
  readonly day: string | null
  readonly channelId: string | null
}

/** Sums of the calls with a known upstream cost. */
export interface CostSums extends UsageSums {
  readonly upstreamCost: Credits
}

const COLUMNS: Readonly<Record<UsageGroup, readonly SumColumn[]>> = {
  account: ['account_id'],
  model: ['model'],
  day: ['day'],
  key: ['account_id', 'key_id'],
  channel: ['channel_id'],
}

type Row = SumsRow & { readonly upstream_units?: string } & { readonly [Column in SumColumn]?: string }

/** Days in their order; all else by cost, the dearest first, then by name. */
export const sumUsageByGroup = (
  client: ClickHouseClient,
  query: UsageByQuery & { readonly by: Exclude<UsageGroup, 'channel'> },
  signal: AbortSignal,
): Promise<UsageSums[]> => sumRows(client, { ...query, ofCosts: false }, signal)

/** In the same order, only of the calls with a known upstream cost. */
export const sumCostsByGroup = (
  client: ClickHouseClient,
  query: UsageByQuery,
  signal: AbortSignal,
): Promise<CostSums[]> => sumRows(client, { ...query, ofCosts: true }, signal)

async function sumRows(
  client: ClickHouseClient,
  { by, ...query }: UsageByQuery & { readonly ofCosts: boolean },
  signal: AbortSignal,
): Promise<CostSums[]> {
  const columns = COLUMNS[by]
  const rows = selectSummedRows({ ...query, keyIds: null, columns })
  if (rows === null) return []
  const found = await readRows<Row>(client, {
    query: `
      SELECT ${columns.map((column) => `toString(${column}) AS ${column}`).join(', ')}, ${SUMS}
        ${query.ofCosts ? ', toString(toInt128(sum(upstream_cost) * 100000000)) AS upstream_units' : ''}
      FROM (${rows.query})
      GROUP BY ${columns.join(', ')}
      ORDER BY ${by === 'day' ? 'day' : `sum(cost) DESC, ${columns.join(', ')}`}`,
    query_params: rows.parameters,
    abort_signal: signal,
  })
  return found.map((row) => ({
    accountId: row.account_id ?? null,
    keyId: row.key_id ?? null,
    model: row.model ?? null,
    day: row.day ?? null,
    channelId: row.channel_id ?? null,
    upstreamCost: BigInt(row.upstream_units ?? 0),
    ...toSums(row),
  }))
}
