/** What tests of the way from PostgreSQL to the call log share: rows to copy, copiers to kill, and the audit afterwards. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type ClickHouseClient, createClient } from '@clickhouse/client'
import type { Test } from 'tap'
import { type CopierEvent, type UsageCopier, usageCopier } from '../../../pipelines/call-log/usage-copy.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { type CallLog, openCallLog } from '../../../src/clickhouse/call-log.ts'
import type { Sql } from '../../../src/postgres/connection.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { newAccount, settlement, startDatabase } from '../../src/postgres/support.ts'
import { startEngines, type TestEngines } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { bookedByDay, loggedByDay } from '../../support/rollup.ts'

const CHILD = fileURLToPath(new URL('./killed-child.ts', import.meta.url))
const DECEMBER_END = Date.UTC(2025, 11, 31, 23, 59, 59, 999)
const MODELS = ['sonata-large', 'sonata-small', 'étude "n°1"\t\\N'] as const
const STATUSES = ['success', 'error', 'interrupted'] as const

/** Where a copier kills itself in `killed-child.ts`, and where a rebuild does. */
export type KillPoint = 'claimed' | 'between months' | 'inserted'
export type RebuildKillPoint = 'half done' | 'one of two tables exchanged' | 'exchanged'
/** The settings of `killed-child.ts`; `never` is a copier for tests that kill it from outside. */
export type DieAt = KillPoint | RebuildKillPoint | 'never'

export class CopyBench {
  readonly engines: TestEngines
  readonly database: Database
  readonly sql: Sql
  readonly callLog: CallLog
  readonly client: ClickHouseClient
  readonly account: string
  readonly keyId: string
  readonly keyPrefix: string
  readonly #t: Test
  readonly #url: string
  readonly #masterKey: Buffer
  booked = 0

  private constructor(of: {
    t: Test
    engines: TestEngines
    database: Database
    sql: Sql
    url: string
    masterKey: Buffer
    account: string
    key: { id: string; prefix: string }
  }) {
    this.#t = of.t
    this.engines = of.engines
    this.database = of.database
    this.sql = of.sql
    this.#url = of.url
    this.#masterKey = of.masterKey
    this.account = of.account
    this.keyId = of.key.id
    this.keyPrefix = of.key.prefix
    this.callLog = openCallLog(of.engines.clickhouseUrl)
    this.client = createClient({ url: of.engines.clickhouseUrl })
  }

  /** PostgreSQL and ClickHouse, one account and one key named `copied`. */
  static async open(t: Test): Promise<CopyBench> {
    const engines = await startEngines(t, { only: ['clickhouse'], withCallLog: true })
    const opened = await startDatabase(t)
    const account = await newAccount(opened.database)
    const { key } = await opened.database.keys.create({ accountId: account, name: 'copied' })
    const bench = new CopyBench({ t, engines, ...opened, account, key })
    t.teardown(() => Promise.all([bench.callLog.close(), bench.client.close()]))
    return bench
  }

  /** From now on the ids of booked rows are 1, 2, 3 and so on. */
  async countIds(): Promise<void> {
    await this.sql.unsafe(`
      CREATE OR REPLACE FUNCTION advance_usage_row_ids() RETURNS void LANGUAGE sql AS 'SELECT';
      ALTER SEQUENCE usage_row_ids INCREMENT BY 1;
      ALTER TABLE usage_rows ALTER COLUMN id SET DEFAULT nextval('usage_row_ids')`)
  }

  /** Rows on both sides of the turn of a month, of several models and statuses. */
  async book(count: number, more: Partial<Settlement> = {}): Promise<void> {
    const calls = Array.from({ length: count }, (_, index) =>
      settlement(this.account, {
        key_id: this.keyId,
        created_at: DECEMBER_END + (index % 2),
        model: MODELS[index % MODELS.length]!,
        status: STATUSES[(this.booked + index) % STATUSES.length]!,
        cost: '100',
        session_id: index % 3 === 0 ? null : `run ${index}`,
        ...more,
      }),
    )
    await this.database.bookings.book(calls)
    this.booked += count
  }

  /** Rows that the log has; throws while ClickHouse is away. */
  async copied(): Promise<number> {
    const [count] = await this.#logged<{ rows: string }>('SELECT toString(count()) AS rows FROM calls')
    return Number(count!.rows)
  }

  /** All is copied, and PostgreSQL knows it. */
  async untilCopied(): Promise<void> {
    await until('all rows copied', async () => {
      const [mark] = await this.sql<[{ is_done: boolean }]>`
        SELECT claimed_upto IS NULL AND copied_upto = (SELECT max(id) FROM usage_rows) AS is_done FROM usage_copy`
      return mark.is_done
    })
  }

  async #logged<Row>(query: string): Promise<Row[]> {
    const answer = await this.client.query({ query, format: 'JSONEachRow' })
    return answer.json<Row>()
  }

  /** The log has the rows of PostgreSQL, each once; the rollup and the ledger say the same. */
  async assertOnce(t: Test): Promise<void> {
    const truth = await this.sql`
      SELECT id::text, request_id, coalesce(session_id, '') AS session_id FROM usage_rows ORDER BY usage_rows.id`
    const rows = await this.#logged(
      'SELECT toString(id) AS id, request_id, session_id FROM calls ORDER BY calls.id',
    )
    t.strictSame(rows, [...truth], 'the log has the rows of PostgreSQL')
    t.strictSame(
      await loggedByDay(this.client),
      await bookedByDay(this.sql),
      'the days have the sums of PostgreSQL',
    )
    const cost = BigInt(this.booked) * 100n
    const totals = await this.#logged(`
      SELECT account_id, toString(count()) AS rows, toString(toInt128(sum(cost) * 100000000)) AS cost_units
      FROM calls GROUP BY account_id`)
    const total = { account_id: this.account, rows: String(this.booked), cost_units: String(cost) }
    t.strictSame(totals, [total], 'the sums agree')
    const [ledger] = await this.sql<[{ charged: string }]>`
      SELECT sum(-amount)::text AS charged FROM ledger_entries WHERE kind = 'charge'`
    t.equal(BigInt(ledger.charged), cost, 'the ledger has charged the same')
    const report = await this.database.audits.verifyWallets(this.callLog)
    t.strictSame(report.differences, [], 'the audit agrees')
  }

  /** From now on an insert reaches the table of calls and fails before its sums by day; answers what repairs that. */
  async breakSums(): Promise<() => Promise<void>> {
    const [view] = await this.#logged<{ as_select: string }>(
      `SELECT as_select FROM system.tables WHERE name = 'calls_by_day_view'`,
    )
    const whole = view!.as_select
    const feed = async (query: string) => {
      await this.client.command({ query: `ALTER TABLE calls_by_day_view MODIFY QUERY ${query}` })
    }
    await feed(whole.replace('WHERE ', 'WHERE NOT throwIf(id > 0) AND '))
    return () => feed(whole)
  }

  /** A copier with a database session of its own: the session is its right to copy, and ends with the test. */
  async newCopier(t: Test, onEvent?: (event: CopierEvent) => void): Promise<UsageCopier> {
    const own = await this.openDatabase()
    const copier = usageCopier({ database: own, callLog: this.callLog, ...(onEvent && { onEvent }) })
    t.teardown(async () => {
      await copier.stop()
      await own.close()
    })
    copier.start()
    return copier
  }

  /** Another process's view of the database, its sessions and their rights. */
  openDatabase(): Promise<Database> {
    return openDatabase({ url: this.#url, masterKey: this.#masterKey })
  }

  /** A copier in a process of its own. It ends with the test. */
  spawnCopier(dieAt: DieAt): ChildProcess {
    const child = spawn(process.execPath, [CHILD], {
      env: {
        ...process.env,
        DIE_AT: dieAt,
        DATABASE_URL: this.#url,
        CLICKHOUSE_URL: this.engines.clickhouseUrl,
        MASTER_KEY: this.#masterKey.toString('hex'),
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    this.#t.teardown(() => child.kill('SIGKILL'))
    return child
  }

  /** A copier, or a rebuild, takes up what is booked, and is killed at this point of its work. */
  async dieAt(point: KillPoint | RebuildKillPoint): Promise<void> {
    const [, signal] = await once(this.spawnCopier(point), 'exit')
    if (signal !== 'SIGKILL') throw new Error(`was to be killed when ${point}, and ended otherwise`)
  }
}
