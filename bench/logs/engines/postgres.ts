/** The same queries on a plain table in PostgreSQL. */
import type { Sql } from '../../../src/postgres/connection.ts'
import { PAGE_COLUMNS, TABLE } from '../rows/postgres-table.ts'
import { type Census, type LogEngine, type PageQuery, printPosition, readPosition } from './engine.ts'

type Parameter = string | number | boolean | Date | readonly string[]

/** Conditions with their parameters `$1`, `$2` and so on. */
class Conditions {
  readonly #conditions: string[] = []
  readonly parameters: Parameter[] = []

  /** Adds a condition; each `?` is the next of the values. */
  add(condition: string, ...values: Parameter[]): void {
    let at = 0
    this.#conditions.push(
      condition.replaceAll('?', () => {
        this.parameters.push(values[at++]!)
        return `$${this.parameters.length}`
      }),
    )
  }

  get text(): string {
    return this.#conditions.join(' AND ')
  }
}

const TOKEN_BILLED = 'chat'

function printConditions(query: PageQuery): Conditions {
  const where = new Conditions()
  where.add(
    'account_id = ? AND created_at >= ? AND created_at < ?',
    query.accountId,
    new Date(query.from),
    new Date(query.to),
  )
  if (query.keyIds !== null) where.add('key_id = ANY(?)', query.keyIds)
  if (query.models !== null) where.add('model = ANY(?)', query.models)
  if (query.statuses !== null) where.add('status = ANY(?)', query.statuses)
  if (query.unitTypes !== null)
    where.add(
      'unit_type = ANY(?)',
      query.unitTypes.map((type) => (type === TOKEN_BILLED ? '' : type)),
    )
  if (query.errorCodes !== null) where.add('error_code = ANY(?)', query.errorCodes)
  if (query.ref !== null)
    where.add("(request_id = ? OR (task_id = ? AND task_id <> ''))", query.ref, query.ref)
  const after = readPosition(query.cursor)
  if (after !== null)
    where.add(
      `(created_at, id) ${query.order === 'asc' ? '>' : '<'} (?, ?)`,
      new Date(after.createdAt),
      after.id,
    )
  return where
}

/** The batch size of a CSV, as in the service. */
const CSV_ROWS_A_FETCH = 500

const pageStatement = (query: PageQuery, columns: readonly string[], limit: number) => {
  const where = printConditions(query)
  const text = `
    SELECT ${columns.join(', ')} FROM ${TABLE} WHERE ${where.text}
    ORDER BY created_at ${query.order}, id ${query.order} LIMIT ${limit}`
  return { text, parameters: where.parameters }
}

type Ask = <T>(statement: string, parameters: readonly Parameter[]) => Promise<T[]>

// Each statement is planned for its parameters, because a generic plan is bad for most of them.
const asking =
  (sql: Sql): Ask =>
  async <T>(statement: string, parameters: readonly Parameter[]) =>
    (await sql.unsafe(statement, parameters as Parameter[] as never[])) as unknown as T[]

interface PositionRow {
  readonly id: bigint
  readonly created_at: Date
}

const toPosition = ({ id, created_at }: PositionRow): string =>
  printPosition({ id: Number(id), createdAt: created_at.getTime() })

export const postgresEngine = (sql: Sql): LogEngine => {
  const ask = asking(sql)
  return {
    name: 'postgres',
    nothing: async () => {
      await ask('SELECT 1', [])
    },
    page: async (query) => {
      const { text, parameters } = pageStatement(query, PAGE_COLUMNS, query.limit + 1)
      const rows = await ask<PositionRow>(text, parameters)
      const last = rows[query.limit - 1]
      const next = rows.length > query.limit && last ? toPosition(last) : null
      return { ids: rows.slice(0, query.limit).map(({ id }) => Number(id)), next }
    },
    detail: async ({ accountId, id }) => {
      const rows = await ask(`SELECT * FROM ${TABLE} WHERE id = $1 AND account_id = $2`, [id, accountId])
      return rows.length
    },
    summary: async ({ accountId, from, to }) => {
      const rows = await ask<{ day: string }>(
        `SELECT created_at::date::text AS day, model, status, count(*), sum(cost), sum(input_tokens),
                sum(output_tokens), sum(cached_tokens)
         FROM ${TABLE} WHERE account_id = $1 AND created_at >= $2 AND created_at < $3
         GROUP BY created_at::date, model, status`,
        [accountId, new Date(from), new Date(to)],
      )
      return new Set(rows.map(({ day }) => day)).size
    },
    csv: async (query) => {
      const startedAt = performance.now()
      let firstMs = 0
      let rows = 0
      const { text, parameters } = pageStatement(query, PAGE_COLUMNS, query.limit)
      for await (const some of sql.unsafe(text, parameters as never[]).cursor(CSV_ROWS_A_FETCH)) {
        some.map((row) => Object.values(row).join(','))
        if (rows === 0) firstMs = performance.now() - startedAt
        rows += some.length
      }
      return { rows, firstMs }
    },
  }
}

/** Not measured. */
export const postgresCensus = (sql: Sql): Census => {
  const ask = asking(sql)
  return {
    countRows: async (accountId) => {
      const [row] = await ask<{ n: bigint }>(`SELECT count(*) AS n FROM ${TABLE} WHERE account_id = $1`, [
        accountId,
      ])
      return Number(row!.n)
    },
    knownRows: async (accountId, count) => {
      const rows = await ask<{ id: bigint; request_id: string }>(
        `SELECT id, request_id FROM ${TABLE} WHERE account_id = $1 ORDER BY hashint8(id) LIMIT $2`,
        [accountId, count],
      )
      return rows.map((row) => ({ id: Number(row.id), requestId: row.request_id }))
    },
    cursorBehind: async (accountId, before, rows) => {
      const [row] = await ask<PositionRow>(
        `SELECT id, created_at FROM ${TABLE} WHERE account_id = $1 AND created_at < $2
         ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $3`,
        [accountId, new Date(before), rows - 1],
      )
      if (row === undefined) throw new RangeError(`the account has no ${rows} rows before ${before}`)
      return toPosition(row)
    },
  }
}
