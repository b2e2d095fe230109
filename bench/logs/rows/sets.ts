/** Builds the two sets of rows, completes those of an interrupted run, or uses those of an earlier run. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import type { Sql } from '../../../src/postgres/connection.ts'
import type { Statements } from '../engines/clickhouse-statements.ts'
import type { Options } from '../options.ts'
import type { BuiltSet } from '../report/results.ts'
import { assertWhole, callLogBytes, fillCallLog, keepWholeYears, settleParts } from './clickhouse-tables.ts'
import type { Ground, Made, Mark, MarkName } from './data-folder.ts'
import { rowsSql } from './generator.ts'
import { type Account, END_MS } from './population.ts'
import { buildTable, tableBytes } from './postgres-table.ts'
import type { Progress } from './progress.ts'

/** The sets and their folder. */
interface SetWanted {
  readonly ground: Ground
  readonly options: Options
  readonly accounts: readonly Account[]
}

export interface SetDeps extends SetWanted {
  readonly statements: Statements
  readonly progress: Progress
  /** Throws to end the work. */
  checkpoint(): void
}

const MIGRATIONS = new URL('../../../src/clickhouse/migrations/', import.meta.url)
/** The limit for merging: a share of the time to fill, and at least this. */
const SETTLE_LEAST_MS = 20_000
const SETTLE_PART = 0.5
const MS_PER_SECOND = 1_000

/** Identifies a set by its rows and by how they are generated. */
const makeMark = ({ options: { seed }, accounts }: SetWanted, total: number, more: Mark): Mark => {
  const generator = rowsSql({ seed, accounts, total, from: 0, to: 1, before: END_MS })
  return { total, generator: createHash('sha256').update(generator).digest('hex'), ...more }
}

/** The exact statements of the tables. */
const migrationsDigest = (): string => {
  const hash = createHash('sha256')
  for (const file of readdirSync(MIGRATIONS).sort())
    hash.update(file).update(readFileSync(new URL(file, MIGRATIONS)))
  return hash.digest('hex')
}

const callLogMark = (deps: SetWanted): Mark =>
  makeMark(deps, deps.options.rows, { migrations: migrationsDigest() })
const tableMark = (deps: SetWanted): Mark => makeMark(deps, deps.options.postgresRows, {})

const holdsCallLog = (deps: SetWanted): boolean => deps.ground.holds('clickhouse', callLogMark(deps))
const holdsTable = (deps: SetWanted): boolean => deps.ground.holds('postgres', tableMark(deps))

/** The sets that are not built yet. */
export const missingRows = (wanted: SetWanted): { rows: number; postgresRows: number } => ({
  rows: holdsCallLog(wanted) ? 0 : wanted.options.rows,
  postgresRows: holdsTable(wanted) ? 0 : wanted.options.postgresRows,
})

const dropAll = async (statements: Statements): Promise<void> => {
  const tables = await statements.rows<{ name: string }>(`
    SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY engine = 'MaterializedView' DESC`)
  for (const { name } of tables) await statements.run(`DROP TABLE IF EXISTS ${name} SYNC`)
}

/** Creates empty tables, or keeps those of an interrupted run with the same options. Returns the number of stored rows. */
const prepareTables = async (deps: SetDeps, log: CallLog): Promise<number> => {
  const { ground, statements, options } = deps
  const mark = callLogMark(deps)
  if (!ground.holds('clickhouse-begun', mark)) {
    ground.forget('clickhouse')
    ground.forget('clickhouse-begun')
    await dropAll(statements)
    await log.migrate()
    ground.note('clickhouse-begun', mark)
    return 0
  }
  await log.migrate()
  return keepWholeYears(statements, options.rows)
}

const fill = async (deps: SetDeps, log: CallLog): Promise<string> => {
  const { options, accounts, statements, progress, checkpoint } = deps
  const startedAt = performance.now()
  const present = await prepareTables(deps, log)
  if (present > 0) progress.say(`call log: ${present.toLocaleString('en-US')} rows exist already`)
  const onRows = progress.rows('call log', options.rows, present)
  await fillCallLog(statements, {
    seed: options.seed,
    accounts,
    total: options.rows,
    present,
    onRows: (rows) => {
      onRows(rows)
      checkpoint()
    },
  })
  const limitMs = Math.max(SETTLE_LEAST_MS, (performance.now() - startedAt) * SETTLE_PART)
  const { unmerged, parts, partitions } = await settleParts(statements, limitMs, (partition) => {
    checkpoint()
    progress.show(`call log: merging ${partition}`)
  })
  await assertWhole(statements, options.rows)
  return `${parts} parts in ${partitions} partitions, ${unmerged} of them with more than one`
}

/** Returns the set, and builds it if it does not exist. */
const made = async (
  ground: Ground,
  name: MarkName,
  mark: Mark,
  make: () => Promise<string>,
): Promise<Made> => {
  const before = ground.holds(name, mark) ? ground.made(name) : null
  if (before !== null) return before
  ground.forget(name)
  const startedAt = performance.now()
  const note = await make()
  const now = { seconds: (performance.now() - startedAt) / MS_PER_SECOND, note }
  ground.note(name, mark, now)
  return now
}

const line = (what: string, { rows, reused, seconds, note }: BuiltSet): string =>
  `${what}: ${rows.toLocaleString('en-US')} rows ${reused ? 'are there' : `in ${Math.round(seconds)} s`}; ${note}`

/** Throws when the built set is wrong. */
export const buildCallLog = async (deps: SetDeps, log: CallLog): Promise<BuiltSet> => {
  const { ground, options, statements, progress } = deps
  const reused = holdsCallLog(deps)
  if (reused) await log.migrate()
  const how = await made(ground, 'clickhouse', callLogMark(deps), () => fill(deps, log))
  const set = { rows: options.rows, bytes: await callLogBytes(statements), reused, ...how }
  progress.say(line('call log', set))
  return set
}

const fillTable = async (deps: SetDeps, sql: Sql, total: number): Promise<void> => {
  const { options, accounts, statements, progress, checkpoint } = deps
  const onRows = progress.rows('PostgreSQL', total, 0)
  await buildTable(sql, statements, {
    seed: options.seed,
    accounts,
    total,
    onRows: (rows) => {
      onRows(rows)
      checkpoint()
    },
    onIndex: (index) => progress.show(`PostgreSQL: index ${index}`),
  })
}

/** Returns null for a run without PostgreSQL. ClickHouse generates the rows. `note` describes the server's settings. */
export const buildPlainTable = async (deps: SetDeps, sql: Sql, note: string): Promise<BuiltSet | null> => {
  const total = deps.options.postgresRows
  if (total === 0) return null
  const reused = holdsTable(deps)
  const how = await made(deps.ground, 'postgres', tableMark(deps), async () => {
    await fillTable(deps, sql, total)
    return note
  })
  const set = { rows: total, bytes: await tableBytes(sql), reused, ...how }
  deps.progress.say(line('PostgreSQL', set))
  return set
}
