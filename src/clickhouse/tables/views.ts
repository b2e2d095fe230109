/** The views that pass each insert of calls on: to the sums by day, with keys and without, and to the failed calls. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { LogNames, RollupNames } from './names.ts'

/** A query for an error code, or for states without `success`, reads these rows alone. */
const IS_FAILED = `status != 'success' OR error_code != ''`

interface View {
  readonly view: string
  readonly table: string
  readonly query: string
}

const sumsByDay = (calls: string, { view, table, hasKeys }: RollupNames): View => ({
  view,
  table,
  query: `
    SELECT
      account_id, toDate(created_at, 'UTC') AS day, model, ${hasKeys ? 'key_id, ' : ''}status,
      sum(call_count) AS requests,
      sum(${calls}.cost) AS cost, sum(${calls}.input_tokens) AS input_tokens,
      sum(${calls}.output_tokens) AS output_tokens, sum(${calls}.cached_tokens) AS cached_tokens
    FROM ${calls}
    GROUP BY account_id, day, model, ${hasKeys ? 'key_id, ' : ''}status`,
})

const viewsWithQueries = ({ calls, byDay, byModel, failed, failedView }: LogNames): View[] => [
  sumsByDay(calls, byDay),
  sumsByDay(calls, byModel),
  // Without the detail: it is read from the table of all calls.
  { view: failedView, table: failed, query: `SELECT * EXCEPT (detail) FROM ${calls} WHERE ${IS_FAILED}` },
]

/** Creates the views; an existing one stays unchanged. */
export async function createViews(client: ClickHouseClient, names: LogNames): Promise<void> {
  for (const { view, table, query } of viewsWithQueries(names))
    await client.command({ query: `CREATE MATERIALIZED VIEW IF NOT EXISTS ${view} TO ${table} AS ${query}` })
}
