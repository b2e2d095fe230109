/**
 * The bench of the ledger at size: how long the upgrade to partitions takes and for how long calls wait for it, then an
 * audit of everything, an audit of one day, making partitions, and taking old months away. It starts its own PostgreSQL.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from '../../src/embedded/start.ts'
import { verifyWallets } from '../../src/postgres/billing/verify.ts'
import { connect, type Sql } from '../../src/postgres/connection.ts'
import { migrate, readMigrations } from '../../src/postgres/migrate.ts'
import { retirePartitions } from '../../src/postgres/partitions/retire.ts'
import { FLAG, givenOptions, TEXT, wholeNumber } from '../harness/command-line.ts'
import { ROOT } from '../harness/machine.ts'
import { type Control, interruptible, runProgram, sayOnStderr, withFacts } from '../harness/program.ts'
import { enterWorkFolder } from '../harness/work-folder.ts'
import { runLines } from '../report/report.ts'
import { type Timed, timed } from './pauses.ts'
import { addCalls, addYear, chargedCalls, listAccounts } from './rows.ts'

const DEFAULT_ROWS = 1_000_000
const LEAST_ROWS = 10_000
const MOST_ROWS = 200_000_000
/** Migrations before there were partitions. */
const BEFORE_PARTITIONS = 22
const UPGRADE_STEPS = ['bounds of the past', 'rows are checked', 'partitioned tables take their place']
const DAY_MS = 86_400_000
const DAYS = 365

const USAGE = `npm run bench:ledger -- [options]

  --rows N       calls of a year (default 1m); 100m need some 60 GB of disk
  --prepare DIR  write the rows into a new folder, and measure nothing
  --data DIR     measure with the rows that --prepare wrote; they are used up
  --out DIR      write the results there (default bench/results)
  --help         this text
`

interface Row {
  readonly what: string
  readonly seconds: number
  readonly longestMs: number
}

interface Measured {
  readonly rows: number
  readonly found: readonly Row[]
}

interface Options {
  readonly help: boolean
  readonly rows: number
  readonly prepare: string | null
  readonly data: string | null
  readonly out: string
}

/** Makes the tables of the version before partitions, and fills them. */
async function prepare(url: string, rows: number, { checkpoint }: Control): Promise<void> {
  await migrate(url, readMigrations().slice(0, BEFORE_PARTITIONS), [])
  sayOnStderr(`${rows.toLocaleString('en-US')} calls …`)
  const sql = connect(url, { max: 2, name: 'bench' })
  try {
    await addYear(sql, rows, Date.now() - DAY_MS, checkpoint)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function measure(url: string, { checkpoint }: Control): Promise<Measured> {
  const sql = connect(url, { max: 2, name: 'bench' })
  const probing = connect(url, { max: 1, name: 'bench probe' })
  const found: Row[] = []
  const step = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    sayOnStderr(`${what} …`)
    const { value, ms, longestMs }: Timed<T> = await timed(probing, work)
    found.push({ what, seconds: ms / 1000, longestMs })
    checkpoint()
    return value
  }
  try {
    const rows = await chargedCalls(sql)
    const now = Date.now()
    for (const [part, name] of UPGRADE_STEPS.entries())
      await step(`upgrade: ${name}`, () =>
        migrate(url, readMigrations().slice(0, BEFORE_PARTITIONS + part + 1), []),
      )
    await step('upgrade: functions, the partitions of four months, the index by time', () => migrate(url))
    audited(await step('audit of everything', () => verifyWallets(sql, undefined)))
    // Nothing was written between the year and the audit: the next one reads the day.
    await sql`UPDATE verified SET marked_at = ${new Date(now - DAY_MS)}`
    const day = Math.ceil(rows / DAYS)
    await addCalls(
      sql,
      listAccounts(rows),
      { first: rows, count: day, from: now - DAY_MS, to: now },
      checkpoint,
    )
    await sql`ANALYZE usage_rows, ledger_entries`
    const changes = await step(`audit of one day, ${day.toLocaleString('en-US')} calls`, () =>
      verifyWallets(sql, undefined, { isIncremental: true }),
    )
    if (changes.since === undefined) throw new Error('the audit of one day read everything')
    audited(changes)
    await sql`UPDATE usage_copy SET copied_upto = (SELECT max(id) FROM usage_rows)`
    await endPast(sql)
    const { retired, waiting } = await step(
      'retention: audit of what was written since, and drop of the year',
      () =>
        retirePartitions(sql, {
          months: { usage_rows: 2, ledger_entries: 2, audit_entries: null, tasks: null },
          detaches: false,
        }),
    )
    if (retired.length !== 2) throw new Error(`not retired: ${JSON.stringify(waiting)}`)
    audited(await step('audit of everything without the year', () => verifyWallets(sql)))
    return { rows, found }
  } finally {
    await Promise.all([sql, probing].map((pool) => pool.end({ timeout: 1 })))
  }
}

function audited({ ok, differences }: Awaited<ReturnType<typeof verifyWallets>>): void {
  if (!ok) throw new Error(`the books differ: ${JSON.stringify(differences.slice(0, 3))}`)
}

/** Makes the partition of the past old enough for retention: it has all rows of the run. */
async function endPast(sql: Sql): Promise<void> {
  await sql`
    UPDATE partitions SET ends_at = months_later(date_trunc('month', now(), 'UTC'), -2) WHERE name LIKE '%\\_past'`
}

const page = (lines: readonly string[], rows: number, found: readonly Row[]): string => `# The ledger at size

${lines.map((line) => `- ${line}`).join('\n')}

${rows.toLocaleString('en-US')} calls of a year, each with its charge.

| step | seconds | longest wait of a booking meanwhile, ms |
|---|---|---|
${found.map(({ what, seconds, longestMs }) => `| ${what} | ${seconds.toFixed(1)} | ${longestMs.toFixed(0)} |`).join('\n')}

- A booking every 2 ms beside each step takes the lock of bookings and inserts a charge. Its longest time includes what the
  machine did besides.
- Rows are written straight into the tables of the version before, evenly over a year.
- An audit of one day is one of what was written since the audit of everything.
- Retention takes the partition of the past away, which has all rows of the run. Before, it reads everything, unless an audit
  of everything has on the day before.
`

function parseOptions(args: string[]): Options {
  const given = givenOptions(args, { help: FLAG, rows: TEXT, prepare: TEXT, data: TEXT, out: TEXT })
  return {
    help: given.help ?? false,
    rows: given.rows === undefined ? DEFAULT_ROWS : wholeNumber('rows', given.rows, LEAST_ROWS, MOST_ROWS),
    prepare: given.prepare ?? null,
    data: given.data ?? null,
    out: given.out ?? join(ROOT, 'bench/results'),
  }
}

async function inEngines<T>(
  folder: string,
  { signal }: Control,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const engines = await startEmbedded({ dataDir: folder, engines: ['postgres'], signal })
  try {
    return await work(engines.urls.databaseUrl!)
  } finally {
    await engines.stop()
  }
}

const run = (options: Options): Promise<number> =>
  interruptible(sayOnStderr, async (control) => {
    const work = await enterWorkFolder(options.prepare ?? options.data)
    try {
      if (options.data === null)
        await inEngines(work.folder, control, (url) => prepare(url, options.rows, control))
      if (options.prepare !== null) return 0
      const { rows, found, ...facts } = await withFacts(sayOnStderr, () =>
        inEngines(work.folder, control, (url) => measure(url, control)),
      )
      const text = page(runLines(facts, `${rows.toLocaleString('en-US')} calls`), rows, found)
      mkdirSync(options.out, { recursive: true })
      writeFileSync(join(options.out, 'ledger.md'), text)
      process.stdout.write(text)
      return 0
    } finally {
      work.leave()
    }
  })

await runProgram(parseOptions, () => USAGE, run)
