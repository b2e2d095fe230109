/** The call log by the service's own functions, which query ClickHouse over HTTP. */
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import { text } from '../rows/draws.ts'
import type { Statements } from './clickhouse-statements.ts'
import { type Census, type LogEngine, printPosition, readPosition } from './engine.ts'

export const tollgateEngine = (log: CallLog): LogEngine => ({
  name: 'log',
  nothing: () => log.ping(),
  page: async ({ cursor, ...query }) => {
    const { rows, hasMore } = await log.findCalls({ ...query, after: readPosition(cursor) })
    const last = rows.at(-1)
    const next =
      hasMore && last ? printPosition({ createdAt: Date.parse(last.created_at), id: last.id }) : null
    return { ids: rows.map(({ id }) => id), next }
  },
  detail: async (query) => ((await log.findCall(query)) === null ? 0 : 1),
  summary: async (query) => (await log.summarizeCalls(query)).byDay.length,
  csv: null,
})

/** Not measured. */
export const clickhouseCensus = (statements: Statements): Census => {
  const countRows = async (accountId: string): Promise<number> => {
    const [row] = await statements.rows<{ n: string }>(
      `SELECT count() AS n FROM calls WHERE account_id = ${text(accountId)}`,
    )
    return Number(row!.n)
  }
  return {
    countRows,
    knownRows: async (accountId, count) => {
      const every = Math.max(1, Math.floor((await countRows(accountId)) / count))
      const rows = await statements.rows<{ id: string; request_id: string }>(`
        SELECT id, request_id FROM calls
        WHERE account_id = ${text(accountId)} AND intHash64(id) % ${every} = 0 LIMIT ${2 * count}`)
      return rows.map((row) => ({ id: Number(row.id), requestId: row.request_id }))
    },
    cursorBehind: async (accountId, before, rows) => {
      const [row] = await statements.rows<{ id: string; at: string }>(`
        SELECT id, toUnixTimestamp64Milli(created_at) AS at FROM calls
        WHERE account_id = ${text(accountId)} AND created_at < fromUnixTimestamp64Milli(${before}, 'UTC')
        ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ${rows - 1}`)
      if (row === undefined) throw new RangeError(`the account has no ${rows} rows before ${before}`)
      return printPosition({ id: Number(row.id), createdAt: Number(row.at) })
    },
  }
}
