/** What calls have, for suggestions of filters. */
import type { ClickHouseClient } from '@clickhouse/client'
import { CALL_VALUES_PER_FIELD, type InstallationFilter } from '../../../schemas/call-log/page-query.ts'
import { readRows } from '../connection.ts'
import { selectCalls } from '../pages/statement.ts'
import { LIVE_NAMES } from '../tables/names.ts'

/** Each the most frequent first. */
export interface CallValues {
  readonly models: string[]
  readonly keys: { readonly id: string; readonly name: string }[]
  readonly error_codes: string[]
  readonly session_ids: string[]
}

interface Row extends Omit<CallValues, 'keys'> {
  readonly keys: readonly (readonly [id: string, name: string])[]
}

export async function listCallValues(
  client: ClickHouseClient,
  filter: InstallationFilter,
  signal: AbortSignal,
): Promise<CallValues> {
  const { where, parameters } = selectCalls(filter)
  const [row] = await readRows<Row>(client, {
    query: `
      SELECT topKIf(${CALL_VALUES_PER_FIELD})(model, model != '') AS models,
        topK(${CALL_VALUES_PER_FIELD})((toString(key_id), toString(key_name))) AS keys,
        topKIf(${CALL_VALUES_PER_FIELD})(error_code, error_code != '') AS error_codes,
        topKIf(${CALL_VALUES_PER_FIELD})(session_id, session_id != '') AS session_ids
      FROM ${LIVE_NAMES.calls} ${where}`,
    query_params: parameters,
    abort_signal: signal,
  })
  const { keys = [], models = [], error_codes = [], session_ids = [] } = row ?? {}
  return { models, keys: keys.map(([id, name]) => ({ id, name })), error_codes, session_ids }
}
