/** A whole run as JSON, and access to its figures. */
import type { RunFacts } from '../../harness/program.ts'
import type { BrowserTimes } from '../engines/browser.ts'
import { ENGINE_NAMES, type EngineName } from '../engines/engine.ts'
import type { Timing } from '../queries/measure.ts'
import type { QuestionKind } from '../queries/queries.ts'

export const ACCOUNT_NAMES = ['largest', 'median'] as const
export type AccountName = (typeof ACCOUNT_NAMES)[number]

export interface Measured extends Timing {
  readonly engine: EngineName
  readonly account: AccountName
  readonly question: string
  /** The median of the rows that ClickHouse read; null where it was not counted. */
  readonly readRows: number | null
}

/** A query that failed. */
export interface FailedQuestion {
  readonly engine: EngineName
  readonly account: AccountName
  readonly question: string
  readonly error: string
}

export interface BuiltSet {
  readonly rows: number
  /** Bytes on the disk by use. */
  readonly bytes: Readonly<Record<string, number>>
  readonly seconds: number
  /** True when an earlier run built it. */
  readonly reused: boolean
  readonly note: string
}

export interface LogResults extends RunFacts {
  readonly isFull: boolean
  readonly seed: number
  readonly samples: number
  readonly versions: {
    readonly clickhouse: string
    readonly postgres: string
  }
  readonly clickhouse: BuiltSet
  /** Null for a run without PostgreSQL. */
  readonly postgres: BuiltSet | null
  /** Rows of each account by engine. */
  readonly accounts: Readonly<Record<AccountName, Partial<Record<EngineName, number>>>>
  readonly questions: readonly {
    readonly name: string
    readonly title: string
    readonly kind: QuestionKind
  }[]
  readonly measured: readonly Measured[]
  /** The first page of Calls in a browser, of the largest account. */
  readonly browser: BrowserTimes
  readonly failures: readonly FailedQuestion[]
}

export const readMeasured = (
  { measured }: LogResults,
  engine: EngineName,
  account: AccountName,
  question: string,
): Measured | null =>
  measured.find((row) => row.engine === engine && row.account === account && row.question === question) ??
  null

/** Returns the engines in the order of tables and charts. */
export const listEngines = ({ measured }: LogResults): EngineName[] =>
  ENGINE_NAMES.filter((name) => measured.some(({ engine }) => engine === name))
