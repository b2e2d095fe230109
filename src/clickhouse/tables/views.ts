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
  // Without what only the detail of a call shows: it is read from the table of all calls.
  {
    view: failedView,
    table: failed,
    query: `SELECT * EXCEPT (detail, upstream_cost) FROM ${calls} WHERE ${IS_FAILED}`,
  },
]

const createView = (client: ClickHouseClient, { view, table, query }: View) =>
  client.command({ query: `CREATE MATERIALIZED VIEW IF NOT EXISTS ${view} TO ${table} AS ${query}` })

/** Creates the views of charges and failures; an existing one stays unchanged. */
export async function createViews(client: ClickHouseClient, names: LogNames): Promise<void> {
  for (const view of viewsWithQueries(names)) await createView(client, view)
}

/** Creates the view of upstream costs; an existing one stays unchanged. */
export async function createViewOfCosts(client: ClickHouseClient, { calls, costs }: LogNames): Promise<void> {
  const query = `
    SELECT
      account_id, toDate(created_at, 'UTC') AS day, model, key_id, channel_id,
      sum(call_count) AS requests,
      sum(${calls}.cost) AS cost, sum(${calls}.input_tokens) AS input_tokens,
      sum(${calls}.output_tokens) AS output_tokens, sum(${calls}.cached_tokens) AS cached_tokens,
      sum(assumeNotNull(${calls}.upstream_cost)) AS upstream_cost
    FROM ${calls} WHERE ${calls}.upstream_cost IS NOT NULL
    GROUP BY account_id, day, model, key_id, channel_id`
  await createView(client, { ...costs, query })
}
