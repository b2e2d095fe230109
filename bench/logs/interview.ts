/** All questions, put to all who are asked, about both accounts. */

import { Random } from '../harness/random.ts'
import { median } from '../harness/statistics.ts'
import type { Statements } from './clickhouse-statements.ts'
import type { Census, EngineName, LogEngine } from './engine.ts'
import { type Effort, measure } from './measure.ts'
import type { Account } from './population.ts'
import type { Progress } from './progress.ts'
import { QUESTIONS, type Question, type Subject } from './questions.ts'
import { countReadRows } from './read-rows.ts'
import type { AccountName, FailedQuestion, LogResults, Measured } from './results.ts'

/** Rows of an account that questions about one are made from. */
const KNOWN_ROWS = 2_000
/** What is asked once more, to see how many rows are read. */
const READ_SAMPLES = 7

export interface Asked {
  readonly engine: LogEngine
  readonly census: Census
  /** To whom it is known how many rows were read; null where nobody is asked. */
  readonly counting: Statements | null
}

export interface InterviewWanted {
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

/** Everybody is asked one question before the next one, so that what slows the machine for a while slows all. */
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
  const measured: Measured[] = []
  const failures: FailedQuestion[] = []
  for (const question of QUESTIONS) {
    for (const one of asked) {
      const { engine, counting } = one
      if (!question.engines.includes(engine.name)) continue
      checkpoint()
      progress.show(`asking: ${question.title}, ${name} account, ${engine.name}`)
      const subject = subjects.get(one)!
      const row = { engine: engine.name, account: name, question: question.name }
      try {
        const timing = await measure(question, subject, effort, checkpoint)
        const readRows = counting && (await readRowsFor(question, subject, counting))
        measured.push({ ...row, ...timing, readRows })
      } catch (error) {
        checkpoint() // told to stop: that is no failure of the question
        failures.push({ ...row, error: (error as Error).message })
      }
    }
  }
  return { measured, failures }
}
