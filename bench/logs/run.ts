import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type EmbeddedEngines, startEmbedded } from '../../src/embedded/start.ts'
import { endAll, killAll } from '../harness/children.ts'
import { describeCheckout, describeMachine } from '../harness/machine.ts'
import { busyPercentDuring } from '../harness/proc.ts'
import { UsageError } from '../options.ts'
import { assertRoom, bytesNeeded, enterGround, type Ground, gibibytes } from './ground.ts'
import { interview, questionsFor } from './interview.ts'
import { FULL_POSTGRES_ROWS, FULL_ROWS, KEEP, type Options, parseOptions, usage } from './options.ts'
import { type Account, MEDIAN_RANK, makeAccounts } from './population.ts'
import { printSettings, serverSettings } from './postgres-server.ts'
import { Progress } from './progress.ts'
import { QUESTIONS } from './questions.ts'
import { chartOf, reportOf, textOf } from './report.ts'
import {
  ACCOUNT_NAMES,
  type AccountName,
  type FailedQuestion,
  type LogResults,
  type Measured,
} from './results.ts'
import { buildCallLog, buildPlainTable, missingRows, type SetDeps } from './sets.ts'
import { openStage, type Stage } from './stage.ts'

/**
 * The bench of the call log: what a page, a filter, one call and a summary cost when there are a hundred million
 * calls, beside a plain table in PostgreSQL. Engines and service are the bench's own and end with it, however it
 * ends; so does what they wrote, unless it is to be kept. What is asked: questions.ts; of which rows: population.ts;
 * how it is timed: measure.ts; what comes of it: report.ts.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RESULTS = fileURLToPath(new URL('../results', import.meta.url))
const KEPT = join(ROOT, 'node_modules/.cache/tollgate-bench-logs')
/** Long enough to see a neighbour at work. */
const QUIET_CHECK_MS = 1_000
const BUSY_PERCENT = 10
const MS_PER_SECOND = 1_000
/** Each question is put so often on top of its samples, to be warm. */
const SPARE_REQUESTS = 10
const EXIT_USAGE = 2
const EXIT_INTERRUPTED = 130

/** Thrown when the run was told to stop. */
class Interrupted extends Error {}

interface Run {
  readonly options: Options
  readonly ground: Ground
  readonly accounts: readonly Account[]
  readonly progress: Progress
  /** Throws to end the work. */
  checkpoint(): void
}

const versionsOf = async ({ sql, statements }: Stage): Promise<LogResults['versions']> => {
  const [one] = await statements.rows<{ version: string }>('SELECT version() AS version')
  const [other] = await sql`SHOW server_version`
  return {
    tollgate: describeCheckout(ROOT),
    node: process.versions.node,
    clickhouse: one!.version,
    postgres: String(other!.server_version),
  }
}

const askAll = async (
  run: Run,
  stage: Stage,
): Promise<Pick<LogResults, 'accounts' | 'measured' | 'failures'>> => {
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
  return { accounts: sizes, measured, failures }
}

const measureAll = async (run: Run, engines: EmbeddedEngines): Promise<LogResults> => {
  const { options, progress } = run
  const busyBeforePercent = await busyPercentDuring(delay(QUIET_CHECK_MS))
  if (busyBeforePercent > BUSY_PERCENT)
    progress.say(
      `the machine is ${Math.round(busyBeforePercent)} % busy with other things: times will be wrong`,
    )
  const startedAt = performance.now()
  const stage = await openStage(engines)
  try {
    const deps: SetDeps = { ...run, statements: stage.statements }
    const clickhouse = await buildCallLog(deps, stage.log)
    const postgres = await buildPlainTable(deps, stage.sql, printSettings(serverSettings()))
    const answers = await askAll(run, stage)
    return {
      date: new Date().toISOString().slice(0, 10),
      isFull: options.rows >= FULL_ROWS && options.postgresRows >= FULL_POSTGRES_ROWS,
      seed: options.seed,
      samples: options.samples,
      seconds: (performance.now() - startedAt) / MS_PER_SECOND,
      busyBeforePercent,
      machine: describeMachine(),
      versions: await versionsOf(stage),
      clickhouse,
      postgres,
      questions: QUESTIONS.map(({ name, title, kind }) => ({ name, title, kind })),
      ...answers,
    }
  } finally {
    await stage.close()
  }
}

/** A partial run never takes the place of the full one. */
const write = (results: LogResults, { out }: Options, say: (line: string) => void): void => {
  const folder = out ?? RESULTS
  const name = results.isFull || out !== null ? 'logs' : 'partial.logs'
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(join(folder, `${name}.svg`), chartOf(results))
  writeFileSync(join(folder, `${name}.md`), reportOf(results, `${name}.svg`))
  say(`written: ${join(folder, name)}.{json,md,svg}`)
}

/** Throws unless what is not there yet has room. */
const reserve = (run: Run): void => {
  const needed = bytesNeeded(missingRows(run))
  run.progress.say(`${run.ground.folder}: up to ${gibibytes(needed)} are needed`)
  assertRoom(run.ground.folder, needed)
}

const run = async (options: Options): Promise<number> => {
  const progress = new Progress(process.stderr)
  let interrupted = false
  let engines: EmbeddedEngines | null = null
  const checkpoint = (): void => {
    if (interrupted) throw new Interrupted()
  }
  const stop = new AbortController()
  const interrupt = (): void => {
    if (interrupted) process.exit(EXIT_INTERRUPTED) // asked twice: `exit` kills what is left
    interrupted = true
    progress.say('stopping …')
    stop.abort(new Interrupted())
    void endAll()
    // Whatever a statement still does there, the next thing that this process hears of it is its end.
    void engines?.stop()
  }
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', interrupt)
  process.on('exit', killAll)
  const ground = await enterGround(options.data === KEEP ? KEPT : options.data)
  try {
    const prepared: Run = { options, ground, accounts: makeAccounts(options.seed), progress, checkpoint }
    reserve(prepared)
    const wanted = ['clickhouse', 'postgres'] as const
    engines = await startEmbedded({
      dataDir: ground.folder,
      engines: wanted,
      fast: true,
      signal: stop.signal,
    })
    const results = await measureAll(prepared, engines)
    process.stdout.write(`${textOf(results)}\n`)
    write(results, options, (line) => progress.say(line))
    return results.failures.length === 0 ? 0 : 1
  } catch (error) {
    if (!interrupted) throw error
    return EXIT_INTERRUPTED
  } finally {
    await endAll()
    await engines?.stop()
    ground.leave()
  }
}

const main = async (): Promise<number> => {
  const options = parseOptions(process.argv.slice(2))
  if (!options.help) return run(options)
  process.stdout.write(usage())
  return 0
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`bench: ${error.message}\n`)
  return error instanceof UsageError ? EXIT_USAGE : 1
})
