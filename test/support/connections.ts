/** Connections of a test beside those of the service under it; they end with the test. */
import { randomBytes } from 'node:crypto'
import { createClient } from '@clickhouse/client'
import { openCallLog } from '../../src/clickhouse/call-log.ts'
import { connect, type Sql } from '../../src/postgres/connection.ts'
import type { Teardown } from './engines.ts'
import { until } from './eventually.ts'
import type { LentService } from './service-client.ts'

export function connectTo(t: Teardown, url: string, max = 1): Sql {
  const sql = connect(url, { max, name: 'test' })
  t.teardown(() => sql.end({ timeout: 1 }))
  return sql
}

export function callLogAt(t: Teardown, url: string): ReturnType<typeof openCallLog> {
  const callLog = openCallLog(url)
  t.teardown(() => callLog.close())
  return callLog
}

/** A new empty database beside the others in the same ClickHouse; answers its URL. */
export async function freshClickHouse(clickhouseUrl: string): Promise<string> {
  const url = new URL(clickhouseUrl)
  const name = `test_${randomBytes(6).toString('hex')}`
  const client = createClient({ url })
  try {
    await client.command({ query: `CREATE DATABASE ${name}` })
  } finally {
    await client.close()
  }
  url.pathname = `/${name}`
  return url.href
}

/** Waits until every row is in the call log. */
export const untilCopied = (sql: Sql): Promise<void> =>
  until('the rows are in the call log', async () => {
    const [copy] = await sql`
      SELECT copied_upto = (SELECT coalesce(max(id), 0) FROM usage_rows) AS done FROM usage_copy`
    return copy?.done === true
  })

/** Audits the wallets, with the call log. */
export function verifyWallets({ database, engines }: Pick<LentService, 'database' | 'engines'>) {
  const callLog = openCallLog(engines.clickhouseUrl)
  return database.audits.verifyWallets(callLog).finally(() => callLog.close())
}
