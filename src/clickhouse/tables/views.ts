/** The views that pass each insert of calls on: to the sums by day, with keys and without, and to the failed calls. */
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from '../connection.ts'
import { type LogNames, nameView } from './names.ts'

/** A query for an error code, or for states without `success`, reads only these rows. */
const IS_FAILED = `status != 'success' OR error_code != ''`

/** Returns the query of sums by day and these columns. */
const selectSumsByDay = (calls: string, columns: string, { sums = '', where = '' } = {}): string => `
    SELECT
      account_id, toDate(created_at, 'UTC') AS day, ${columns},
      sum(call_count) AS requests,
      sum(${calls}.cost) AS cost, sum(${calls}.input_tokens) AS input_tokens,
      sum(${calls}.output_tokens) AS output_tokens, sum(${calls}.cached_tokens) AS cached_tokens${sums}
    FROM ${calls} ${where}
    GROUP BY account_id, day, ${columns}`

/**
 * Returns the query of the failed calls: the columns that both tables have. What only the detail of a call shows is in one
 * of them.
 */
async function queryOfFailed(client: ClickHouseClient, calls: string, failed: string): Promise<string> {
  const columns = await readRows<{ name: string }>(client, {
    query: `SELECT name FROM system.columns
      WHERE database = currentDatabase() AND table IN {tables:Array(String)} AND default_kind != 'MATERIALIZED'
      GROUP BY name HAVING count() = 2 ORDER BY min(position)`,
    query_params: { tables: [calls, failed] },
  })
  return `SELECT ${columns.map(({ name }) => name).join(', ')} FROM ${calls} WHERE ${IS_FAILED}`
}

const createView = (client: ClickHouseClient, table: string, query: string) =>
  client.command({
    query: `CREATE MATERIALIZED VIEW IF NOT EXISTS ${nameView(table)} TO ${table} AS ${query}`,
  })

/** Creates the views; an existing one stays unchanged. */
export async function createViews(
  client: ClickHouseClient,
  { calls, byDay, byModel, failed, costs }: LogNames,
): Promise<void> {
  await createView(client, byDay, selectSumsByDay(calls, 'model, key_id, status'))
  await createView(client, byModel, selectSumsByDay(calls, 'model, status'))
  await createView(client, failed, await queryOfFailed(client, calls, failed))
  const costsByDay = selectSumsByDay(calls, 'model, key_id, channel_id', {
    sums: `, sum(assumeNotNull(${calls}.upstream_cost)) AS upstream_cost`,
    where: `WHERE ${calls}.upstream_cost IS NOT NULL`,
  })
  await createView(client, costs, costsByDay)
}
