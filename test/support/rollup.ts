/** The sums by account, day, model, key and status: as PostgreSQL's rows come to them, and as the call log keeps them. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { Sql } from '../../src/postgres/connection.ts'

const GROUPED = ['account_id', 'day', 'model', 'key_id', 'status'].join(', ')

/** All numbers as text, `cost` counts 1e-8 credit. */
export interface DaySums {
  readonly account_id: string
  readonly day: string
  readonly model: string
  readonly key_id: string
  readonly status: string
  readonly requests: string
  readonly cost: string
  readonly input: string
  readonly output: string
  readonly cached: string
}

export async function bookedByDay(sql: Sql): Promise<DaySums[]> {
  const sums = await sql<DaySums[]>`
    SELECT account_id, to_char(timestamp 'epoch' + interval '1 millisecond' * created_at, 'YYYY-MM-DD') AS day,
      model, key_id, status, count(*)::text AS requests, sum(cost)::text AS cost,
      sum(input_tokens)::text AS input, sum(output_tokens)::text AS output, sum(cached_tokens)::text AS cached
    FROM usage_rows GROUP BY ${sql.unsafe(GROUPED)} ORDER BY ${sql.unsafe(`${GROUPED} COLLATE "C"`)}`
  return [...sums]
}

export async function loggedByDay(log: ClickHouseClient): Promise<DaySums[]> {
  const answer = await log.query({
    query: `
      SELECT account_id, toString(day) AS day, model, key_id, status, toString(sum(requests)) AS requests,
        toString(toInt128(sum(cost) * 100000000)) AS cost, toString(sum(input_tokens)) AS input,
        toString(sum(output_tokens)) AS output, toString(sum(cached_tokens)) AS cached
      FROM calls_by_day GROUP BY ${GROUPED} ORDER BY ${GROUPED}`,
    format: 'JSONEachRow',
  })
  return answer.json<DaySums>()
}
