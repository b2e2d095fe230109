import t from 'tap'
import { agentFile } from '../../../schemas/accounts/agent.ts'
import type { Failure } from '../../../schemas/failure.ts'
import { ONE_CREDIT, parseCredits } from '../../../schemas/money.ts'
import { generateApiKey } from '../../../src/core/keys/material.ts'
import { Credentials, UNKNOWN_KEY_TTL_MS } from '../../../src/credentials/credentials.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { isAway } from '../../../src/postgres/errors.ts'
import { openFresh, settlement, startDatabase } from '../../src/postgres/support.ts'

const AGENT = agentFile.parse({ name: 'Support', model: 'sonata', persona: 'Be polite.' })
const GRACE_MS = 60_000

/** Credentials over a real database whose answers can be held back, and whose questions are counted. */
function watched(database: Database) {
  let asked = 0
  let hold: Promise<void> = Promise.resolve()
  const clock = { now: 1_000_000 }
  const faults: unknown[] = []
  const findCredential: Database['keys']['findCredential'] = async (hash) => {
    asked++
    const found = await database.keys.findCredential(hash)
    await hold
    return found
  }
  const credentials = new Credentials({
    database: {
      keys: { lookupHash: database.keys.lookupHash, findCredential },
      wallets: database.wallets,
    },
    graceMs: () => GRACE_MS,
    recoveredCost: () => 0n,
    isAway,
    onFault: (error) => void faults.push(error),
    now: () => clock.now,
  })
  return {
    credentials,
    clock,
    faults,
    asked: () => asked,
    /** Answers read from here on arrive when the returned function is called. */
    holdAnswers(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      hold = promise
      return resolve
    },
  }
}

const codeOf = (work: () => unknown): string => {
  try {
    work()
    return 'no failure'
  } catch (error) {
    return (error as Failure).code
  }
}

t.test('credentials', async (t) => {
  const { engines, database } = await startDatabase(t)
  const { account } = await database.accounts.create({ name: 'one', credit: parseCredits('10') })
  const newKey = () => database.keys.create({ accountId: account.id, name: 'test' })

  await t.test('a known key is served without asking again', async (t) => {
    const { credentials, asked } = watched(database)
    const { raw, key } = await newKey()
    t.equal(credentials.peek(raw), undefined)
    const [first, second] = await Promise.all([credentials.load(raw), credentials.load(raw)])
    t.equal(first, second, 'who asks together is answered together')
    t.equal(credentials.peek(raw)?.key.id, key.id)
    t.equal(asked(), 1)
  })

  await t.test('keys of one account draw on one wallet view', async (t) => {
    const { credentials } = watched(database)
    const [one, two] = [await newKey(), await newKey()]
    const [a, b] = [await credentials.load(one.raw), await credentials.load(two.raw)]
    t.ok(a?.view.admit(ONE_CREDIT, true))
    t.equal(b?.view.inFlight, ONE_CREDIT)
  })

  await t.test('a call of a capped key is in flight once', async (t) => {
    const { credentials } = watched(database)
    const owner = await database.accounts.create({ name: 'capped', kind: 'organization', credit: ONE_CREDIT })
    const { raw } = await database.keys.create({
      accountId: owner.account.id,
      name: 'capped',
      kind: 'employee',
      spendCap: ONE_CREDIT,
    })
    const known = await credentials.load(raw)
    for (const view of [known?.view, known?.cap]) t.ok(view?.admit(ONE_CREDIT, true))
    t.equal(credentials.inFlight, ONE_CREDIT)
  })

  await t.test('what was changed is read again before it is served', async (t) => {
    const { credentials } = watched(database)
    const { raw, key } = await newKey()
    const view = (await credentials.load(raw))?.view
    await database.keys.update(key.id, { enabled: false })
    credentials.changed('key', key.id)
    t.equal(credentials.peek(raw), undefined)
    const again = await credentials.load(raw)
    t.equal(again?.key.enabled, false)
    t.equal(again?.view, view, 'its wallet view, with the calls in flight, stays')

    await database.accounts.setEnabled(account.id, false)
    credentials.changed('account', account.id)
    t.equal((await credentials.load(raw))?.account.enabled, false)
    const organization = await database.accounts.create({ name: 'two', kind: 'organization', credit: 0n })
    const agent = await database.agents.create(organization.account.id, AGENT)
    const bound = await database.keys.create({
      accountId: organization.account.id,
      name: 'bound',
      kind: 'agent',
      agentId: agent.id,
    })
    t.match((await credentials.load(bound.raw))?.agent, agent)
    const published = await database.agents.setState(agent.id, 'published')
    credentials.changed('agent', agent.id)
    t.equal(credentials.peek(bound.raw), undefined)
    t.match((await credentials.load(bound.raw))?.agent, published)
    t.equal((await credentials.load(raw))?.agent, null)

    await database.accounts.setEnabled(account.id, true)
    credentials.reset()
    t.equal(credentials.peek(raw), undefined, 'after a reset, everything is')
    t.equal((await credentials.load(raw))?.account.enabled, true)
  })

  await t.test('keys of one account share its budget, which follows changes and bookings', async (t) => {
    const { credentials } = watched(database)
    const { account: payer } = await database.accounts.create({ name: 'three', credit: ONE_CREDIT })
    const create = () => database.keys.create({ accountId: payer.id, name: 'test' })
    const [one, two] = [await create(), await create()]
    t.same((await credentials.load(one.raw))?.budgets, [])
    const put = (amount: bigint) =>
      database.budgets.put({
        accountId: payer.id,
        scope: 'account',
        subjectId: payer.id,
        amount,
        period: 'month',
        timezone: 'UTC',
      })
    const { budget } = await put(100n)
    credentials.changed('account', payer.id)
    const [a, b] = [await credentials.load(one.raw), await credentials.load(two.raw)]
    const now = Date.now()
    const period = a!.budgets[0]!.at(now)
    t.equal(b!.budgets[0]!.at(now), period)
    t.ok(credentials.walletIds.includes(budget.id))
    period.admit(40n, true)
    period.end(40n, 30n)
    t.equal(period.balance, 70n)
    const call = { key_id: one.key.id, cost: '30', submitted_at: now }
    const { wallets } = await database.bookings.book([settlement(payer.id, call)])
    credentials.booked(
      new Map([
        [one.key.id, 30n],
        [payer.id, 30n],
      ]),
      wallets,
    )
    t.same([period.unbooked, period.balance], [0n, 70n], 'booked in the step that brings the totals')
    await database.bookings.book([settlement(payer.id, { ...call, key_id: two.key.id, cost: '20' })])
    await credentials.refreshWallets(credentials.walletIds)
    t.equal(period.balance, 50n, 'what a lost message would have brought')
    await put(200n)
    credentials.changed('account', payer.id)
    t.equal(credentials.peek(two.raw), undefined)
    t.equal((await credentials.load(two.raw))!.budgets[0]!.at(now), period)
    t.equal(period.balance, 150n)
    await database.budgets.delete(budget.id)
    credentials.changed('account', payer.id)
    t.same((await credentials.load(two.raw))?.budgets, [])
  })

  await t.test('an answer that a change has overtaken is not kept', async (t) => {
    const { credentials, holdAnswers } = watched(database)
    const { raw, key } = await newKey()
    const arrive = holdAnswers()
    const loading = credentials.load(raw)
    await database.keys.update(key.id, { name: 'renamed' })
    credentials.changed('key', key.id)
    arrive()
    await loading
    t.equal(credentials.peek(raw), undefined)
    t.equal((await credentials.load(raw))?.key.name, 'renamed')
  })

  await t.test('a key that does not exist is asked for once in a while, unless a key changes', async (t) => {
    const { credentials, asked, clock } = watched(database)
    const unknown = generateApiKey()
    t.equal(await credentials.load(unknown), null)
    t.equal(await credentials.load(unknown), null)
    t.equal(asked(), 1)
    clock.now += UNKNOWN_KEY_TTL_MS
    await credentials.load(unknown)
    t.equal(asked(), 2)
    credentials.changed('key', 'key_made_just_now')
    await credentials.load(unknown)
    t.equal(asked(), 3)
  })

  await t.test('a key that was made while it was asked for is not taken for unknown', async (t) => {
    const { credentials, asked, holdAnswers } = watched(database)
    const unknown = generateApiKey()
    const arrive = holdAnswers()
    const loading = credentials.load(unknown)
    credentials.changed('key', 'key_made_just_now')
    arrive()
    t.equal(await loading, null)
    await credentials.load(unknown)
    t.equal(asked(), 2)
  })

  await t.test('a booking takes the cost out of what is unbooked as it brings the totals', async (t) => {
    const { credentials } = watched(database)
    const { raw } = await newKey()
    const { view } = (await credentials.load(raw))!
    const before = view.balance
    const cost = parseCredits('0.5')
    view.admit(cost, true)
    view.end(cost, cost)
    t.equal(view.balance, before - cost)
    const { wallets } = await database.bookings.book([settlement(account.id, { cost: cost.toString() })])
    credentials.booked(new Map([[account.id, cost]]), wallets)
    t.equal(view.balance, before - cost)
    t.equal(view.unbooked, 0n)
    credentials.update([{ ...wallets[0]!, balance: 0n, version: 0n }])
    t.equal(view.balance, before - cost, 'totals that arrive late change nothing')

    await database.wallets.topUp(account.id, parseCredits('404.4'))
    await credentials.refreshWallets([account.id, 'acc_nobody_asked_for'])
    t.equal(view.balance, before - cost + parseCredits('404.4'))
  })

  await t.test('a capped key has a view of what its cap leaves, true after each booking', async (t) => {
    const { credentials } = watched(database)
    const wanted = { accountId: account.id, name: 'capped', kind: 'employee' } as const
    const { raw, key } = await database.keys.create({ ...wanted, spendCap: parseCredits('5') })
    const known = (await credentials.load(raw))!
    t.equal(known.cap?.balance, parseCredits('5'))
    const [estimate, cost] = [parseCredits('2'), parseCredits('0.5')]
    known.cap?.admit(estimate, true)
    known.cap?.end(estimate, cost)
    const ended = settlement(account.id, { key_id: key.id, cost: cost.toString() })
    const { wallets } = await database.bookings.book([ended])
    const costs = new Map([
      [account.id, 0n],
      [key.id, cost],
    ])
    credentials.booked(costs, wallets)
    t.equal(known.cap?.balance, parseCredits('4.5'))
    t.equal(known.cap?.unbooked, 0n)

    await database.bookings.book([{ ...ended, request_id: 'req_of_another_process' }])
    await credentials.refreshWallets(credentials.walletIds)
    t.equal(known.cap?.balance, parseCredits('4'), 'read again')

    await database.keys.update(key.id, { spendCap: parseCredits('1.5') })
    credentials.changed('key', key.id)
    t.equal((await credentials.load(raw))?.cap, known.cap, 'a view that is there stays')
    t.equal(known.cap?.balance, parseCredits('0.5'))
    await database.keys.update(key.id, { spendCap: null })
    credentials.changed('key', key.id)
    t.equal((await credentials.load(raw))?.cap, null)
  })

  await t.test('without PostgreSQL, known keys are served for a time, others are not', async (t) => {
    const { database: doomed } = await openFresh(t, engines)
    const { account } = await doomed.accounts.create({ name: 'two', credit: 0n })
    const { raw, key } = await doomed.keys.create({ accountId: account.id, name: 'test' })
    const { credentials, clock } = watched(doomed)
    await credentials.load(raw)
    await doomed.close()
    await t.rejects(credentials.load(generateApiKey()), { code: 'service_unavailable' })
    t.equal(credentials.peek(raw)?.key.id, key.id)
    credentials.changed('key', key.id)
    t.equal(
      (await credentials.load(raw))?.key.id,
      key.id,
      'what may have changed cannot be read, and is served',
    )
    clock.now += GRACE_MS
    t.equal((await credentials.load(raw))?.key.id, key.id)
    clock.now += 1
    await t.rejects(credentials.load(raw), { code: 'service_unavailable' })
    credentials.onDatabaseFound()
    credentials.onDatabaseLost()
    t.equal((await credentials.load(raw))?.key.id, key.id, 'the time restarts with each loss')
    clock.now += GRACE_MS + 1
    t.equal(
      codeOf(() => credentials.peek(raw)),
      'no failure',
      'a stale key is for load to answer',
    )
    await t.rejects(credentials.load(raw), { code: 'service_unavailable' })
  })

  await t.test('a key that cannot be read while PostgreSQL answers is not served as it was', async (t) => {
    const { database: broken, sql } = await openFresh(t, engines)
    const { account } = await broken.accounts.create({ name: 'three', credit: 0n })
    const { raw, key } = await broken.keys.create({ accountId: account.id, name: 'test' })
    const { credentials, faults } = watched(broken)
    await credentials.load(raw)
    await sql`ALTER TABLE wallets RENAME TO former_wallets`
    credentials.changed('key', key.id)
    await t.rejects(credentials.load(raw), { code: /^42/ })
    await credentials.refreshWallets([account.id])
    t.match(faults, [{ code: /^42/ }])
  })
})
