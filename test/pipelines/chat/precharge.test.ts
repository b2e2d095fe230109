/** The estimate of a chat call: what it is by the models that may serve it, what it reserves, and what a refusal says of it. */
import { Observable } from 'rxjs'
import t from 'tap'
import {
  type AdmittedCall,
  type CallReservations,
  endReservation,
  estimateCall,
  explainCost,
  explainEstimate,
  limitPrice,
  precharge,
  reserve,
  toAdmission,
} from '../../../pipelines/chat/precharge.ts'
import type { PricedCall } from '../../../pipelines/chat/select-model.ts'
import type { SpendRefusal } from '../../../schemas/accounts/budget.ts'
import type { Admission } from '../../../schemas/call-log/columns.ts'
import { configFile } from '../../../schemas/config/file.ts'
import type { Failure } from '../../../schemas/failure.ts'
import { parseCredits } from '../../../schemas/money.ts'
import type { EstimatedCall } from '../../../src/core/pricing/estimate.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import type { KnownKey } from '../../../src/credentials/credentials.ts'
import { WalletView } from '../../../src/credentials/wallet.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'
import { apiKey, knownKey } from '../../support/known-key.ts'

/** Prices of whole credits: one for a token of the prompt, two for one of the output. */
const PRICING = { unit: '1M_tokens', input: '1000000', output: '2000000' }
const makeCatalog = (more: object = {}) =>
  createCatalog(
    configFile.parse({
      models: [
        { id: 'm', pricing: { ...PRICING, server_tool_call: '5' }, max_output_tokens: 2000 },
        { id: 'dear', pricing: { ...PRICING, input: '3000000' } },
        { id: 'cheap', pricing: { ...PRICING, input: '500000' } },
        { id: 'search', endpoint_type: 'rerank', pricing: { unit: 'search', per_unit: '4' } },
      ],
      ...more,
    }),
  )
const CATALOG = makeCatalog()
const modelNamed = (id: string) => CATALOG.resolve(id)!
const served = (id: string) => ({ model: modelNamed(id), routes: [] })
const credits = (amount: number) => parseCredits(String(amount))

/** 10 tokens of prompt, 7 of output: 24 credits by the model `m`. */
const ESTIMATED: EstimatedCall = {
  ...{ conversationBytes: 40, promptBytes: 40, outputLimit: 7, choices: 1 },
  ...{ builtInTools: [], toolCallLimit: null, links: { image: 0, file: 0, audio: 0 } },
}
const SUBMITTED_AT = 1_000

const makeCall = (call: object = {}, more: object = {}, headers: Readonly<Record<string, string>> = {}) =>
  ({
    request: gatewayRequest({ submittedAt: SUBMITTED_AT, header: (name) => headers[name] ?? '' }),
    known: knownKey(),
    model: modelNamed('m'),
    ...{ routes: [], fallbacks: [], others: [], protocol: 'chat-completions', catalog: CATALOG },
    call: { ...ESTIMATED, stream: true, ...call },
    ...more,
  }) as unknown as PricedCall

t.test('the estimate of a call', async (t) => {
  t.test('is by the dearest model that may serve it', async (t) => {
    t.equal(estimateCall(makeCall(), 'specified'), credits(24))
    for (const [fallbacks, estimate] of [
      [['cheap'], 24],
      [['dear'], 44],
      [['cheap', 'dear', 'cheap'], 44],
    ] as const)
      t.equal(
        estimateCall(makeCall({}, { fallbacks: fallbacks.map(served) }), 'specified'),
        credits(estimate),
      )
    const searched = makeCall({ units: { count: 3 } }, { model: modelNamed('search') })
    t.equal(estimateCall(searched, 'specified'), credits(12), 'by its units')
  })

  t.test('has those that its upstream may ask: the dearest, or all together', async (t) => {
    const other = (id: string, more: object = {}) => ({
      name: id,
      field: 'models',
      model: modelNamed(id),
      ...more,
    })
    const estimate = (mode: 'specified' | 'worst_case', ...others: object[]) =>
      estimateCall(makeCall({ builtInTools: ['mcp'], toolCallLimit: 1 }, { others }), mode)
    t.equal(estimate('specified', other('cheap')), credits(24))
    t.equal(estimate('specified', other('cheap'), other('dear')), credits(44))
    t.equal(estimate('worst_case'), credits(29))
    t.equal(estimate('worst_case', other('dear')), credits(29 + 44))
    t.equal(estimate('worst_case', other('dear', { outputLimit: 8 })), credits(29 + 46))
    const advisor = (more: object = {}) => other('dear', { field: 'advisor', outputLimit: 1, ...more })
    t.equal(estimate('worst_case', advisor()), credits(29 + 3 * 32), 'as often as the model may call tools')
    t.equal(estimate('worst_case', advisor({ mostRuns: 2 })), credits(29 + 2 * 32))
    t.equal(estimate('specified', advisor()), credits(32))
  })
})

t.test('a refusal names the largest part of the estimate', async (t) => {
  const explain = (call: object, more: object = {}) => explainEstimate(makeCall(call, more), 'worst_case')
  const large = { conversationBytes: 4000, promptBytes: 4000 }
  for (const [protocol, conversation, limit] of [
    ['chat-completions', 'messages', 'max_tokens'],
    ['messages', 'messages', 'max_tokens'],
    ['responses', 'input', 'max_output_tokens'],
    ['generate-content', 'contents', 'maxOutputTokens'],
  ]) {
    const of = { protocol }
    t.equal(explain(large, of), `, 1000 of them for the bytes of ${conversation}`)
    t.equal(explain({ outputLimit: 900 }, of), `, 1800 of them for an output of ${limit} 900`)
    t.equal(explain({ outputLimit: null }, of), `, 4000 of them for an output without a limit: set ${limit}`)
  }
  for (const [call, said] of [
    [{ ...large, keptTokens: 900 }, '900 of them for the 900 tokens that the conversation holds already'],
    [{ promptBytes: 4000 }, '990 of them for the bytes of tools and schemas'],
    [{ links: { image: 1, file: 0, audio: 0 } }, '1600 of them for the files that are given by URL'],
    [{ thinkingTokens: 50 }, '100 of them for the 50 tokens of reasoning that it asks for'],
    [
      { builtInTools: ['mcp', 'web_search'] },
      '30 of them for the 6 calls of tools that the upstream may run',
    ],
    [{ compacts: true, promptBytes: 80 }, '34 of them for the summary of the prompt that it asks for'],
  ] as const)
    t.equal(explain(call), `, ${said}`)
  t.equal(explain({ conversationBytes: 0, promptBytes: 0, outputLimit: 0 }), '', 'of nothing there is none')
  for (const [protocol, conversation] of [
    ['embeddings', 'input'],
    ['rerank', 'documents'],
    ['audio_transcriptions', 'file'],
  ])
    t.equal(
      explain({ ...large, outputLimit: 0 }, { protocol }),
      `, 1000 of them for the bytes of ${conversation}`,
    )

  const agent = makeCall({}, { known: knownKey({ key: apiKey({ kind: 'agent' }) }) })
  t.equal(explainCost(agent, credits(24), 'specified'), '', 'an agent does not learn prices')
  t.equal(
    explainCost(makeCall(), credits(24), 'specified'),
    ' (up to 24 credits, 14 of them for an output of max_tokens 7)',
  )
})

t.test('the highest price of a call', async (t) => {
  const limited = (maxPrice: string, more: object = {}, call: object = {}) =>
    limitPrice(() => CATALOG)(makeCall(call, more, { 'x-max-price': maxPrice })) as PricedCall
  const names = ({ fallbacks, others }: PricedCall) => [
    fallbacks.map(({ model }) => model.id),
    others.map(({ name }) => name),
  ]
  const other = (id: string) => ({ name: id, field: 'models', model: modelNamed(id) })

  t.test('refuses a call whose own model is dearer', async (t) => {
    const free = makeCall()
    t.equal(limitPrice(() => CATALOG)(free), free, 'without one')
    t.same(names(limited('24')), [[], []])
    t.throws(
      () => limited('23.9'),
      /up to 24 credits, 14 of them for an output of max_tokens 7, and at most 23.9/,
    )
  })

  t.test('leaves out the models that are', async (t) => {
    const fallbacks = ['dear', 'cheap'].map(served)
    t.same(names(limited('43', { fallbacks })), [['cheap'], []])
    t.same(names(limited('44', { fallbacks })), [['dear', 'cheap'], []])
    t.same(names(limited('43', { others: [other('dear')] })), [[], []])
    t.same(names(limited('44', { others: [other('dear')] })), [[], ['dear']])
    t.same(names(limited('43', { fallbacks, others: [other('cheap')] })), [['cheap'], ['cheap']])
  })
})

t.test('the estimate is reserved in this process', async (t) => {
  const admit = (known: Partial<KnownKey>, call: object = {}, headers = {}, more: object = {}) =>
    precharge(() => makeCatalog(more))(makeCall(call, { known: knownKey(known) }, headers)) as AdmittedCall
  const wallet = (balance: number) =>
    new WalletView({ accountId: 'acc_a', balance: credits(balance), held: 0n, used: 0n, version: 1n })

  t.test('in the wallet, and in the cap of its key', async (t) => {
    const [view, cap] = [wallet(30), wallet(24)]
    t.match(admit({ view, cap }), { estimate: credits(24), estimateMode: 'specified' })
    t.same([view.inFlight, cap.inFlight], [credits(24), credits(24)])
    t.throws(() => admit({ view }), /may cost up to 24 credits, 14 of them for an output/)
    t.equal(view.inFlight, credits(24), 'what was refused reserves nothing')
    const roomy = wallet(100)
    t.throws(() => admit({ view: roomy, cap }), /spend cap .* for this call \(up to 24 credits, 14 of them/)
    t.equal(roomy.inFlight, 0n)
    const unreserved = { wallet: { reserve_in_flight: false } }
    t.doesNotThrow(() => admit({ view }, {}, {}, unreserved))
    t.match(admit({ view: wallet(100) }, {}, {}, { estimate: 'worst_case' }), { estimateMode: 'worst_case' })
  })

  t.test('over all processes where the balance is low', async (t) => {
    const isShared = (balance: number, more: object = {}) =>
      admit({ view: wallet(balance) }, {}, {}, { wallet: more }).isShared
    t.same([isShared(100), isShared(10_000)], [true, false])
    t.same(
      [isShared(10_000, { exact_below: '9000' }), isShared(100, { reserve_in_flight: false })],
      [true, false],
    )
  })

  t.test('with the session that pins it to a channel, as far as the log has it', async (t) => {
    const pins = (call: object, headers: Readonly<Record<string, string>> = {}) => {
      const { pin, sessionId } = admit({ view: wallet(100) }, call, headers)
      return [pin, sessionId]
    }
    t.same(pins({}), [null, null])
    t.same(pins({ conversationKey: 'c' }), ['acc_a c', null])
    t.same(pins({ conversationKey: 'c' }, { 'x-session-id': 's' }), ['acc_a s', 's'])
    t.same(pins({}, { 'x-session-id': 'é' }), ['acc_a é', null])
  })

  t.test('with the limits of its time', async (t) => {
    const time = (limits: object, call: object = {}) =>
      admit({ view: wallet(100) }, call, {}, { limits: { chat_seconds: 100, ...limits } }).time
    t.same(time({}), { totalMs: 100_000, idleMs: null })
    t.same(time({ chat_idle_seconds: 20 }), { totalMs: 100_000, idleMs: 20_000 })
    t.same(time({}, { mostMs: 99_999 }).totalMs, 99_999)
    t.same(time({}, { mostMs: 100_001 }).totalMs, 100_000)
  })
})

t.test('the estimate is reserved over all processes', async (t) => {
  /** Reservations that answer as the test says, and what was asked of them. */
  function reservations({
    wallet = [] as readonly (boolean | Error)[],
    refusal = null as SpendRefusal | null,
  } = {}) {
    const asked: string[] = []
    const faults: unknown[] = []
    const answers = [...wallet]
    const deps: CallReservations = {
      caps: {
        async reserveWallet({ accountId, requestId, amount, callMs, reservedIn }) {
          asked.push(
            `wallet ${accountId} ${requestId.slice(0, 3)} ${amount} ${callMs} ${reservedIn?.journalId} ${(reservedIn?.admission as Admission | undefined)?.estimate}`,
          )
          const answer = answers.shift() ?? true
          if (answer instanceof Error) throw answer
          return answer
        },
        async reserveSpend({ keyId, amount, callMs, submittedAt, reservedIn }) {
          asked.push(`spend ${keyId} ${amount} ${callMs} ${submittedAt} ${reservedIn?.journalId}`)
          return refusal
        },
        release: async () => void asked.push('release'),
        async shrink(_, cost) {
          asked.push(`shrink ${cost}`)
          if (cost === 13n) throw new Error('a fault')
          if (cost === 14n) throw new Error('away')
        },
      },
      journalId: 'journal',
      isAway: (error) => (error as Error).message === 'away',
      onReservationFault: (error) => void faults.push((error as Error).message),
      onReservationRefused: (reason) => void asked.push(`refused by ${reason}`),
    }
    return { deps, asked, faults }
  }
  const view = (amount = 100n) =>
    new WalletView({ accountId: 'acc_a', balance: amount, held: 0n, used: 0n, version: 1n })

  function admitted(isShared: boolean, isCapped = false) {
    const known = knownKey({ view: view(), cap: isCapped ? view() : null })
    known.view.admit(60n, true)
    known.cap?.admit(60n, true)
    const time = { totalMs: 5_000, idleMs: null }
    const more = { known, isShared, estimate: 60n, estimateMode: 'specified', time, sessionId: 's' }
    return makeCall({}, more) as AdmittedCall
  }

  const run = async (deps: CallReservations, call: AdmittedCall): Promise<string> => {
    const next = reserve<AdmittedCall>(deps)(call)
    if (!(next instanceof Observable)) return next === call ? 'at once' : 'another'
    return new Promise((resolve) =>
      next.subscribe({
        next: (emitted) => resolve(emitted === call ? 'admitted' : 'another'),
        error: (error: Failure) => resolve(error.message),
      }),
    )
  }
  const WALLET = 'wallet acc_a req 60 5000 journal 60'
  const SPEND = `spend key_a 60 5000 ${SUBMITTED_AT} journal`

  t.test('where its wallet is shared, or its key is limited', async (t) => {
    for (const [isShared, isCapped, end, ...calls] of [
      [false, false, 'at once'],
      [true, false, 'admitted', WALLET],
      [false, true, 'admitted', SPEND],
      [true, true, 'admitted', WALLET, SPEND],
    ] as const) {
      const { deps, asked } = reservations()
      const call = admitted(isShared, isCapped)
      t.equal(await run(deps, call), end)
      t.same(asked, calls)
      t.equal(call.known.view.inFlight, 60n, 'the end of the call releases it')
    }
  })

  t.test('a refusal is tried three times: another call may just have ended', async (t) => {
    const late = reservations({ wallet: [false, false, true] })
    const running = run(late.deps, admitted(true))
    for (let turn = 0; turn < 20; turn++) await null
    t.same(late.asked, [WALLET], 'not at once')
    t.equal(await running, 'admitted')
    t.same(late.asked, [WALLET, WALLET, WALLET])
    const { deps, asked } = reservations({ wallet: [false, false, false] })
    const call = admitted(true)
    t.match(await run(deps, call), /balance is insufficient .* 14 of them for an output/)
    t.same(asked, [WALLET, WALLET, WALLET, 'refused by wallet', 'release'])
    t.equal(call.known.view.inFlight, 0n)
  })

  t.test('a refusal of the cap gives back what was reserved', async (t) => {
    const { deps, asked } = reservations({ refusal: { by: 'spend_cap' } as SpendRefusal })
    const call = admitted(false, true)
    t.match(await run(deps, call), /spend cap .* \(up to 0.0000006 credits/)
    t.same(asked, [SPEND, 'refused by spend_cap', 'release'])
    t.same([call.known.view.inFlight, call.known.cap?.inFlight], [0n, 0n])
  })

  t.test('while PostgreSQL is away this process decides; any other error fails the call', async (t) => {
    const away = reservations({ wallet: [new Error('away')] })
    t.equal(await run(away.deps, admitted(true)), 'admitted')
    const broken = reservations({ wallet: [new Error('syntax error')] })
    t.equal(await run(broken.deps, admitted(true)), 'syntax error')
    t.same(broken.asked, [WALLET, 'release'])
  })

  t.test('a client that leaves meanwhile gives back what was admitted', async (t) => {
    const { deps, asked } = reservations()
    const call = admitted(true, true)
    const next = reserve<AdmittedCall>(deps)(call) as Observable<unknown>
    next.subscribe(() => t.fail('nobody waits')).unsubscribe()
    t.same([call.known.view.inFlight, call.known.cap?.inFlight], [0n, 0n])
    await new Promise(setImmediate)
    t.same(asked, [WALLET, SPEND, 'release'])
  })

  t.test('the end of a call leaves its cost reserved until it is booked', async (t) => {
    for (const [isShared, isCapped, cost, calls, faults] of [
      [false, false, 5n, [], []],
      [true, false, 5n, ['shrink 5'], []],
      [false, true, 5n, ['shrink 5'], []],
      [true, false, 13n, ['shrink 13'], ['a fault']],
      [true, false, 14n, ['shrink 14'], []],
    ] as const) {
      const made = reservations()
      const call = admitted(isShared, isCapped)
      endReservation(made.deps, call, cost)
      await new Promise(setImmediate)
      t.same([made.asked, made.faults], [calls, faults])
      for (const limit of [call.known.view, call.known.cap])
        if (limit !== null) t.same([limit.inFlight, limit.unbooked], [0n, cost])
    }
  })

  t.test('the journal has the call as it was admitted', async (t) => {
    const call = admitted(true)
    t.same(toAdmission(call), {
      ...{ request_id: call.request.requestId, account_id: 'acc_a', key_id: 'key_a', model: 'm' },
      ...{ protocol: 'chat-completions', stream: true, submitted_at: SUBMITTED_AT },
      ...{ estimate: '60', session_id: 's' },
    })
    const stream = (more: object) => toAdmission({ ...call, call: { ...call.call, ...more } }).stream
    t.same([stream({ isAssembled: true }), stream({ stream: false })], [false, false])
  })
})
