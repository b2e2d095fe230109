/** What calls have, for suggestions of filters. */
import type { ClickHouseClient } from '@clickhouse/client'
import { CALL_VALUES_PER_FIELD, type InstallationFilter } from '../../../schemas/call-log/page-query.ts'
import { readRows } from '../connection.ts'
import { selectCalls } from '../pages/statement.ts'
import { LIVE_NAMES } from '../tables/names.ts'

/** What calls have, and how many have it. */
interface CountedValue {
  readonly value: string
  readonly calls: number
}

/** Each the most frequent first. */
export interface CallValues {
  readonly statuses: CountedValue[]
  readonly models: CountedValue[]
  readonly keys: { readonly id: string; readonly name: string; readonly calls: number }[]
  readonly error_codes: CountedValue[]
  readonly session_ids: CountedValue[]
}

interface Counted<Item = string> {
  readonly item: Item
  readonly count: string | number
}

interface Row {
  readonly statuses: readonly Counted[]
  readonly models: readonly Counted[]
  readonly keys: readonly Counted<readonly [id: string, name: string]>[]
  readonly error_codes: readonly Counted[]
  readonly session_ids: readonly Counted[]
}

/** Counts that are exact up to this many times as many values as are returned. */
const LOAD_FACTOR = 20
const TOP = `(${CALL_VALUES_PER_FIELD}, ${LOAD_FACTOR}, 'counts')`

const readCounted = (counted: readonly Counted[] = []): CountedValue[] =>
  counted.map(({ item, count }) => ({ value: item, calls: Number(count) }))

export async function listCallValues(
  client: ClickHouseClient,
  filter: InstallationFilter,
  signal: AbortSignal,
): Promise<CallValues> {
  const { where, parameters } = selectCalls(filter)
  const [row] = await readRows<Row>(client, {
    query: `
      SELECT topKWeighted${TOP}(toString(status), call_count) AS statuses,
        topKWeightedIf${TOP}(toString(model), call_count, model != '') AS models,
        topKWeighted${TOP}((toString(key_id), toString(key_name)), call_count) AS keys,
        topKWeightedIf${TOP}(toString(error_code), call_count, error_code != '') AS error_codes,
        topKWeightedIf${TOP}(session_id, call_count, session_id != '') AS session_ids
      FROM ${LIVE_NAMES.calls} ${where}`,
    query_params: parameters,
    abort_signal: signal,
  })
  return {
    statuses: readCounted(row?.statuses),
    models: readCounted(row?.models),
    keys: (row?.keys ?? []).map(({ item: [id, name], count }) => ({ id, name, calls: Number(count) })),
    error_codes: readCounted(row?.error_codes),
    session_ids: readCounted(row?.session_ids),
  }
}
