/** One call of an account by its number, with all that is known of it. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import type { Settlement } from '../../../schemas/events/event.ts'
import { readRows } from '../connection.ts'
import { PAGE_COLUMNS, type PageRow, toLogRow } from './call-row.ts'

export interface CallQuery {
  readonly accountId: string
  /** null: a call of any key. */
  readonly keyId: string | null
  readonly id: number
}

interface DetailRow extends PageRow {
  readonly protocol: string
  readonly stream: boolean
  readonly usage_source: Settlement['usage_source']
  readonly ttfb_ms: string | null
  readonly estimate_text: string
  readonly channel_id: string
  readonly upstream_cost_text: string | null
  readonly detail: string
}

/** Returns the call; null when the account, or the key, has no such call. */
export async function findCall(
  client: ClickHouseClient,
  { accountId, keyId, id }: CallQuery,
  signal: AbortSignal,
): Promise<CallWithDetail | null> {
  const [row] = await readRows<DetailRow>(client, {
    query: `
      SELECT ${PAGE_COLUMNS},
        protocol, stream, usage_source, ttfb_ms, toString(estimate) AS estimate_text, channel_id,
        toString(upstream_cost) AS upstream_cost_text, detail
      FROM calls
      PREWHERE id = {id:UInt64}
      WHERE account_id = {accountId:String}
        ${keyId === null ? '' : 'AND key_id = {keyId:String}'}
      LIMIT 1`,
    query_params: { accountId, id, ...(keyId !== null && { keyId }) },
    abort_signal: signal,
  })
  if (row === undefined) return null
  return {
    ...toLogRow(row),
    protocol: row.protocol,
    stream: row.stream,
    usageSource: row.usage_source,
    ttfbMs: row.ttfb_ms === null ? null : Number(row.ttfb_ms),
    estimate: row.estimate_text,
    channelId: row.channel_id || null,
    upstreamCost: row.upstream_cost_text,
    detail: row.detail,
  }
}
