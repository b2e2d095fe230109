/** Runs all queries on all engines for both accounts. */

import { Random } from '../../harness/random.ts'
import { median } from '../../harness/statistics.ts'
import type { Statements } from '../engines/clickhouse-statements.ts'
import type { Census, EngineName, LogEngine } from '../engines/engine.ts'
import { countReadRows } from '../engines/rows-read.ts'
import type { AccountName, LogResults, Measured } from '../report/results.ts'
import type { Account } from '../rows/population.ts'
import type { Progress } from '../rows/progress.ts'
import { type Effort, measure, overRounds, type Timing } from './measure.ts'
import { QUESTIONS, type Question, type Subject } from './queries.ts'

/** The rows of an account for queries about one row. */
const KNOWN_ROWS = 2_000
/** Repetitions that count the rows read. */
const READ_SAMPLES = 7

export interface Asked {
  readonly engine: LogEngine
  readonly census: Census
  /** The engine whose reads are counted; null for none. */
  readonly counting: Statements | null
}

interface InterviewWanted {
  readonly asked: readonly Asked[]
  readonly account: Account
  readonly name: AccountName
  readonly seed: number
  readonly effort: Effort
  readonly progress: Progress
  checkpoint(): void
}

export const questionsFor = (engine: EngineName): Question[] =>
  QUESTIONS.filter(({ engines }) => engines.includes(engine))

const readRowsFor = async (question: Question, subject: Subject, counting: Statements): Promise<number> => {
  const next = question.begin(subject)
  const reads: number[] = []
  for (let i = 0; i < READ_SAMPLES; i++) reads.push(await countReadRows(counting, await next()))
  return median(reads)
}

/** A slow phase of a few seconds affects one round only. */
const ROUNDS = 3

interface Answers {
  readonly row: Pick<Measured, 'engine' | 'account' | 'question'>
  readonly timings: Timing[]
  readRows: number | null
  error: string | null
}

/** Each query runs on all engines before the next one, so that a slow phase of the machine affects all. */
export const interview = async (
  wanted: InterviewWanted,
): Promise<Pick<LogResults, 'measured' | 'failures'>> => {
  const { asked, account, name, seed, effort, progress, checkpoint } = wanted
  const subjects = new Map<Asked, Subject>()
  for (const one of asked) {
    const { engine, census } = one
    const rows = await census.countRows(account.id)
    const known = await census.knownRows(account.id, KNOWN_ROWS)
    subjects.set(one, { engine, census, account, random: new Random(seed), rows, known })
  }
  const inRound = { samples: Math.ceil(effort.samples / ROUNDS), limitMs: effort.limitMs / ROUNDS }
  const put = async (question: Question, one: Asked, answers: Answers): Promise<void> => {
    const { counting } = one
    const subject = subjects.get(one)!
    try {
      answers.timings.push(await measure(question, subject, inRound, checkpoint))
      if (counting) answers.readRows ??= await readRowsFor(question, subject, counting)
    } catch (error) {
      checkpoint() // A stop of the run is no failure of the query.
      answers.error = (error as Error).message
    }
  }
  const all = QUESTIONS.flatMap((question) =>
    asked
      .filter(({ engine }) => question.engines.includes(engine.name))
      .map((one) => {
        const row = { engine: one.engine.name, account: name, question: question.name }
        const answers: Answers = { row, timings: [], readRows: null, error: null }
        return { question, one, answers }
      }),
  )
  for (let round = 1; round <= ROUNDS; round++)
    for (const { question, one, answers } of all) {
      if (answers.error !== null) continue
      checkpoint()
      progress.show(`round ${round}: ${question.title}, ${name} account, ${one.engine.name}`)
      await put(question, one, answers)
    }
  return toOutcome(all.map(({ answers }) => answers))
}

const toOutcome = (all: readonly Answers[]): Pick<LogResults, 'measured' | 'failures'> => ({
  measured: all.flatMap(({ row, timings, readRows, error }) =>
    error === null ? [{ ...row, ...overRounds(timings), readRows }] : [],
  ),
  failures: all.flatMap(({ row, error }) => (error === null ? [] : [{ ...row, error }])),
})
