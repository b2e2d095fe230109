/** Rows into the table of calls, exactly once for each range. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { Settlement } from '../../schemas/event.ts'
import { printCredits } from '../../schemas/money.ts'
import { toClickHouseInstant } from './instant.ts'

/** One booked call, as PostgreSQL has it: `cost` and `estimate` count 1e-8 credit, instants are epoch milliseconds. */
export interface BookedCall extends Settlement {
  /** Rises in the order of booking. */
  readonly id: bigint
  readonly key_name: string
  readonly key_prefix: string
}

/** The rows of a range: all of them, and the same ones whenever the range is sent. */
export interface CallRange {
  /** The same for every try at the same range, and for no other range. */
  readonly token: string
  readonly calls: readonly BookedCall[]
}

const toRow = (call: BookedCall) => ({
  id: call.id.toString(),
  account_id: call.account_id,
  created_at: toClickHouseInstant(call.created_at),
  submitted_at: toClickHouseInstant(call.submitted_at),
  key_id: call.key_id,
  key_name: call.key_name,
  key_prefix: call.key_prefix,
  model: call.model,
  protocol: call.protocol,
  stream: call.stream,
  status: call.status,
  error_code: call.error_code ?? '',
  error_message: call.error_message ?? '',
  input_tokens: call.input_tokens,
  output_tokens: call.output_tokens,
  cached_tokens: call.cached_tokens,
  cache_write_tokens: call.cache_write_tokens,
  reasoning_tokens: call.reasoning_tokens,
  server_tool_calls: call.server_tool_calls,
  unit_count: call.unit_count ?? '',
  unit_type: call.unit_type ?? '',
  cost: printCredits(BigInt(call.cost)),
  estimate: printCredits(BigInt(call.estimate)),
  usage_source: call.usage_source,
  latency_ms: call.latency_ms,
  ttfb_ms: call.ttfb_ms,
  channel_id: call.channel_id ?? '',
  request_id: call.request_id,
  attempts_count: call.attempts_count,
  attempts: call.attempts.length === 0 ? '' : JSON.stringify(call.attempts),
})

type Row = ReturnType<typeof toRow>

/** The table's partition of a row: `2026-01`. */
const monthOf = (row: Row): string => row.created_at.slice(0, 7)

/**
 * Inserts a range. Each month goes in an insert of its own under a token made from range and month: one insert is
 * then one part in one partition, wholly there or not at all, and what is sent again is known and left out.
 */
export async function insertCalls(client: ClickHouseClient, range: CallRange): Promise<void> {
  const months = Map.groupBy(range.calls.map(toRow), monthOf)
  for (const [month, values] of months) {
    await client.insert({
      table: 'calls',
      values,
      format: 'JSONEachRow',
      clickhouse_settings: {
        insert_deduplicate: 1,
        insert_deduplication_token: `${range.token}:${month}`,
        async_insert: 0,
        wait_end_of_query: 1,
      },
    })
  }
}
