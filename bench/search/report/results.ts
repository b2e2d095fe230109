/** A whole run as JSON. */
import type { RunFacts } from '../../harness/program.ts'
import type { Quantiles } from '../../harness/statistics.ts'

export interface Quality {
  readonly queries: number
  readonly ndcg: number
  readonly recall: number
}

export interface Times extends Quantiles {
  readonly searches: number
}

export interface SubjectResults {
  readonly name: string
  readonly title: string
  readonly buildSeconds: number
  readonly indexBytes: number | null
  readonly times: Times
  /** Over the held-out queries: `all`, each language, and `<language> <kind>`. */
  readonly quality: Readonly<Record<string, Quality>>
}

/** Tollgate's search at one size. */
export interface SizeResults {
  readonly pages: number
  readonly buildSeconds: number
  readonly indexBytes: number
  /** By sort of query. */
  readonly times: Readonly<Record<string, Times>>
  /** Of this process, for one search. */
  readonly cpuMs: number
  readonly quality: Quality
}

export interface SearchResults extends RunFacts {
  readonly isFull: boolean
  readonly seed: number
  /** Pages of the comparison. */
  readonly comparedPages: number
  readonly subjects: readonly SubjectResults[]
  readonly sizes: readonly SizeResults[]
  /** Failed checks; none in a good run. */
  readonly failures: readonly string[]
}
