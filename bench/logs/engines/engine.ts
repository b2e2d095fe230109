/** Who is asked: the service's call log by its functions or over HTTP, or the table it is set against. */
import type { CallQuery } from '../../../src/clickhouse/pages/find-call.ts'
import type { CallPageQuery, CallPosition } from '../../../src/clickhouse/pages/query.ts'
import type { CallSummaryQuery } from '../../../src/clickhouse/summaries/summarize-calls.ts'

export type { CallQuery, CallSummaryQuery }

export const ENGINE_NAMES = ['log', 'http', 'postgres'] as const
export type EngineName = (typeof ENGINE_NAMES)[number]

export interface PageQuery extends Omit<CallPageQuery, 'after'> {
  /** Of the page before, as the engine gave it; null: the first page. */
  readonly cursor: string | null
}

export interface Page {
  /** Of its rows, in their order. */
  readonly ids: readonly number[]
  /** Null behind the last page. */
  readonly next: string | null
}

export interface CsvAnswer {
  readonly rows: number
  /** Milliseconds until the first rows were there. */
  readonly firstMs: number
}

export interface LogEngine {
  readonly name: EngineName
  /** Does nothing, in the way in which it is asked for something. */
  nothing(): Promise<void>
  page(query: PageQuery): Promise<Page>
  /** Answers how many rows came: one. */
  detail(query: CallQuery): Promise<number>
  /** Answers how many days have calls. */
  summary(query: CallSummaryQuery): Promise<number>
  /** A page without limit of memory, as text. Null: the engine is not asked for it. */
  readonly csv: ((query: PageQuery) => Promise<CsvAnswer>) | null
}

/** A row that is there, for questions about one. */
export interface KnownRow {
  readonly id: number
  readonly requestId: string
}

/** What there is to ask for. */
export interface Census {
  countRows(accountId: string): Promise<number>
  /** About so many rows of the account, from all of its history. */
  knownRows(accountId: string, count: number): Promise<KnownRow[]>
  /** The cursor that a walk in falling order has got behind so many rows that ended before an instant (epoch ms). */
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
