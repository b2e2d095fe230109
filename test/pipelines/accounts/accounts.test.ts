/** What an account reads of itself: balance, billing, usage and models; and credentials that follow changes. */

import fc from 'fast-check'
import t, { type Test } from 'tap'
import { noteSecretUses } from '../../../pipelines/accounts/secret-uses.ts'
import { assertUsable } from '../../../pipelines/calls/authenticate.ts'
import type { Account } from '../../../schemas/accounts/account.ts'
import { agentFile } from '../../../schemas/accounts/agent.ts'
import * as billing from '../../../schemas/accounts/billing.ts'
import type { ApiKey } from '../../../schemas/accounts/key.ts'
import { type UsageReport, usageReport } from '../../../schemas/accounts/usage.ts'
import { configFile } from '../../../schemas/config/file.ts'
import type { Failure } from '../../../schemas/failure.ts'
import { ONE_CREDIT, parseCredits } from '../../../schemas/money.ts'
import { generateApiKey } from '../../../src/core/keys/material.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { BudgetView } from '../../../src/credentials/budget.ts'
import { Credentials, UNKNOWN_KEY_TTL_MS } from '../../../src/credentials/credentials.ts'
import type { WalletView } from '../../../src/credentials/wallet.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { isAway } from '../../../src/postgres/errors.ts'
import { bookedCall } from '../../src/clickhouse/support.ts'
import { newAccount, settlement, startDatabase } from '../../src/postgres/support.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { walletView } from '../../support/known-key.ts'
import { jsonOf } from '../../support/reply-to.ts'
import { usageText } from '../../support/usage-text.ts'
import {
  balance,
  billingSubscription,
  billingUsage,
  contentModel,
  contentModels,
  creditGrants,
  model,
  models,
  publicModels,
  usage,
} from './support.ts'

t.test('balance', async (t) => {
  const read = (view: WalletView, cap: WalletView | null = null) => jsonOf(balance({ view, cap }))

  t.test('the wallet in decimal strings, and total is the sum', async (t) => {
    t.strictSame(await read(walletView('100.5', '1.25', '19.57')), {
      object: 'key.balance',
      currency: 'points',
      remaining: '100.5',
      used: '19.57',
      total: '121.32',
      held: '1.25',
    })
  })

  t.test('an empty wallet and an overdrawn one answer as well', async (t) => {
    t.match(await read(walletView('0')), { remaining: '0', total: '0' })
    t.match(await read(walletView('-0.5', '0', '121.82')), {
      remaining: '-0.5',
      total: '121.32',
    })
  })

  t.test('a call that ended and is not booked yet has been paid already', async (t) => {
    const view = walletView('10', '0', '5')
    const cost = parseCredits('2')
    view.admit(cost, true)
    t.match(await read(view), { remaining: '10', used: '5' }, 'an estimate is no charge')
    view.end(cost, cost)
    t.match(await read(view), { remaining: '8', used: '7', total: '15' })
  })

  t.test('budgets show what is spent, what is not booked yet included, and when they reset', async (t) => {
    const [midnight, next] = [Date.UTC(2026, 10, 24), Date.UTC(2026, 10, 25)]
    const budget = new BudgetView({
      budget: {
        id: 'bud_a',
        accountId: 'acc_a',
        scope: 'member',
        subjectId: 'acc_b',
        amount: parseCredits('5'),
        period: 'day',
        timezone: 'UTC',
      },
      starts: [midnight, next],
      totals: {
        ...walletView('3.5', '0', '1.5').totals,
        accountId: `bud_a@${midnight}`,
      },
    })
    const wallet = walletView('100')
    budget.at(midnight).admit(parseCredits('2'), true)
    budget.at(midnight).end(parseCredits('2'), parseCredits('0.25'))
    const shown = { id: 'bud_a', scope: 'member', amount: '5', period: 'day', timezone: 'UTC' }
    const readAt = (at: number) => jsonOf(balance({ view: wallet, cap: null, budgets: [budget] }, at))
    t.match(await readAt(next - 1), {
      remaining: '100',
      budgets: [{ ...shown, spent: '1.75', resets_at: '2026-11-25T00:00:00.000Z' }],
    })
    t.match(await readAt(next), { budgets: [{ ...shown, spent: '0', resets_at: null }] })
  })

  t.test('a capped key shows its cap and what of it is spent, what is not booked yet counted', async (t) => {
    const cap = walletView('3.5', '0', '1.5')
    cap.admit(parseCredits('2'), true)
    cap.end(parseCredits('2'), parseCredits('0.25'))
    t.match(await read(walletView('100'), cap), {
      remaining: '100',
      spend_cap: '5',
      spent: '1.75',
    })
  })
})

t.test('billing and usage', async (t) => {
  // What was used, in our own shape and in those of third-party chat clients.
  const NOW = Date.UTC(2026, 2, 10, 15, 30, 0, 250)
  const DAY_MS = 86_400_000

  const of = (id: string, key: Partial<ApiKey> = {}) => ({
    account: { id } as Account,
    key: { kind: 'console', ...key } as ApiKey,
  })
  const reading = (view: WalletView, key: Partial<ApiKey> = {}, cap: WalletView | null = null) => ({
    key: { kind: 'console', expiresAt: null, grant: null, ...key } as ApiKey,
    view,
    cap,
  })

  t.test('the wallet in the shapes of chat clients: numbers, and one credit reads as 1', async (t) => {
    const view = walletView('100.5', '1.25', '19.57')
    t.strictSame(await jsonOf(billingSubscription(reading(view))), {
      object: 'billing_subscription',
      has_payment_method: true,
      hard_limit_usd: 121.32,
      soft_limit_usd: 121.32,
      system_hard_limit_usd: 121.32,
      access_until: 253402300799,
    })
    t.strictSame(await jsonOf(creditGrants(reading(view))), {
      object: 'credit_summary',
      total_granted: 121.32,
      total_used: 19.57,
      total_available: 100.5,
    })
    const expiring = billingSubscription(reading(view, { expiresAt: new Date('2026-12-31T00:00:00.900Z') }))
    t.match(await jsonOf(expiring), { access_until: Date.UTC(2026, 11, 31) / 1000 })
  })

  t.test('an overdrawn wallet answers as well, and what is not booked yet counts as used', async (t) => {
    t.match(await jsonOf(creditGrants(reading(walletView('-0.5', '0', '121.82')))), {
      total_granted: 121.32,
      total_available: -0.5,
    })
    const view = walletView('10', '0', '5')
    view.admit(parseCredits('2'), true)
    view.end(parseCredits('2'), parseCredits('2.00000001'))
    t.match(await jsonOf(creditGrants(reading(view))), {
      total_granted: 15,
      total_used: 7.00000001,
      total_available: 7.99999999,
    })
    t.match(await jsonOf(billingSubscription(reading(view))), { hard_limit_usd: 15 })
  })

  t.test('an employee sees its own key, not the wallet of the organization', async (t) => {
    const wallet = walletView('1000', '7', '500')
    const capped = reading(wallet, { kind: 'employee' }, walletView('60', '0', '40'))
    t.match(await jsonOf(creditGrants(capped)), { total_granted: 100, total_used: 40, total_available: 60 })
    t.match(await jsonOf(billingSubscription(capped)), { hard_limit_usd: 100 })
    const nobody = { memberId: null, approvedBy: null }
    const spent = parseCredits('3')
    const grant = { keyId: 'key_a', accountId: 'acc_a', ...nobody, spendCap: null, spent, version: 1n }
    const uncapped = reading(wallet, { kind: 'employee', grant })
    t.match(await jsonOf(creditGrants(uncapped)), {
      total_granted: 1003,
      total_used: 3,
      total_available: 1000,
    })
    const later = { ...uncapped.key, grant: { ...grant, spent: parseCredits('8') } }
    const keys = { show: async () => later }
    t.match(
      await jsonOf(creditGrants(uncapped, { keys })),
      { total_granted: 1008, total_used: 8 },
      'as booked',
    )
    t.match(await jsonOf(billingSubscription(uncapped, { keys })), { hard_limit_usd: 1008 })
  })

  t.test('what was used in a window of time', async (t) => {
    const engines = await startEngines(t, { only: ['clickhouse'], withCallLog: true })
    const callLog = callLogAt(t, engines.clickhouseUrl)
    const at = (day: number, ms = 0) => Date.UTC(2026, 2, day) + ms
    await callLog.insertCalls({
      token: 'usage-test',
      text: usageText([
        bookedCall(1, { created_at: Date.UTC(2025, 5, 1), cost: '100000000' }),
        bookedCall(2, { created_at: at(1), cost: '1', cached_tokens: 4 }),
        bookedCall(3, { created_at: at(2, -1), cost: '250000000', model: 'étude' }),
        bookedCall(4, { created_at: at(2, -1), cost: '250000001' }),
        bookedCall(5, { created_at: at(9), key_id: 'key_b', cost: '1941000000', input_tokens: 0 }),
        bookedCall(6, {
          created_at: at(10),
          status: 'rejected',
          cost: '0',
          input_tokens: 0,
          output_tokens: 0,
        }),
        bookedCall(7, { created_at: NOW, cost: '3', attempts_count: 3 }),
        bookedCall(8, { created_at: at(9), account_id: 'acc_z', cost: '77' }),
      ]),
    })

    const report = async (query: string, id = 'acc_a', key: Partial<ApiKey> = {}): Promise<UsageReport> => {
      const handler = usage({ callLog, now: () => NOW })
      return usageReport.parse(await jsonOf(handler(of(id, key), { query })))
    }
    const costs = async (query: string, id = 'acc_a', key: Partial<ApiKey> = {}) => {
      const handler = billingUsage({ callLog, now: () => NOW })
      return billing.billingUsage.parse(await jsonOf(handler(of(id, key), { query })))
    }
    const refused = (t: Test, work: Promise<unknown>, message: RegExp, code = 'invalid_request') =>
      t.rejects(work, { name: 'Failure', code, message })

    t.test('GET /api/v1/usage: the whole account, refused calls counted, attempts not', async (t) => {
      t.strictSame(await report('period=all'), {
        object: 'usage',
        currency: 'points',
        period_from: '1970-01-01T00:00:00.000Z',
        period_to: '2026-03-10T15:30:00.251Z',
        total_requests: 7,
        total_cost: '25.41000005',
        total_input_tokens: 50,
        total_output_tokens: 120,
        total_cached_tokens: 4,
      })
      t.match(await report('period=today'), { total_requests: 2, total_cost: '0.00000003' })
      t.match(await report(''), { total_requests: 6, period_from: new Date(NOW - 30 * DAY_MS).toISOString() })
      t.match(await report('from=2026-03-01&to=2026-03-01'), { total_requests: 3, total_cost: '5.00000002' })
      t.match(await report('from=2026-03-01T00:00:00.001Z&to=2026-03-02T00:00:00Z'), { total_requests: 2 })
      t.match(await report('period=all', 'acc_z'), { total_requests: 1, total_cost: '0.00000077' })
      t.match(await report('period=all', 'acc_none'), {
        total_requests: 0,
        total_cost: '0',
        total_input_tokens: 0,
      })
      await refused(t, report('from=2026-03-01'), /^Parameter to:.*together/)
      await refused(t, report('from=2026-03-02&to=2026-03-01'), /^Parameter from: must not be after to/)
      await refused(t, report('from=soon&to=2026-03-01'), /^Parameter from:.*RFC 3339/)
      await refused(t, report('period=year'), /^Parameter period:.*"year".*today, 7d/)
    })

    t.test('an employee sees its own calls alone', async (t) => {
      const key = { id: 'key_b', kind: 'employee' } as const
      t.match(await report('period=all', 'acc_a', key), { total_requests: 1, total_cost: '19.41' })
      t.match(await costs('', 'acc_a', key), { total_usage: 1941 })
      t.match(await report('period=all', 'acc_z', key), { total_requests: 0 })
    })

    t.test('usage of the billing family: hundredths, by UTC day and model', async (t) => {
      const seconds = (day: number) => at(day) / 1000
      t.strictSame(await costs('start_date=2026-03-01&end_date=2026-03-09'), {
        object: 'list',
        total_usage: 2441.000002,
        daily_costs: [
          {
            timestamp: seconds(1),
            line_items: [
              { name: 'sonata-large', cost: 250.000002 },
              { name: 'étude', cost: 250 },
            ],
          },
          { timestamp: seconds(9), line_items: [{ name: 'sonata-large', cost: 1941 }] },
        ],
      })
      t.match(await costs('start_date=2026-03-01&end_date=2026-03-01'), { total_usage: 500.000002 })
      t.match(
        await costs('start_date=2026-3-1&end_date=2026-3-2'),
        { total_usage: 500.000002 },
        'without zeros',
      )
      t.match(await costs(''), { total_usage: 2541.000005 }, 'all of it')
      t.match(await costs('start_date=2026-03-10'), { total_usage: 0.000003 }, 'until now')
      t.match(await costs('end_date=2025-12-31'), { total_usage: 100 }, 'since the beginning')
      t.strictSame(await costs('', 'acc_none'), { object: 'list', total_usage: 0, daily_costs: [] })
      for (const bad of ['yesterday', '2026-02-30', '2026-13-01', '20260301', '2026-03-01T00:00:00Z'])
        await refused(t, costs(`start_date=${bad}`), /^Parameter start_date:.*not a date like 2026-01-31/)
      await refused(t, costs('start_date=2026-03-02&end_date=2026-03-01'), /start_date: must not be after/)
    })

    t.test('while ClickHouse is away: 503', async (t) => {
      await engines.stopEngine('clickhouse')
      await refused(t, report(''), /call log/, 'service_unavailable')
      await refused(t, costs(''), /call log/, 'service_unavailable')
    })
  })
})

t.test('credentials follow changes', async (t) => {
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
    const { database } = await startDatabase(t)
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
      const owner = await database.accounts.create({
        name: 'capped',
        kind: 'organization',
        credit: ONE_CREDIT,
      })
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
      credentials.forgetChanged('key', key.id)
      t.equal(credentials.peek(raw), undefined)
      const again = await credentials.load(raw)
      t.equal(again?.key.enabled, false)
      t.equal(again?.view, view, 'its wallet view, with the calls in flight, stays')

      await database.accounts.setEnabled(account.id, false)
      credentials.forgetChanged('account', account.id)
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
      credentials.forgetChanged('agent', agent.id)
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
      credentials.forgetChanged('account', payer.id)
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
      credentials.applyBooked(
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
      credentials.forgetChanged('account', payer.id)
      t.equal(credentials.peek(two.raw), undefined)
      t.equal((await credentials.load(two.raw))!.budgets[0]!.at(now), period)
      t.equal(period.balance, 150n)
      await database.budgets.delete(budget.id)
      credentials.forgetChanged('account', payer.id)
      t.same((await credentials.load(two.raw))?.budgets, [])
    })

    await t.test('an answer that a change has overtaken is not kept', async (t) => {
      const { credentials, holdAnswers } = watched(database)
      const { raw, key } = await newKey()
      const arrive = holdAnswers()
      const loading = credentials.load(raw)
      await database.keys.update(key.id, { name: 'renamed' })
      credentials.forgetChanged('key', key.id)
      arrive()
      await loading
      t.equal(credentials.peek(raw), undefined)
      t.equal((await credentials.load(raw))?.key.name, 'renamed')
    })

    await t.test(
      'a key that does not exist is asked for once in a while, unless a key changes',
      async (t) => {
        const { credentials, asked, clock } = watched(database)
        const unknown = generateApiKey()
        t.equal(await credentials.load(unknown), null)
        t.equal(await credentials.load(unknown), null)
        t.equal(asked(), 1)
        clock.now += UNKNOWN_KEY_TTL_MS
        await credentials.load(unknown)
        t.equal(asked(), 2)
        credentials.forgetChanged('key', 'key_made_just_now')
        await credentials.load(unknown)
        t.equal(asked(), 3)
      },
    )

    await t.test('a key that was made while it was asked for is not taken for unknown', async (t) => {
      const { credentials, asked, holdAnswers } = watched(database)
      const unknown = generateApiKey()
      const arrive = holdAnswers()
      const loading = credentials.load(unknown)
      credentials.forgetChanged('key', 'key_made_just_now')
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
      credentials.applyBooked(new Map([[account.id, cost]]), wallets)
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
      credentials.applyBooked(costs, wallets)
      t.equal(known.cap?.balance, parseCredits('4.5'))
      t.equal(known.cap?.unbooked, 0n)

      await database.bookings.book([{ ...ended, request_id: 'req_of_another_process' }])
      await credentials.refreshWallets(credentials.walletIds)
      t.equal(known.cap?.balance, parseCredits('4'), 'read again')

      await database.keys.update(key.id, { spendCap: parseCredits('1.5') })
      credentials.forgetChanged('key', key.id)
      t.equal((await credentials.load(raw))?.cap, known.cap, 'a view that is there stays')
      t.equal(known.cap?.balance, parseCredits('0.5'))
      await database.keys.update(key.id, { spendCap: null })
      credentials.forgetChanged('key', key.id)
      t.equal((await credentials.load(raw))?.cap, null)
    })

    await t.test('without PostgreSQL, known keys are served for a time, others are not', async (t) => {
      const { database: doomed } = await startDatabase(t)
      const { account } = await doomed.accounts.create({ name: 'two', credit: 0n })
      const { raw, key } = await doomed.keys.create({ accountId: account.id, name: 'test' })
      const { credentials, clock } = watched(doomed)
      await credentials.load(raw)
      await doomed.close()
      await t.rejects(credentials.load(generateApiKey()), { code: 'service_unavailable' })
      t.equal(credentials.peek(raw)?.key.id, key.id)
      credentials.forgetChanged('key', key.id)
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
      const { database: broken, sql } = await startDatabase(t)
      const { account } = await broken.accounts.create({ name: 'three', credit: 0n })
      const { raw, key } = await broken.keys.create({ accountId: account.id, name: 'test' })
      const { credentials, faults } = watched(broken)
      await credentials.load(raw)
      await sql`ALTER TABLE wallets RENAME TO former_wallets`
      credentials.forgetChanged('key', key.id)
      await t.rejects(credentials.load(raw), { code: /^42/ })
      await credentials.refreshWallets([account.id])
      t.match(faults, [{ code: /^42/ }])
    })
  })
})

t.test('models', async (t) => {
  const UNTIL = '2026-12-31T00:00:00.000Z'

  const catalog = createCatalog(
    configFile.parse({
      models: [
        {
          id: 'sonata-large',
          family: 'sonata',
          display_name: 'Sonata Large',
          aliases: ['sonata-large-2025'],
          context_window: 400_000,
          max_output_tokens: 32_768,
          default_max_tokens: 8192,
          capabilities: { vision: true },
          pricing: {
            unit: '1M_tokens',
            input: '12.50',
            output: 100,
            tiers: [{ from_prompt_tokens: 272_000, input: '25', output: '150' }],
            server_tool_call: '2.022',
            discount: '0.8',
            discount_until: UNTIL,
          },
        },
        { id: 'upcoming', callable: false },
        {
          id: 'voice-tts-pro',
          endpoint_type: 'audio_speech',
          owned_by: 'studio',
          pricing: { unit: '1000_characters', per_unit: '125.36', variants: { hd: '250' } },
        },
      ],
      channels: [
        {
          id: 'a',
          protocol: 'chat-completions',
          base_url: 'http://127.0.0.1/v1',
          api_key: 'k',
          models: { 'sonata-large': 'x' },
        },
        {
          id: 'off',
          protocol: 'messages',
          base_url: 'http://127.0.0.1',
          api_key: '',
          models: { 'sonata-large': 'x' },
        },
      ],
    }),
  )

  const INSTALLED_AT = new Date(1_772_000_000_789)
  const deps = { catalog: () => catalog, installedAt: INSTALLED_AT, now: () => 0 }
  /** With the discount. */
  const COST = { input: 10, output: 80, cache_read: 1, cache_write: 12.5 }

  const keyFor = (allowedModels: readonly string[] | null, ofAccount: readonly string[] | null = null) => ({
    key: { allowedModels },
    account: { allowedModels: ofAccount },
  })
  const listFor = (allowedModels: readonly string[] | null, ofAccount: readonly string[] | null = null) =>
    jsonOf(models(deps)(keyFor(allowedModels, ofAccount)))

  t.test('GET /v1/models answers one body that both SDKs read', async (t) => {
    const body = await listFor(null)
    t.strictSame(body, {
      object: 'list',
      data: [
        {
          id: 'sonata-large',
          object: 'model',
          created: 1_772_000_000,
          owned_by: 'tollgate',
          type: 'model',
          display_name: 'Sonata Large',
          created_at: INSTALLED_AT.toISOString(),
          endpoint_type: null,
          max_input_tokens: 400_000,
          max_tokens: 32_768,
          limit: { context: 400_000, output: 32_768 },
          cost: COST,
        },
        {
          id: 'voice-tts-pro',
          object: 'model',
          created: 1_772_000_000,
          owned_by: 'studio',
          type: 'model',
          display_name: 'voice-tts-pro',
          created_at: INSTALLED_AT.toISOString(),
          endpoint_type: 'audio_speech',
          max_input_tokens: null,
          max_tokens: null,
          limit: {},
          cost: {},
        },
      ],
      has_more: false,
      first_id: 'sonata-large',
      last_id: 'voice-tts-pro',
      models: [],
    })
  })

  t.test('GET /v1/models lists what the key may call, aliases understood', async (t) => {
    const ids = async (allowed: readonly string[], ofAccount: readonly string[] | null = null) =>
      (await listFor(allowed, ofAccount)).data.map((model: { id: string }) => model.id)
    t.strictSame(await ids(['sonata-large-2025', 'upcoming', 'unknown']), ['sonata-large'])
    t.strictSame(
      await ids(['sonata-large', 'voice-tts-pro'], ['voice-tts-pro']),
      ['voice-tts-pro'],
      'of both lists',
    )
    t.strictSame(await ids(['sonata-large'], []), [], 'the account may call none')
    t.strictSame(await listFor([]), {
      object: 'list',
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
      models: [],
    })
  })

  t.test('GET /v1/models answers page by page where a limit is asked for', async (t) => {
    const pageOf = async (query: string) => {
      const { data, has_more, first_id, last_id } = await jsonOf(models(deps)(keyFor(null), query))
      return [data.map(({ id }: { id: string }) => id), has_more, first_id, last_id]
    }
    const [sonata, voice] = ['sonata-large', 'voice-tts-pro']
    const both = [[sonata, voice], false, sonata, voice]
    t.strictSame(await pageOf('limit=1000&client_version=0.171.0'), both)
    t.strictSame(await pageOf('limit=1'), [[sonata], true, sonata, sonata])
    t.strictSame(await pageOf(`limit=1&after_id=${sonata}`), [[voice], false, voice, voice])
    t.strictSame(await pageOf(`limit=1&before_id=${voice}`), [[sonata], false, sonata, sonata])
    t.strictSame(await pageOf(`after_id=${voice}`), [[], false, null, null])
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'after_id=nowhere', 'before_id=nowhere'])
      await t.rejects(pageOf(query), { code: 'invalid_request' }, query)
  })

  t.test('GET /v1/models has the list of generate-content for its SDKs as well', async (t) => {
    const headers = { 'x-goog-api-key': 'sk' }
    const first = await jsonOf(models(deps)(keyFor(null), 'pageSize=1', headers))
    t.match(first, { data: { length: 2 }, models: [{ name: 'models/sonata-large' }] })
    t.equal(first.nextPageToken, 'sonata-large')
    const shown = await jsonOf(model(deps)(keyFor(null), 'sonata-large', headers))
    t.match(shown, { id: 'sonata-large', name: 'models/sonata-large', inputTokenLimit: 400_000 })
  })

  t.test('GET /api/v1/models/public answers the whole catalog', async (t) => {
    const at = (now: string) => jsonOf(publicModels({ catalog: () => catalog, now: () => Date.parse(now) })())
    const body = await at('2026-12-30T23:59:59.999Z')
    const off = {
      vision: false,
      function_tools: false,
      web_search: false,
      image_generation: false,
      reasoning: false,
    }
    const [sonata, upcoming, voice] = body.models
    t.strictSame(sonata, {
      id: 'sonata-large',
      display_name: 'Sonata Large',
      family: 'sonata',
      owned_by: 'tollgate',
      callable: true,
      endpoint_type: null,
      supported_protocols: ['chat-completions'],
      translated_protocols: [],
      aliases: ['sonata-large-2025'],
      context_window: 400_000,
      max_output_tokens: 32_768,
      default_max_tokens: 8192,
      capabilities: { ...off, vision: true },
      images: null,
      pricing: {
        unit: '1M_tokens',
        input: '12.5',
        output: '100',
        cached_input: '1.25',
        cache_write: '15.625',
        cache_write_1h: '25',
        reasoning: '100',
        input_audio: '12.5',
        output_audio: '100',
        input_image: '12.5',
        output_image: '100',
        per_unit: null,
        variants: null,
        pixel_tiers: [],
        tiers: [
          {
            ...{ from_prompt_tokens: 272_000, input: '25', output: '150' },
            ...{ cached_input: '2.5', cache_write: '31.25', cache_write_1h: '50' },
            ...{ reasoning: '150', input_audio: '25', output_audio: '150' },
            ...{ input_image: '25', output_image: '150' },
          },
        ],
        server_tool_call: '2.022',
        server_tools: null,
        service_tiers: null,
        minimum: null,
        discount: '0.8',
        discount_until: UNTIL,
        changes: [],
      },
    })
    t.match(upcoming, {
      id: 'upcoming',
      callable: false,
      pricing: null,
      supported_protocols: { length: 0 },
      family: null,
    })
    t.match(voice, {
      endpoint_type: 'audio_speech',
      supported_protocols: { length: 0 },
      pricing: {
        unit: '1000_characters',
        per_unit: '125.36',
        variants: { hd: '250' },
        input: null,
        cache_write: null,
      },
    })
    const after = (await at(UNTIL)).models[0].pricing
    t.match(
      after,
      { discount: null, discount_until: null, input: '12.5' },
      'a discount that has ended is not shown',
    )
  })

  t.test('videos with sound are shown with their prices, and whether they are made unasked', async (t) => {
    const pricing = { unit: 'second', per_unit: '0.20' }
    const with_audio = { variants: { '720p': '0.40', '4k': '0.6' } }
    const changes = [{ from: UNTIL, per_unit: '0.1', with_audio: { per_unit: '0.3' } }]
    const film = (id: string, more: object, videos?: object) => ({
      ...{ id, endpoint_type: 'videos_generations', pricing: { ...pricing, ...more } },
      ...(videos !== undefined && { videos }),
    })
    const films = createCatalog(
      configFile.parse({
        models: [
          film('loud', { with_audio, changes }, { default_audio: true }),
          film('silent', { with_audio: {} }, { default_duration: 5 }),
          film('one-price', {}),
        ],
      }),
    )
    const body = await jsonOf(publicModels({ catalog: () => films, now: () => 0 })())
    const [loud, silent, onePrice] = body.models
    t.match(loud, { videos: { default_audio: true }, pricing: { per_unit: '0.2', variants: null } })
    t.strictSame(loud.pricing.with_audio, { per_unit: null, variants: { '720p': '0.4', '4k': '0.6' } })
    t.strictSame(loud.pricing.changes[0].with_audio, { per_unit: '0.3', variants: null })
    t.strictSame(silent.pricing.with_audio, { per_unit: null, variants: null })
    t.notOk('videos' in silent || 'videos' in onePrice || 'with_audio' in onePrice.pricing)
  })

  t.test('GET /v1/models/{model} answers what the list has of it', async (t) => {
    const list = await listFor(null)
    const show = (name: string, allowed: readonly string[] | null = null) =>
      jsonOf(model(deps)(keyFor(allowed), name))
    for (const listed of list.data) t.strictSame(await show(listed.id), listed)
    t.equal((await show('sonata-large-2025')).id, 'sonata-large', 'by an alias')
    for (const [name, allowed] of [
      ['unheard-of', null],
      ['upcoming', null],
      ['%ff', null],
      ['sonata-large', ['voice-tts-pro']],
      ['sonata-large', []],
    ] as const)
      await t.rejects(show(name, allowed), { code: 'model_not_found', status: 404 }, name)
  })

  t.test('what a channel serves by translation is listed for clients of that protocol', async (t) => {
    const channel = {
      ...{ id: 'a', protocol: 'chat-completions', base_url: 'http://127.0.0.1/v1', api_key: 'k' },
      models: { any: 'x' },
    }
    const pricing = { unit: '1M_tokens', input: '1', output: '1' }
    const catalogWith = (more: object) =>
      createCatalog(
        configFile.parse({ models: [{ id: 'any', pricing }], channels: [{ ...channel, ...more }] }),
      )
    for (const [more, methods, translated] of [
      [{}, [], []],
      [
        { serve: ['generate-content', 'responses'] },
        ['generateContent', 'streamGenerateContent', 'countTokens'],
        ['generate-content', 'responses'],
      ],
      [{ protocol: 'messages' }, [], ['chat-completions']],
    ] as const) {
      const served = { ...deps, catalog: () => catalogWith(more) }
      const content = await jsonOf(contentModels(served)(keyFor(null), ''))
      t.strictSame(content.models[0].supportedGenerationMethods, methods)
      const shown = await jsonOf(publicModels(served)())
      t.strictSame(shown.models[0].translated_protocols, translated)
    }
  })

  t.test('GET /v1beta/models answers in the shape of its protocol, page by page', async (t) => {
    const list = (query: string, allowed: readonly string[] | null = null) =>
      jsonOf(contentModels(deps)(keyFor(allowed), query))
    const sonata = {
      name: 'models/sonata-large',
      displayName: 'Sonata Large',
      inputTokenLimit: 400_000,
      outputTokenLimit: 32_768,
      supportedGenerationMethods: [],
    }
    const voice = {
      name: 'models/voice-tts-pro',
      displayName: 'voice-tts-pro',
      supportedGenerationMethods: [],
    }
    t.strictSame(await list(''), { models: [sonata, voice] })
    t.strictSame(await list('pageSize=1'), { models: [sonata], nextPageToken: 'sonata-large' })
    t.strictSame(await list('pageSize=1&pageToken=sonata-large'), { models: [voice] })
    t.strictSame(await list('pageSize=100000'), { models: [sonata, voice] })
    t.strictSame(await list('', []), { models: [] })
    for (const query of ['pageSize=-1', 'pageSize=x', 'pageToken=nowhere'])
      await t.rejects(list(query), { code: 'invalid_request' }, query)
    const show = (name: string) => jsonOf(contentModel(deps)(keyFor(null), name))
    for (const name of ['sonata-large', 'models/sonata-large', 'sonata-large-2025'])
      t.strictSame(await show(name), sonata)
    await t.rejects(show('upcoming'), { code: 'model_not_found', status: 404 })
  })
})

t.test('a secret works exactly as long as it may', async (t) => {
  // * Which secrets of a key work at which instant, after any order of rotations, calls and ends, in two processes that
  // know the key from before. Time passes by moving the rows back.
  const RUNS = 25
  const HOUR_MS = 3_600_000
  const LAST_MS = 30 * 24 * HOUR_MS
  /** Statements take time: no instant of the model is nearer to an end than this. */
  const SLACK_MS = 60_000

  /** One secret as the rules say it: `endsAt` is null for the newest. */
  interface Modelled {
    readonly raw: string
    endsAt: number | null
    graceMs: number
    isUsed: boolean
  }

  const step = fc.oneof(
    fc.record({ act: fc.constant('rotate' as const), graceHours: fc.nat(168) }),
    fc.record({ act: fc.constant('use' as const), which: fc.nat(3) }),
    fc.record({ act: fc.constant('end' as const) }),
    fc.record({ act: fc.constant('wait' as const), hours: fc.oneof(fc.nat(30), fc.nat(800)) }),
  )

  t.test('validity', async (t) => {
    const { database, sql, openAnother } = await startDatabase(t)
    const accountId = await newAccount(database)
    const databases = [database, await openAnother()]

    const property = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
      const { key, raw } = await database.keys.create({ accountId, name: 'one' })
      const processes = databases.map((one) => {
        const noted: Promise<void>[] = []
        const noteSecretUse: typeof one.keys.noteSecretUse = (secret) => {
          const work = one.keys.noteSecretUse(secret)
          noted.push(work)
          return work
        }
        const credentials = new Credentials({
          database: one,
          graceMs: () => 0,
          recoveredCost: () => 0n,
          isAway,
          onFault() {},
        })
        // Each process notes by itself what it sees, as if it had seen nothing before.
        const use = noteSecretUses({
          database: { keys: { noteSecretUse } },
          log: { warn() {} },
          now: () => Infinity,
        })
        return { credentials, use, noted }
      })
      const secrets: Modelled[] = [{ raw, endsAt: null, graceMs: 0, isUsed: true }]
      const newest = () => secrets.at(-1)!
      const working = () => secrets.find(({ endsAt }) => endsAt !== null && endsAt > Date.now())
      const changed = () => {
        for (const { credentials } of processes) credentials.forgetChanged('key', key.id)
      }
      /** Returns whether the secret opens the key, in the first process or in the second. */
      const opens = async (secret: string, index: number): Promise<boolean> => {
        const { credentials, use, noted } = processes[index]!
        const known = credentials.peek(secret) ?? (await credentials.load(secret))!
        try {
          assertUsable(known, Date.now())
        } catch (error) {
          if ((error as Failure).code === 'invalid_api_key') return false
          throw error
        }
        if (known.secret !== null) use(known.secret)
        await Promise.all(noted.splice(0))
        return true
      }
      const call = async (secret: Modelled, index: number) => {
        const isExpected = secret.endsAt === null || secret.endsAt > Date.now()
        if ((await opens(secret.raw, index)) !== isExpected)
          throw new Error(`secret ${secrets.indexOf(secret)} ${isExpected ? 'is refused' : 'still works'}`)
        if (secret !== newest() || secret.isUsed) return
        secret.isUsed = true
        const former = working()
        if (former !== undefined) former.endsAt = Math.min(former.endsAt!, Date.now() + former.graceMs)
        changed()
      }
      for (const [at, one] of steps.entries()) {
        if (one.act === 'rotate') {
          const former = working()
          const graceMs = one.graceHours * HOUR_MS
          const made = await database.keys
            .rotate(key.id, one.graceHours * 3600)
            .catch((error: Failure) => error)
          if (former !== undefined && newest().isUsed) {
            if (!(made instanceof Error)) throw new Error('rotated while two secrets are in use')
            continue
          }
          if (made instanceof Error) throw made
          if (former !== undefined) former.graceMs = graceMs
          Object.assign(newest(), { endsAt: Date.now() + (former === undefined ? LAST_MS : 0), graceMs })
          secrets.push({ raw: made.raw, endsAt: null, graceMs: 0, isUsed: false })
          changed()
        } else if (one.act === 'use') await call(secrets[one.which % secrets.length]!, at % 2)
        else if (one.act === 'end') {
          await database.keys.endFormerSecret(key.id)
          const former = working()
          if (former !== undefined) former.endsAt = Date.now()
          changed()
        } else {
          const ms = one.hours * HOUR_MS + SLACK_MS
          await sql`
          UPDATE former_secrets SET ends_at = ends_at - ${ms} * interval '1 millisecond' WHERE key_id = ${key.id}`
          for (const secret of secrets) if (secret.endsAt !== null) secret.endsAt -= ms
          changed()
        }
        // Both processes know these secrets: only the time decides.
        for (const secret of secrets)
          if (secret !== newest() || secret.isUsed) for (const index of [0, 1]) await call(secret, index)
      }
    })
    await fc.assert(property, { numRuns: RUNS, seed: 7 })
    t.pass()
  })
})
