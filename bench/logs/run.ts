import { join } from 'node:path'
import { type EmbeddedEngines, startEmbedded } from '../../src/embedded/start.ts'
import { endAll } from '../harness/children.ts'
import { ROOT } from '../harness/machine.ts'
import { interruptible, runProgram, withFacts } from '../harness/program.ts'
import { publish } from '../report/report.ts'
import { timeCallsPage } from './engines/browser.ts'
import { readIn } from './engines/page-cache.ts'
import { printSettings, serverSettings } from './engines/postgres-server.ts'
import { FULL_POSTGRES_ROWS, FULL_ROWS, KEEP, type Options, parseOptions, usage } from './options.ts'
import { QUESTIONS } from './queries/queries.ts'
import { interview, questionsFor } from './queries/rounds.ts'
import { printReport } from './report/report.ts'
import {
  ACCOUNT_NAMES,
  type AccountName,
  type FailedQuestion,
  type LogResults,
  type Measured,
} from './report/results.ts'
import { assertRoom, bytesNeeded, enterGround, type Ground, gibibytes } from './rows/data-folder.ts'
import { type Account, MEDIAN_RANK, makeAccounts } from './rows/population.ts'
import { Progress } from './rows/progress.ts'
import { buildCallLog, buildPlainTable, missingRows, type SetDeps } from './rows/sets.ts'
import { openStage, type Stage } from './stage.ts'

/**
 * The bench of the call log: what a page, a filter, one call and a summary cost when there are a hundred million
 * calls, compared with a plain table in PostgreSQL. The bench starts its own engines and service, ends them, and removes
 * their data unless it is kept. Queries: queries/queries.ts. Rows: rows/population.ts. Timing: queries/measure.ts.
 * Report: report/report.ts.
 */

const KEPT = join(ROOT, 'node_modules/.cache/tollgate-bench-logs')
/** Extra requests per query for the warm-up. */
const SPARE_REQUESTS = 10
const SCREEN_SAMPLES = 30

interface Run {
  readonly options: Options
  readonly ground: Ground
  readonly accounts: readonly Account[]
  readonly progress: Progress
  /** Throws to end the work. */
  checkpoint(): void
}

const readVersions = async ({ sql, statements }: Stage): Promise<LogResults['versions']> => {
  const [one] = await statements.rows<{ version: string }>('SELECT version() AS version')
  const [other] = await sql`SHOW server_version`
  return { clickhouse: one!.version, postgres: String(other!.server_version) }
}

const askAll = async (
  run: Run,
  stage: Stage,
): Promise<Pick<LogResults, 'accounts' | 'measured' | 'failures' | 'browser'>> => {
  const { options, ground, accounts, progress, checkpoint } = run
  const { seed, samples, questionLimitMs: limitMs } = options
  const chosen: Readonly<Record<AccountName, Account>> = {
    largest: accounts[0]!,
    median: accounts[MEDIAN_RANK]!,
  }
  const wanted = {
    requests: questionsFor('http').length * (samples + SPARE_REQUESTS),
    hasTable: options.postgresRows > 0,
  }
  progress.say('reading the built files into memory')
  // PostgreSQL first: where memory has room for one only, ClickHouse stays.
  for (const engine of ['postgres', 'clickhouse']) await readIn(join(ground.folder, engine), checkpoint)
  const service = await stage.openService(ground.folder)
  const measured: Measured[] = []
  const failures: FailedQuestion[] = []
  const sizes: Record<AccountName, LogResults['accounts'][AccountName]> = { largest: {}, median: {} }
  for (const name of ACCOUNT_NAMES) {
    const account = chosen[name]
    const asked = await stage.askedAbout(account, service, wanted)
    for (const { engine, census } of asked)
      sizes[name] = { ...sizes[name], [engine.name]: await census.countRows(account.id) }
    const effort = { samples, limitMs }
    const answers = await interview({ asked, account, name, seed, effort, progress, checkpoint })
    measured.push(...answers.measured)
    failures.push(...answers.failures)
  }
  progress.say('opening Calls in a browser')
  const browser = await timeCallsPage(service, chosen.largest, SCREEN_SAMPLES)
  return { accounts: sizes, measured, failures, browser }
}

const measureAll = async (run: Run, engines: EmbeddedEngines) => {
  const { options } = run
  const stage = await openStage(engines)
  try {
    const deps: SetDeps = { ...run, statements: stage.statements }
    const clickhouse = await buildCallLog(deps, stage.log)
    const postgres = await buildPlainTable(deps, stage.sql, printSettings(serverSettings()))
    const answers = await askAll(run, stage)
    return {
      isFull: options.rows >= FULL_ROWS && options.postgresRows >= FULL_POSTGRES_ROWS,
      seed: options.seed,
      samples: options.samples,
      versions: await readVersions(stage),
      clickhouse,
      postgres,
      questions: QUESTIONS.map(({ name, title, kind }) => ({ name, title, kind })),
      ...answers,
    }
  } finally {
    await stage.close()
  }
}

/** Throws unless the disk has space for the missing sets. */
const reserve = (run: Run): void => {
  const needed = bytesNeeded(missingRows(run))
  run.progress.say(`${run.ground.folder}: needs up to ${gibibytes(needed)}`)
  assertRoom(run.ground.folder, needed)
}

const run = (options: Options): Promise<number> => {
  const progress = new Progress(process.stderr)
  const say = (line: string): void => progress.say(line)
  return interruptible(say, async ({ checkpoint, signal }) => {
    const ground = await enterGround(options.data === KEEP ? KEPT : options.data)
    let engines: EmbeddedEngines | null = null
    // Ends statements that still run on the server.
    signal.addEventListener('abort', () => void engines?.stop())
    try {
      const prepared: Run = { options, ground, accounts: makeAccounts(options.seed), progress, checkpoint }
      reserve(prepared)
      const wanted = ['clickhouse', 'postgres'] as const
      const started = await startEmbedded({ dataDir: ground.folder, engines: wanted, signal })
      engines = started
      const results: LogResults = await withFacts(say, () => measureAll(prepared, started))
      const place = { names: ['logs', 'partial.logs'], isFull: results.isFull, out: options.out } as const
      await publish(results, printReport(results), place, say)
      return results.failures.length === 0 ? 0 : 1
    } finally {
      await endAll()
      await engines?.stop()
      ground.leave()
    }
  })
}

await runProgram(parseOptions, usage, run)
