/** What is checked of money and limits before a call goes upstream, to the last unit, and what its refusal says. */
import { Observable } from 'rxjs'
import t from 'tap'
import { answerWithBalance, balance, showBalance } from '../../../pipelines/accounts/balance.ts'
import type { AuthenticatedCall, CallAccess, Caller } from '../../../pipelines/calls/authenticate.ts'
import {
  admitWithinLimits,
  assertBalance,
  assertFunds,
  assertLimitsLeave,
  assertLimitsLeft,
  checkUnlessRepeated,
  endWithinLimits,
  insufficientBalance,
  isLimited,
  requireBalance,
  toSpendFailure,
} from '../../../pipelines/calls/balance.ts'
import { assertPrice, readMaxPrice } from '../../../pipelines/calls/max-price.ts'
import { RefusedCall } from '../../../pipelines/calls/pipeline.ts'
import { limitLogReads, limitUsageReads, rateLimit } from '../../../pipelines/calls/rate-limit.ts'
import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import type { Budget } from '../../../schemas/accounts/budget.ts'
import type { KeyKind } from '../../../schemas/accounts/key.ts'
import type { Grant } from '../../../schemas/accounts/organization.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import { parseCredits } from '../../../schemas/money.ts'
import type { Limits } from '../../../src/core/limits/limiter-state.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { BudgetView } from '../../../src/credentials/budget.ts'
import type { KnownKey } from '../../../src/credentials/credentials.ts'
import { capTotals, WalletView } from '../../../src/credentials/wallet.ts'
import { admits, LimitedRequest } from '../../../src/limits/limited-request.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'
import { accountOf, apiKey, knownKey } from '../../support/known-key.ts'
import { jsonOf, replyTo } from '../../support/reply-to.ts'

const DAY_MS = 86_400_000
const MIDNIGHT = Date.UTC(2026, 10, 24)
const NOON = MIDNIGHT + DAY_MS / 2

const totals = (balance: bigint, more: Partial<WalletTotals> = {}): WalletTotals => ({
  ...{ accountId: 'acc_a', balance, held: 0n, used: 0n, version: 1n },
  ...more,
})
const wallet = (balance: bigint, more: Partial<WalletTotals> = {}) => new WalletView(totals(balance, more))
const makeBudget = (amount: bigint, more: Partial<Budget> = {}) =>
  new BudgetView({
    budget: {
      ...{ id: 'bud_a', accountId: 'acc_a', scope: 'key', subjectId: 'key_a', amount },
      ...{ period: 'day', timezone: 'UTC', ...more },
    },
    starts: [MIDNIGHT, MIDNIGHT + DAY_MS],
    totals: totals(amount, { accountId: `bud_a@${MIDNIGHT}` }),
  })

const makeCaller = (known: Partial<KnownKey>, headers: Readonly<Record<string, string>> = {}): Caller => ({
  known: knownKey(known),
  request: gatewayRequest({
    submittedAt: NOON,
    header: (name) => headers[name] ?? '',
    hasHeader: (name) => name in headers,
  }),
})
const makeCall = (...of: Parameters<typeof makeCaller>): AuthenticatedCall & { ended: () => void } => {
  const teardowns: (() => void)[] = []
  return {
    ...makeCaller(...of),
    ends: { add: (teardown) => void teardowns.push(teardown), hold() {}, release() {} },
    ended: () => {
      for (const teardown of teardowns) teardown()
    },
  }
}

/** Returns what it throws, in words; "nothing" where it does not. */
function catchRefusal(work: () => unknown): string {
  try {
    work()
    return 'nothing'
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return `${error.code}: ${error.message}`
  }
}

const CAP_REFUSAL =
  'quota_exceeded: The spend cap of this API key leaves too little for this call. Ask an admin of the organization to raise it.'

t.test('refusal of a balance has its numbers', async (t) => {
  // A 402 says what the call may cost and what the account has, to keys that may read the balance.
  const readMessage = (kind: KeyKind, balance: string, amount: string | null) => {
    const known = { key: { kind }, view: { balance: parseCredits(balance) } }
    return insufficientBalance(known as never, amount === null ? null : parseCredits(amount)).message
  }

  t.test('the refusal of a balance', async (t) => {
    const start = 'The account balance is insufficient for this call'
    const end = 'Please top up and try again'
    for (const kind of ['console', 'employee'] as const) {
      t.equal(
        readMessage(kind, '0.5', '0.655'),
        `${start}: it may cost up to 0.655 credits, and the balance is 0.5 credits. ${end}, or ask for less.`,
      )
      t.equal(
        readMessage(kind, '10', '4'),
        `${start}: it may cost up to 4 credits, and the balance is 10 credits, part of which calls under way reserve. ${end}, or ask for less.`,
      )
      t.match(readMessage(kind, '4', '4'), 'the balance is 4 credits, part of which calls under way reserve')
      t.equal(readMessage(kind, '-0.2', null), `${start}: it is -0.2 credits. ${end}.`)
    }
    t.equal(
      readMessage('agent', '0.5', '0.655'),
      `${start}. ${end}.`,
      'the holder of an agent key learns no more',
    )
    t.equal(readMessage('agent', '0', null), `${start}. ${end}.`)
  })
})

t.test('a cap and a budget leave what calls in flight do not reserve', async (t) => {
  const AT = Date.parse('2026-05-04T12:00:00Z')
  const state = (balance: bigint, inFlight: bigint) => ({ balance, inFlight })
  const roomy = state(100n, 0n)
  const limited = (cap: object | null, ...budgets: object[]) =>
    ({
      cap,
      budgets: budgets.map((found) => ({
        at: (now: number) => (now === AT ? found : roomy),
        budget: { id: 'bud', amount: 100n, period: 'day', scope: 'key' },
        resetsAt: () => AT,
      })),
    }) as never
  const refusal = { code: 'quota_exceeded' }

  t.test('for an amount, to the last unit', async (t) => {
    t.doesNotThrow(() => assertLimitsLeave(limited(state(10n, 4n)), 6n, AT))
    t.throws(() => assertLimitsLeave(limited(state(10n, 4n)), 7n, AT), refusal)
    t.doesNotThrow(() => assertLimitsLeave(limited(null, roomy, state(10n, 4n)), 6n, AT))
    t.throws(() => assertLimitsLeave(limited(null, roomy, state(10n, 4n)), 7n, AT), refusal)
    t.throws(() => assertLimitsLeave(limited(roomy, state(10n, 4n)), 7n, AT), refusal)
    t.doesNotThrow(() => assertLimitsLeave(limited(null), 7n, AT))
  })

  t.test('for work of unknown cost, while anything is left', async (t) => {
    t.doesNotThrow(() => assertLimitsLeft(limited(state(1n, 9n), state(1n, 9n)), AT))
    t.throws(() => assertLimitsLeft(limited(state(0n, 0n)), AT), refusal)
    t.throws(() => assertLimitsLeft(limited(state(1n, 0n), roomy, state(0n, 0n)), AT), refusal)
  })
})

t.test('a wallet, a cap and budgets before a call', async (t) => {
  t.test('anything above nothing is enough to read a request', async (t) => {
    const refusal = (known: Partial<KnownKey>) => catchRefusal(() => assertBalance(makeCaller(known)))
    t.equal(refusal({ view: wallet(1n) }), 'nothing')
    for (const balance of [0n, -1n]) t.match(refusal({ view: wallet(balance) }), /balance is insufficient/)
    t.equal(refusal({ cap: wallet(1n) }), 'nothing')
    t.equal(refusal({ cap: wallet(0n) }), CAP_REFUSAL)
    t.equal(refusal({ budgets: [makeBudget(1n)] }), 'nothing')
    t.match(refusal({ budgets: [makeBudget(1n), makeBudget(0n)] }), /daily budget of this API key/)
  })

  t.test('a hold fits what is free: calls in flight count where they reserve', async (t) => {
    const refusal = (hold: bigint, known: Partial<KnownKey>, reserve_in_flight = true) => {
      const config = configFile.parse({ wallet: { reserve_in_flight } })
      return catchRefusal(() => assertFunds(makeCaller(known), hold, config, () => ' for a film'))
    }
    const busy = wallet(10n)
    busy.admit(4n, true)
    t.equal(refusal(6n, { view: busy }), 'nothing')
    t.match(refusal(7n, { view: busy }), /may cost up to 0.00000007 credits for a film, .* part of which/)
    t.equal(refusal(10n, { view: busy }, false), 'nothing')
    t.match(refusal(11n, { view: busy }, false), /balance is insufficient/)
    t.equal(refusal(7n, { cap: busy }), CAP_REFUSAL)
    const unexplained = () => assertFunds(makeCaller({ view: busy }), 7n, configFile.parse({}))
    t.match(catchRefusal(unexplained), /up to 0.00000007 credits, and the balance/)
    t.match(refusal(7n, { budgets: [makeBudget(6n)] }), /leaves too little/)
  })

  t.test('a refusal of a budget says whose it is, and when it begins again', async (t) => {
    const refusal = (more: Partial<Budget>) =>
      catchRefusal(() => assertBalance(makeCaller({ budgets: [makeBudget(0n, more)] })))
    const resets =
      'It resets at 2026-11-25T00:00:00.000Z. Wait until then, or ask an owner of the account to raise it.'
    t.equal(
      refusal({ period: 'week', scope: 'member' }),
      `quota_exceeded: The weekly budget of the member who uses this API key (0 credits, bud_a) leaves too little for this call. ${resets}`,
    )
    t.match(refusal({ period: 'month', scope: 'account' }), 'The monthly budget of the account (0 credits')
    const { budget } = makeBudget(0n)
    const last = new BudgetView({ budget, starts: [MIDNIGHT], totals: totals(0n) })
    const late = catchRefusal(() => assertBalance(makeCaller({ budgets: [last] })))
    t.match(late, 'for this call. It resets at the end of its period.')
    const reserved = toSpendFailure({ by: 'budget', budget, resetsAt: NOON }, ' (up to 7 credits)')
    t.match(reserved.message, 'for this call (up to 7 credits). It resets at 2026-11-24T12:00:00.000Z.')
    t.match(
      toSpendFailure({ by: 'spend_cap' } as never, ' (up to 7 credits)').message,
      'this call (up to 7 credits).',
    )
  })

  t.test('an estimate is reserved within all limits or within none', async (t) => {
    const cap = wallet(10n)
    const [roomy, tight] = [makeBudget(10n), makeBudget(5n)]
    const limits = { cap, budgets: [roomy, tight] }
    const inFlight = () => [cap.inFlight, roomy.at(NOON).inFlight, tight.at(NOON).inFlight]
    t.equal(admitWithinLimits({ cap: null, budgets: [] }, 5n, NOON), null)
    t.equal(admitWithinLimits(limits, 5n, NOON), null)
    t.same(inFlight(), [5n, 5n, 5n])
    const refusal = (estimate: bigint) => admitWithinLimits(limits, estimate, NOON)?.(' (a note)').message
    t.match(refusal(1n), /daily budget .* for this call \(a note\)/)
    t.match(refusal(6n), /spend cap .* for this call \(a note\)/)
    endWithinLimits(limits, { estimate: 5n, cost: 2n }, NOON)
    t.same([cap.balance, roomy.at(NOON).balance, tight.at(NOON).balance], [8n, 8n, 3n])
    t.same(inFlight(), [0n, 0n, 0n])
    endWithinLimits({ cap: null, budgets: [] }, { estimate: 5n, cost: 2n }, NOON)
    t.same(
      [
        { cap: null, budgets: [] },
        { cap, budgets: [] },
        { cap: null, budgets: [tight] },
      ].map(isLimited),
      [...[false, true, true]],
    )
  })

  t.test('a cap is the wallet of its key', async (t) => {
    const grant = { keyId: 'key_a', spendCap: 10n, spent: 3n, version: 7n } as Grant
    t.same(capTotals(grant), { accountId: 'key_a', balance: 7n, held: 0n, used: 3n, version: 7n })
    t.equal(capTotals({ ...grant, spendCap: null }), null)
    t.equal(capTotals(null), null)
  })

  t.test('what repeats an answered request is not refused for want of money', async (t) => {
    const records = (answer: boolean | Error) => ({
      asked: [] as string[],
      async isAnswered(scope: string, key: string) {
        this.asked.push(`${scope} ${key}`)
        if (answer instanceof Error) throw answer
        return answer
      },
    })
    const keyed = makeCall({ view: wallet(0n) }, { 'idempotency-key': 'k' })
    const asked = records(true)
    t.equal(await checkUnlessRepeated(asked, keyed, assertBalance), keyed)
    t.same(asked.asked, ['account:acc_a k'])
    for (const other of [records(false), records(new Error('away'))])
      await t.rejects(checkUnlessRepeated(other, keyed, assertBalance) as Promise<unknown>, {
        code: 'quota_exceeded',
      })
    const unkeyed = makeCall({ view: wallet(0n) })
    const none = records(true)
    await t.rejects(checkUnlessRepeated(none, unkeyed, assertBalance) as Promise<unknown>, {
      code: 'quota_exceeded',
    })
    t.same(none.asked, [])
    const rich = makeCall({ view: wallet(1n) })
    t.equal(checkUnlessRepeated(none, rich, assertBalance), rich, 'at once')
    t.equal(requireBalance(none)(rich), rich)
    t.ok(requireBalance(none)(keyed) instanceof Observable)
  })
})

t.test('the balance of a key', async (t) => {
  const shown = (known: Partial<KnownKey>) => showBalance({ ...makeCall(known) })
  const view = new WalletView(
    totals(parseCredits('10'), { held: parseCredits('2'), used: parseCredits('3') }),
  )
  view.admit(parseCredits('4'), true)
  view.end(parseCredits('4'), parseCredits('1'))
  const account = {
    ...{ object: 'key.balance', currency: 'points', remaining: '9', used: '4', total: '15', held: '2' },
  }

  t.test('counts what has ended and is not booked as used', async (t) => {
    t.same(shown({ view }), account)
  })

  t.test('is what the endpoint answers, to a key that it finds', async (t) => {
    t.same(await jsonOf(replyTo(knownKey({ view }), {}, answerWithBalance())), account)
    const endpoint = balance({ credentials: { peek: () => knownKey({ view }) } } as never)
    const header = (name: string) => (name === 'x-api-key' ? `sk-tollgate-${'a'.repeat(64)}` : '')
    t.same(await jsonOf(endpoint(gatewayRequest({ path: '/v1/key/balance', header }))), account)
  })

  t.test('has the cap and the budgets that cover the key', async (t) => {
    const cap = new WalletView(totals(parseCredits('6'), { used: parseCredits('4') }))
    cap.end(0n, parseCredits('1'))
    t.same(shown({ view, cap }), { ...account, spend_cap: '10', spent: '5' })
    const budget = makeBudget(parseCredits('7'))
    budget.at(NOON).end(0n, parseCredits('2'))
    const row = { id: 'bud_a', scope: 'key', amount: '7', spent: '2', period: 'day', timezone: 'UTC' }
    t.same(shown({ view, budgets: [budget] }), {
      ...account,
      budgets: [{ ...row, resets_at: '2026-11-25T00:00:00.000Z' }],
    })
    const last = new BudgetView({
      budget: budget.budget,
      starts: [MIDNIGHT],
      totals: totals(0n, { used: 1n }),
    })
    t.match(shown({ view, budgets: [last] }), { budgets: [{ spent: '0.00000001', resets_at: null }] })
  })
})

t.test('the highest price of a call', async (t) => {
  const read = (maxPrice: bigint | null, header = '') =>
    readMaxPrice(makeCaller({ key: apiKey({ maxPrice }) }, { 'x-max-price': header }))

  t.test('is that of the key or of the header, whichever is less', async (t) => {
    t.same([read(null), read(5n)], [null, 5n])
    t.same(
      [read(null, '0.00000003'), read(5n, '0.00000003'), read(5n, '0.00000007'), read(3n, '0.00000003')],
      [...[3n, 3n, 5n, 3n]],
    )
    for (const text of ['0', '-1', 'much', '1e3', '0.0'])
      t.match(
        catchRefusal(() => read(null, text)),
        /^invalid_request: X-Max-Price/,
        text,
      )
  })

  t.test('refuses a call that may cost more', async (t) => {
    const refusal = (maxPrice: bigint | null, estimate: bigint, kind: 'console' | 'agent' = 'console') =>
      catchRefusal(() =>
        assertPrice(makeCaller({ key: apiKey({ kind }) }), maxPrice, estimate, () => ', for a reason'),
      )
    t.same([refusal(null, 9n), refusal(9n, 9n), refusal(9n, 8n)], ['nothing', 'nothing', 'nothing'])
    t.equal(
      refusal(8n, 9n),
      'invalid_request: The call may cost up to 0.00000009 credits, for a reason, and at most 0.00000008 are allowed for one call. ' +
        'Ask for less, or raise max_price of the key or X-Max-Price.',
    )
    t.equal(
      refusal(8n, 9n, 'agent'),
      'invalid_request: The call may cost more than its key allows for one call.',
    )
    t.match(
      catchRefusal(() => assertPrice(makeCaller({}), 8n, 9n)),
      '0.00000009 credits, and at most',
    )
  })
})

t.test('limits of a key and of its account', async (t) => {
  /** Says of each subject what a test has for it. */
  function makeAccess(decisions: Readonly<Record<string, object>>, limits: object = {}) {
    const released: unknown[] = []
    const asked: string[] = []
    const access = {
      catalog: () => createCatalog(configFile.parse({ limits })),
      limiter: {
        take(subjects, onDecisions) {
          const request = new LimitedRequest(subjects, { onDecisions, onReleased: () => released.push(1) })
          asked.push(
            ...subjects.map(
              ({ subject, limits }) => `${subject} ${limits.requestsPerMinute} ${limits.concurrency}`,
            ),
          )
          request.settle(
            subjects.map(({ subject }) => ({
              ...{ refusedBy: null, remainingRequests: 9, resetMs: 1, remainingConcurrency: 9 },
              ...decisions[subject],
            })),
          )
          return request
        },
      },
    } as Pick<CallAccess, 'limiter' | 'catalog'> as CallAccess
    return { access, released, asked }
  }
  const makeLimits = (requestsPerMinute: number | null, concurrency: number | null): Limits => ({
    ...{ requestsPerMinute, concurrency },
  })
  /** Returns the headers of the call, and the refusal, as far as there is one. */
  function decide(
    stage: (access: CallAccess) => (call: AuthenticatedCall) => unknown,
    access: CallAccess,
    call: AuthenticatedCall,
  ) {
    const next = stage(access)(call)
    if (!(next instanceof Observable)) return { isFree: next === call }
    let [headers, refusal, isDone]: [unknown, string | undefined, boolean] = [undefined, undefined, false]
    next.subscribe({
      next: (counted: AuthenticatedCall) => {
        headers = Object.fromEntries(counted.replyHeaders ?? [])
      },
      error: (error) => {
        if (!(error instanceof RefusedCall)) throw error
        headers = Object.fromEntries(error.call.replyHeaders ?? [])
        const failure = error.error as Failure
        refusal = `${failure.code}: ${failure.message} ${failure.headers.join()}`
      },
      complete: () => {
        isDone = true
      },
    })
    return { headers, refusal, isDone }
  }
  const keyed = (limits: Limits | null, account: object = {}) =>
    makeCall({ key: apiKey({ limits }), account: accountOf(account) })
  const limited = (access: CallAccess) => rateLimit<AuthenticatedCall>(access)

  t.test('without any a call costs nothing here', async (t) => {
    t.same(decide(limited, makeAccess({}).access, keyed(null)), { isFree: true })
  })

  t.test('those of the account, of the configuration in its place, and of the key', async (t) => {
    const subjects = (limits: Limits | null, account: object, config: object = {}) => {
      const { access, asked } = makeAccess({}, config)
      decide(limited, access, keyed(limits, account))
      return asked
    }
    t.same(subjects(null, { requestsPerMinute: 5 }), ['acc_a 5 null'])
    t.same(subjects(null, { concurrency: 5 }), ['acc_a null 5'])
    t.same(subjects(null, { requestsPerMinute: 5 }, { requests_per_minute: 7, concurrency: 3 }), [
      'acc_a 5 3',
    ])
    t.same(subjects(makeLimits(4, 2), {}), ['calls key_a 4 2'])
    t.same(subjects(makeLimits(4, null), {}, { concurrency: 3 }), ['calls key_a 4 null', 'acc_a null 3'])
  })

  t.test('headers say what is left of the tighter one in each dimension', async (t) => {
    const call = keyed(makeLimits(60, 4), { requestsPerMinute: 100, concurrency: 8 })
    const minute = (limit: string, remaining: string, reset: string) => ({
      ...{ 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset },
      ...{ 'x-ratelimit-limit-requests': limit, 'x-ratelimit-remaining-requests': remaining },
      'x-ratelimit-reset-requests': reset,
    })
    const slots = (limit: string, remaining: string) => ({
      ...{ 'x-ratelimit-limit-concurrency': limit, 'x-ratelimit-remaining-concurrency': remaining },
    })
    const headers = (key: object, account: object, of = call) =>
      decide(limited, makeAccess({ 'calls key_a': key, acc_a: account }).access, of).headers
    t.same(
      headers(
        { remainingRequests: 5, resetMs: 1_001, remainingConcurrency: 3 },
        { remainingRequests: 4, resetMs: 1_000, remainingConcurrency: 2 },
      ),
      { ...minute('100', '4', '1'), ...slots('8', '2') },
    )
    t.same(
      headers(
        { remainingRequests: 4, resetMs: 1_001, remainingConcurrency: 1 },
        { remainingRequests: 4, resetMs: 1_000, remainingConcurrency: 2 },
      ),
      { ...minute('60', '4', '2'), ...slots('4', '1') },
      'of equal ones that which takes longer',
    )
    const apart = keyed(makeLimits(null, 4), { requestsPerMinute: 100 })
    t.same(headers({ remainingRequests: 0 }, { remainingConcurrency: 0 }, apart), {
      ...minute('100', '9', '1'),
      ...slots('4', '9'),
    })
    t.same(headers({}, {}, keyed(makeLimits(60, null))), minute('60', '9', '1'))
    t.same(headers({}, {}, keyed(makeLimits(null, 4))), slots('4', '9'))
  })

  t.test('a refusal names the limit that is to be waited for longest', async (t) => {
    const call = keyed(makeLimits(60, 4), { requestsPerMinute: 100, concurrency: 8 })
    const refusal = (key: object, account: object) => {
      const { refusal, isDone } = decide(
        limited,
        makeAccess({ 'calls key_a': key, acc_a: account }).access,
        call,
      )
      t.notOk(isDone)
      return refusal
    }
    const byMinute = (resetMs: number) => ({ refusedBy: 'requests', remainingRequests: 0, resetMs })
    const bySlots = { refusedBy: 'concurrency', remainingConcurrency: 0 }
    const start = 'rate_limit_exceeded: Rate limit exceeded:'
    t.equal(
      refusal(byMinute(2_000), byMinute(3_500)),
      `${start} requests per minute. This account may make 100; try again in 4 s. retry-after,4`,
    )
    t.equal(
      refusal(byMinute(2_000), bySlots),
      `${start} requests per minute. This API key may make 60; try again in 2 s. retry-after,2`,
    )
    t.match(refusal(byMinute(0), {}), 'retry-after,1')
    t.equal(
      refusal({}, bySlots),
      `${start} concurrency. At most 8 requests of this account may be in flight at once. retry-after,1`,
    )
    t.match(refusal(bySlots, bySlots), 'At most 4 requests of this API key')
  })

  t.test('what goes before the refusal of a limit', async (t) => {
    const { access } = makeAccess({ 'calls key_a': { refusedBy: 'requests' } })
    const assert = (poor: AuthenticatedCall) => assertBalance(poor)
    const refusal = (view: WalletView) =>
      decide(
        (by) => rateLimit<AuthenticatedCall>(by, assert),
        access,
        makeCall({ key: apiKey({ limits: makeLimits(1, null) }), view }),
      ).refusal
    t.match(refusal(wallet(0n)), /^quota_exceeded/)
    t.match(refusal(wallet(1n)), /^rate_limit_exceeded/)
  })

  t.test('slots are given back when the call is over', async (t) => {
    const { access, released } = makeAccess({})
    const call = keyed(makeLimits(1, 1))
    t.ok(decide(limited, access, call).isDone)
    t.equal(released.length, 0)
    call.ended()
    t.equal(released.length, 1)
  })

  t.test('reads of the log and of the usage are limited separately: 60 a minute', async (t) => {
    const call = keyed(makeLimits(1, 1), { requestsPerMinute: 1 })
    const log = makeAccess({})
    t.same(decide((access) => limitLogReads<AuthenticatedCall>(access), log.access, call).headers, {
      ...{ 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '9', 'x-ratelimit-reset': '1' },
    })
    t.same(log.asked, ['key_a 60 null'])
    const refused = { refusedBy: 'requests', resetMs: 1_500 }
    t.equal(
      decide(
        (access) => limitLogReads<AuthenticatedCall>(access),
        makeAccess({ key_a: refused }).access,
        call,
      ).refusal,
      'logs_rate_limited: The call log answers 60 requests per minute to a key; try again in 2 s. retry-after,2',
    )
    const usage = makeAccess({ 'usage key_a': refused })
    const { refusal } = decide((access) => limitUsageReads<AuthenticatedCall>(access), usage.access, call)
    t.match(refusal, /^rate_limit_exceeded: .* This API key may make 60/)
    t.same(usage.asked, ['usage key_a 60 null'])
    t.ok(admits([]))
  })
})
