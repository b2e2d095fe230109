/** What is queried: the service's call log by its functions or over HTTP, or the plain PostgreSQL table. */

import type { CallPageQuery, CallPosition } from '../../../schemas/call-log/page-query.ts'
import type { CallQuery } from '../../../src/clickhouse/pages/find-call.ts'
import type { AccountWindow } from '../../../src/clickhouse/summaries/summed-rows.ts'

export const ENGINE_NAMES = ['log', 'http', 'postgres'] as const
export type EngineName = (typeof ENGINE_NAMES)[number]

export interface PageQuery extends Omit<CallPageQuery, 'after'> {
  /** The cursor of the previous page; null for the first page. */
  readonly cursor: string | null
}

export interface Page {
  /** The ids of its rows, in order. */
  readonly ids: readonly number[]
  /** Null after the last page. */
  readonly next: string | null
}

export interface CsvAnswer {
  readonly rows: number
  /** Milliseconds until the first rows arrived. */
  readonly firstMs: number
}

export interface LogEngine {
  readonly name: EngineName
  /** An empty query: the fixed cost of each query. */
  nothing(): Promise<void>
  page(query: PageQuery): Promise<Page>
  /** Returns the number of rows, which is one. */
  detail(query: CallQuery): Promise<number>
  /** Returns the number of days with calls. */
  summary(window: AccountWindow): Promise<number>
  /** Reads a page as CSV. Null where the engine has no CSV. */
  readonly csv: ((query: PageQuery) => Promise<CsvAnswer>) | null
}

/** A stored row, for queries about one row. */
export interface KnownRow {
  readonly id: number
  readonly requestId: string
}

/** Finds what the queries need. */
export interface Census {
  countRows(accountId: string): Promise<number>
  /** Returns about this many rows of the account, from its whole history. */
  knownRows(accountId: string, count: number): Promise<KnownRow[]>
  /** Returns the cursor after this many rows in descending order that ended before an instant (epoch ms). */
  cursorBehind(accountId: string, before: number, rows: number): Promise<string>
}

export const printPosition = ({ createdAt, id }: CallPosition): string => `${createdAt}.${id}`

/** Null for null. Throws RangeError for what `printPosition` did not print. */
export const readPosition = (cursor: string | null): CallPosition | null => {
  if (cursor === null) return null
  const [, createdAt, id] = /^(\d+)\.(\d+)$/.exec(cursor) ?? []
  if (createdAt === undefined || id === undefined) throw new RangeError(`no position: ${cursor}`)
  return { createdAt: Number(createdAt), id: Number(id) }
}
