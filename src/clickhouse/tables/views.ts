/** The views that pass each insert of calls on: to the sums by day, with keys and without, and to the failed calls. */
import type { ClickHouseClient } from '@clickhouse/client'
import { type LogNames, viewOf } from './names.ts'

/** A query for an error code, or for states without `success`, reads these rows alone. */
const IS_FAILED = `status != 'success' OR error_code != ''`

/** Returns the query of sums by day and these columns. */
const sumsByDay = (calls: string, columns: string, { sums = '', where = '' } = {}): string => `
    SELECT
      account_id, toDate(created_at, 'UTC') AS day, ${columns},
      sum(call_count) AS requests,
      sum(${calls}.cost) AS cost, sum(${calls}.input_tokens) AS input_tokens,
      sum(${calls}.output_tokens) AS output_tokens, sum(${calls}.cached_tokens) AS cached_tokens${sums}
    FROM ${calls} ${where}
    GROUP BY account_id, day, ${columns}`

const createView = (client: ClickHouseClient, table: string, query: string) =>
  client.command({ query: `CREATE MATERIALIZED VIEW IF NOT EXISTS ${viewOf(table)} TO ${table} AS ${query}` })

/** Creates the views of charges and failures; an existing one stays unchanged. */
export async function createViews(
  client: ClickHouseClient,
  { calls, byDay, byModel, failed }: LogNames,
): Promise<void> {
  await createView(client, byDay, sumsByDay(calls, 'model, key_id, status'))
  await createView(client, byModel, sumsByDay(calls, 'model, status'))
  // Without what only the detail of a call shows: it is read from the table of all calls.
  await createView(client, failed, `SELECT * EXCEPT (detail, upstream_cost) FROM ${calls} WHERE ${IS_FAILED}`)
}

/** Creates the view of upstream costs; an existing one stays unchanged. */
export async function createViewOfCosts(client: ClickHouseClient, { calls, costs }: LogNames): Promise<void> {
  const query = sumsByDay(calls, 'model, key_id, channel_id', {
    sums: `, sum(assumeNotNull(${calls}.upstream_cost)) AS upstream_cost`,
    where: `WHERE ${calls}.upstream_cost IS NOT NULL`,
  })
  await createView(client, costs, query)
}
