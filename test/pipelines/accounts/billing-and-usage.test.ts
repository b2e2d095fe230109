/** What was used, in our own shape and in those of third-party chat clients. */
import t, { type Test } from 'tap'
import type { Account } from '../../../schemas/accounts/account.ts'
import * as billing from '../../../schemas/accounts/billing.ts'
import type { ApiKey } from '../../../schemas/accounts/key.ts'
import { type UsageReport, usageReport } from '../../../schemas/accounts/usage.ts'
import { parseCredits } from '../../../schemas/money.ts'
import type { WalletView } from '../../../src/core/pricing/wallet.ts'
import { bookedCall } from '../../src/clickhouse/support.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { walletView } from '../../support/known-key.ts'
import { jsonOf } from '../../support/reply-to.ts'
import { usageText } from '../../support/usage-text.ts'
import { billingSubscription, billingUsage, creditGrants, usage } from './support.ts'

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
  t.match(await jsonOf(creditGrants(uncapped, { keys })), { total_granted: 1008, total_used: 8 }, 'as booked')
  t.match(await jsonOf(billingSubscription(uncapped, { keys })), { hard_limit_usd: 1008 })
})

t.test('what was used in a window of time', async (t) => {
  const engines = await startEngines(t, { only: ['clickhouse'] })
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
      bookedCall(6, { created_at: at(10), status: 'rejected', cost: '0', input_tokens: 0, output_tokens: 0 }),
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
