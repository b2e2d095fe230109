import t from 'tap'
import { agentFile } from '../../../schemas/accounts/agent.ts'
import { newAccount, settlement, startDatabase } from './support.ts'
import { created, newVideo, settle } from './tasks/support.ts'

const AGENT = agentFile.parse({ name: 'Support', model: 'sonata', persona: 'Be polite.' })

const { database, engines, sql, openAnother } = await startDatabase(t)

/** What a listening process hears; `next` waits for it. */
async function listening() {
  const heard: string[] = []
  let wake = () => {}
  const hear = (what: string) => {
    heard.push(what)
    wake()
  }
  const other = await openAnother()
  const stop = await other.changes.listen({
    onChange: (kind, id) => hear(`${kind} ${id}`),
    onReset: () => hear('reset'),
  })
  const until = async (what: string) => {
    while (!heard.includes(what)) await new Promise<void>((resolve) => (wake = resolve))
  }
  return { heard, until, stop }
}

t.test('each administrative change is heard by another process', async (t) => {
  const { heard, until, stop } = await listening()
  const accountId = await newAccount(database)
  const { key } = await database.keys.create({ accountId, name: 'one' })
  const organization = await database.accounts.create({ name: 'Acme', kind: 'organization', credit: 0n })
  const agent = await database.agents.create(organization.account.id, AGENT)
  await until(`key ${key.id}`)
  const changes: [string, () => Promise<unknown>][] = [
    [`key ${key.id}`, () => database.keys.update(key.id, { enabled: false })],
    [`key ${key.id}`, () => database.keys.revoke(key.id)],
    [`account ${accountId}`, () => database.accounts.setEnabled(accountId, false)],
    [`account ${accountId}`, () => database.accounts.setLimits(accountId, { requestsPerMinute: 5 })],
    [`agent ${agent.id}`, () => database.agents.update(agent.id, { ...AGENT, persona: 'Be brief.' })],
    [`agent ${agent.id}`, () => database.agents.setState(agent.id, 'published')],
    [`agent ${agent.id}`, () => database.agents.setState(agent.id, 'deleted')],
    [`wallet ${accountId}`, () => database.wallets.topUp(accountId, 100_000_000_000n)],
    [`key ${key.id}`, () => sql`UPDATE api_keys SET name = 'by hand' WHERE id = ${key.id}`],
    [`account ${accountId}`, () => sql`UPDATE accounts SET enabled = true WHERE id = ${accountId}`],
    [`key ${key.id}`, () => sql`DELETE FROM api_keys WHERE id = ${key.id}`],
  ]
  for (const [expected, change] of changes) {
    heard.length = 0
    await change()
    await until(expected)
    t.same(heard, [expected])
  }
  await stop()
})

t.test('what a task cost a capped key', async (t) => {
  const { heard, until, stop } = await listening()
  const accountId = await newAccount(database)
  const cap = { kind: 'employee', spendCap: 1_000n } as const
  const { key } = await database.keys.create({ accountId, name: 'capped', ...cap })
  const task = await created(database, newVideo(accountId, { keyId: key.id, hold: 600n }))
  t.notOk(heard.includes(`wallet ${key.id}`))
  await settle(database, task, 450n)
  await until(`wallet ${key.id}`)
  t.match(await database.wallets.read([key.id]), [{ balance: 550n, used: 450n }])
  await stop()
})

t.test('a settlement is not announced here', async (t) => {
  const { heard, until, stop } = await listening()
  const accountId = await newAccount(database)
  await database.bookings.book([settlement(accountId)])
  await database.accounts.setEnabled(accountId, true)
  await until(`account ${accountId}`)
  t.same(heard, [`account ${accountId}`])
  await stop()
})

t.test('a change that is rolled back is not heard', async (t) => {
  const { heard, until, stop } = await listening()
  const accountId = await newAccount(database)
  await t.rejects(
    sql.begin(async (transaction) => {
      await transaction`UPDATE accounts SET name = 'never' WHERE id = ${accountId}`
      throw new Error('rolled back')
    }),
    { message: 'rolled back' },
  )
  await database.wallets.topUp(accountId, 100_000_000_000n)
  await until(`wallet ${accountId}`)
  t.same(heard, [`wallet ${accountId}`])
  await stop()
})

t.test('a listener whose connection was lost says so and hears again', async (t) => {
  const { heard, until, stop } = await listening()
  const accountId = await newAccount(database)
  t.same(heard, [], 'the first connection is no reset')
  await engines.stopEngine('postgres')
  await engines.startEngine('postgres')
  await until('reset')
  const again = await openAnother()
  await again.accounts.setEnabled(accountId, false)
  await until(`account ${accountId}`)
  t.equal(heard.filter((what) => what === 'reset').length, 1)
  await stop()
})
