/** A settler makes the partitions of coming months at its start, and takes away the months beyond the retention. */
import t from 'tap'
import { migrate } from '../../../src/postgres/migrate.ts'
import { makeOld } from '../../src/postgres/partition-support.ts'
import { newAccount, settlement } from '../../src/postgres/support.ts'
import { connectTo } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { signIn } from '../../support/manage.ts'
import { startService, testConfig, until } from '../../support/service.ts'
import { say } from '../support.ts'

const MODELS = { fast: { simulate: 'tokens=2' } }
const RETENTION = 'retention: { calls_months: 2, ledger_months: 2 }'
const COMING_MONTHS = 3

interface Partition {
  readonly name: string
  readonly table: string
  readonly state: 'attached' | 'detached' | 'dropped'
  readonly from: string | null
}

t.test('retention', async (t) => {
  const engines = await startEngines(t)
  await migrate(engines.databaseUrl)
  const sql = connectTo(t, engines.databaseUrl)
  const service = await startService(t, { engines, config: testConfig(MODELS) })
  const accountId = await newAccount(service.database)
  const now = { submitted_at: Date.now(), created_at: Date.now() }
  await service.database.bookings.book([settlement(accountId, now), settlement(accountId, now)])
  const operator = await signIn(service, { role: 'operator' })
  const partitions = async (): Promise<Partition[]> => (await operator.send('GET', '/partitions')).body.data
  const calls = async () => (await partitions()).filter(({ table }) => table === 'usage_rows')

  await t.test('without a retention nothing goes, and coming months are there', async (t) => {
    const months = await calls()
    t.ok(months.every(({ state }) => state === 'attached'))
    const coming = months.filter(({ from }) => from !== null && Date.parse(from) > Date.now())
    t.ok(coming.length >= COMING_MONTHS - 1, `${coming.length} months are made ahead`)
  })

  await t.test('with one, the next start takes the old months away, and totals stay', async (t) => {
    await service.stop()
    await makeOld(sql)
    const other = await startService(t, { engines, config: testConfig(MODELS, RETENTION) })
    await until('the month of the old calls is gone', async () =>
      (await other.database.partitions.list()).some(
        ({ name, state }) => name === 'usage_rows_past' && state === 'dropped',
      ),
    )
    t.match(other.output(), /Retired a month/)
    const { key } = await other.newKey('1000000')
    t.equal((await other.chat(key, { model: 'fast', messages: say('hello') })).status, 200)
    await until('its row is booked', async () => {
      const [row] = await sql`SELECT count(*) AS rows FROM usage_rows`
      return Number(row?.rows) === 1
    })
    t.match(await other.database.audits.verifyWallets(), { ok: true })
  })
})
