/** Runs the queries and measures the time of each. */
import { computeQuantiles, median, type Quantiles, quantile } from '../../harness/statistics.ts'
import type { Ask, Question, Subject } from './queries.ts'

/** The times of one reader without others. */
export interface Timing extends Quantiles {
  /** Of all rounds together. */
  readonly samples: number
  /** The median of the returned rows. */
  readonly rows: number
  /** The time to the first rows, where the query streams. */
  readonly first: Quantiles | null
}

export interface Effort {
  readonly samples: number
  readonly limitMs: number
}

/** Queries before the first sample, for other rows, so that connections, code and plans are warm. */
const WARM_UPS = 3
/** The fewest samples of a slow query. */
const LEAST_SAMPLES = 5

const timed = async (ask: Ask) => {
  const startedAt = performance.now()
  const { rows, firstMs } = await ask()
  return { ms: performance.now() - startedAt, rows, firstMs }
}

/** Rejects with the engine's error. `checkpoint` throws to end the work. */
export const measure = async (
  question: Question,
  subject: Subject,
  { samples, limitMs }: Effort,
  checkpoint: () => void,
): Promise<Timing> => {
  const next = question.begin(subject)
  for (let i = 0; i < WARM_UPS; i++) await (await next())()
  const times: number[] = []
  const firsts: number[] = []
  const rows: number[] = []
  const until = performance.now() + limitMs
  while (times.length < samples && (times.length < LEAST_SAMPLES || performance.now() < until)) {
    checkpoint()
    const answer = await timed(await next())
    times.push(answer.ms)
    rows.push(answer.rows)
    if (answer.firstMs !== undefined) firsts.push(answer.firstMs)
  }
  return {
    samples: times.length,
    ...computeQuantiles(times),
    rows: quantile(
      rows.sort((a, b) => a - b),
      0.5,
    ),
    first: firsts.length === 0 ? null : computeQuantiles(firsts),
  }
}

const middle = (rounds: readonly Quantiles[]): Quantiles => ({
  p50Ms: median(rounds.map(({ p50Ms }) => p50Ms)),
  p99Ms: median(rounds.map(({ p99Ms }) => p99Ms)),
  maxMs: Math.max(...rounds.map(({ maxMs }) => maxMs)),
})

/** A quantile is the median of the rounds' quantiles. */
export const overRounds = (rounds: readonly Timing[]): Timing => {
  const firsts = rounds.flatMap(({ first }) => first ?? [])
  return {
    ...middle(rounds),
    samples: rounds.reduce((sum, { samples }) => sum + samples, 0),
    rows: median(rounds.map(({ rows }) => rows)),
    first: firsts.length === 0 ? null : middle(firsts),
  }
}
