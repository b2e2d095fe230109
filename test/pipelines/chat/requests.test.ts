/** Requests of chat before they are forwarded: agents, caps, embeddings, forms, files and tools. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { firstValueFrom, from, lastValueFrom, Observable, of, switchMap, throwError } from 'rxjs'
import t, { type Test } from 'tap'
import type { CallAccess } from '../../../pipelines/calls/authenticate.ts'
import { admitWithinLimits, assertBalance } from '../../../pipelines/calls/balance.ts'
import { makeErrorReply } from '../../../pipelines/calls/errors.ts'
import type { Answered } from '../../../pipelines/calls/pipeline.ts'
import { jsonReply } from '../../../pipelines/calls/replies.ts'
import type { ChatDeps } from '../../../pipelines/chat/chat.ts'
import { passCall } from '../../../pipelines/chat/pass-call.ts'
import {
  type AdmittedCall,
  type CallReservations,
  endReservation,
  reserve,
} from '../../../pipelines/chat/precharge.ts'
import {
  checkLinks,
  type PricedCall,
  requireServerTools,
  selectModel,
} from '../../../pipelines/chat/select-model.ts'
import { MAX_FORM_BYTES, type ReadForm, readForm } from '../../../pipelines/media/inputs/read-form.ts'
import {
  ACCEPTED_IMAGES,
  type InputStore,
  storeDataUri,
} from '../../../pipelines/media/inputs/store-input.ts'
import { Uploads } from '../../../pipelines/media/inputs/uploads.ts'
import type { KeyKind } from '../../../schemas/accounts/key.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import {
  CHAT_PROTOCOLS,
  type ChatProtocol,
  modelEntry,
  PASSED_ENDPOINTS,
  type PassedEndpoint,
} from '../../../schemas/config/catalog.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import { parseCredits } from '../../../schemas/money.ts'
import { readDetail } from '../../../src/core/call-log/detail-text.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { BudgetView } from '../../../src/credentials/budget.ts'
import { capTotals, WalletView } from '../../../src/credentials/wallet.ts'
import type { GatewayRequest } from '../../../src/http/handler.ts'
import { MAX_BODY_BYTES } from '../../../src/http/request-reader.ts'
import { Router } from '../../../src/http/router.ts'
import { GatewayServer } from '../../../src/http/server.ts'
import { isAway } from '../../../src/postgres/errors.ts'
import { readChatCall } from '../../../src/protocols/chat-completions/dialect.ts'
import type { FetchedFile } from '../../../src/protocols/dialect.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { clientLimits, clientOn, HOST, RawClient, until as untilTrue } from '../../src/http/support.ts'
import { newAccount, reserveCap, startDatabase } from '../../src/postgres/support.ts'
import { chatWith } from '../../src/protocols/request/plain-requests.ts'
import { bytesOf, folderStore } from '../../src/storage/support.ts'
import { until } from '../../support/eventually.ts'
import { accountOf, apiKey, knownKey } from '../../support/known-key.ts'
import { ASK, agentWith, Call, type Made, OnePageWiki, PERSONA } from './agent-call-support.ts'
import { DONE, event, FINISH, RunningCall, usageChunk, word } from './forward-support.ts'

t.test('agent calls', async (t) => {
  // What an agent makes of a call, what it is refused for, and what its row says.
  t.test('a call is that of the agent, down to its row', async (t) => {
    const call = new Call({
      body: { ...ASK, tools: [{ type: 'function' }], tool_choice: 'required', user: 'u' },
    })
    t.same(call.sent, {
      model: 'wire-blind',
      messages: [{ role: 'system', content: PERSONA }, ...ASK.messages],
      temperature: 0.2,
      user: 'u',
    })
    const upstream = call.attempts[0]!
    upstream.answer({
      choices: [{ message: { content: 'yes' } }],
      usage: { prompt_tokens: 7, completion_tokens: 3 },
    })
    t.match(call.row, {
      status: 'success',
      model: 'blind',
      key_id: 'key_a',
      account_id: 'acc_a',
      cost: '1300000000',
    })
    t.match(readDetail(call.row.detail ?? ''), { agent: 'agt_a', messages: 2, temperature: 0.2 })
    t.notOk('knowledge_pages' in readDetail(call.row.detail ?? ''))
    const bytes = Buffer.byteLength(JSON.stringify(call.sent.messages))
    t.equal(
      call.row.estimate,
      parseCredits(String(Math.ceil(bytes / 4) + 2 * 10)).toString(),
      'of the persona as well',
    )
  })

  t.test(
    'another model serves when those of the agent failed, with its persona, price and cost',
    async (t) => {
      const call = new Call({ agent: agentWith({ model: 'failing' }) })
      t.equal(call.sent.model, 'wire-failing')
      call.attempts[0]!.fail('connect')
      t.match(call.sent, {
        model: 'wire-blind',
        messages: [{ role: 'system', content: PERSONA }, ...ASK.messages],
        temperature: 0.2,
      })
      const upstream = call.attempts[1]!
      upstream.answer({
        choices: [{ message: { content: 'yes' } }],
        usage: { prompt_tokens: 8, completion_tokens: 4 },
      })
      t.match(call.row, { status: 'success', model: 'blind', attempts_count: 2 })
      // 8 x 1 + 4 x 2, and 8 x 0.25 + 4 x 0.5
      t.match(call.row, { cost: parseCredits('16').toString(), upstream_cost: parseCredits('4').toString() })
      t.match(readDetail(call.row.detail ?? ''), { agent: 'agt_a' })
    },
  )

  t.test('its knowledge is searched once, and given before the latest message', async (t) => {
    const wiki = new OnePageWiki()
    const agent = agentWith({ knowledge: ['default', 'row_kb_shared', 'kb_empty', 'kb_shared'] })
    const messages = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi' },
      { role: 'user', content: [{ type: 'text', text: ' May I return it? ' }] },
    ]
    const call = await new Call({ wiki, agent, body: { messages, stream: true } }).settled()
    t.same(wiki.asked, [
      { accountId: 'acc_a', agentId: 'agt_a' },
      { bases: ['default', 'kb_shared'], query: 'May I return it?', range: { limit: 5, offset: 0 } },
    ])
    const sent = call.sent.messages
    t.same([sent[0].role, sent[1], sent[2], sent[4]], ['system', messages[0], messages[1], messages[2]])
    t.match(sent[3], {
      role: 'user',
      content: /id "page_1", title "Returns"\nThirty days, with the receipt\.\n/,
    })
    const marks = new Set(String(sent[3].content).match(/[0-9a-f]{32}/g))
    t.equal(marks.size, 1)
    const upstream = call.attempts[0]!
    upstream.head()
    for (const piece of [word('yes'), FINISH, usageChunk(50, 1), DONE]) upstream.data(piece)
    upstream.end()
    t.match(readDetail(call.row.detail ?? ''), { agent: 'agt_a', knowledge_pages: 1, messages: 5 })
    t.ok(BigInt(call.row.estimate) > parseCredits(String(String(sent[3].content).length / 4)))

    const again = await new Call({ agent: agentWith({ knowledge: ['default'] }) }).settled()
    t.notOk(
      marks.has(/[0-9a-f]{32}/.exec(again.sent.messages[1].content)![0]),
      'each call has a mark of its own',
    )
  })

  t.test('there is nothing to search for without a question, and nothing in an empty base', async (t) => {
    for (const [knowledge, content] of [
      [['default'], '  '],
      [['default'], [{ type: 'file', file: {} }]],
      [['kb_empty'], 'What?'],
    ] as const) {
      const wiki = new OnePageWiki()
      const call = await new Call({
        wiki,
        agent: agentWith({ knowledge: [...knowledge] }),
        body: { messages: [{ role: 'user', content }] },
      }).settled()
      t.equal(call.sent.messages.length, 2)
      t.equal(wiki.asked.length, 1)
    }
  })

  t.test('a long question is asked by its beginning', async (t) => {
    const wiki = new OnePageWiki()
    const body = { messages: [{ role: 'user', content: `${'w'.repeat(998)}😀😀😀` }] }
    await new Call({ wiki, agent: agentWith({ knowledge: ['default'] }), body }).settled()
    t.match(wiki.asked[1], { query: `${'w'.repeat(998)}😀😀` })
  })

  t.test('each refusal, in its order, leaves a row at no cost', async (t) => {
    const knowing = agentWith({ knowledge: ['kb_x'] })
    const image = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }]
    const away = new OnePageWiki()
    away.isAway = true
    const cases: readonly (readonly [made: Made, status: number, code: string, message: RegExp])[] = [
      [{ balance: '0', agent: agentWith({}, { state: 'draft' }) }, 402, 'quota_exceeded', /balance/],
      [{ agent: null }, 403, 'permission_denied', /no agent/],
      [{ agent: agentWith({}, { state: 'draft' }), body: 'x' }, 403, 'permission_denied', /not published/],
      [{ agent: agentWith({}, { state: 'deleted' }) }, 403, 'permission_denied', /deleted/],
      [{ agent: agentWith({}, { accountId: 'acc_b' }) }, 403, 'permission_denied', /another organization/],
      [
        { accountModels: ['seeing'], body: 'x' },
        403,
        'permission_denied',
        /does not allow the model 'blind'/,
      ],
      [{ agent: knowing, body: 'x' }, 403, 'permission_denied', /'kb_x'/],
      [{ agent: agentWith({ knowledge: ['default'] }), wiki: away }, 503, 'service_unavailable', /knowledge/],
      [{ body: 'x' }, 400, 'invalid_request', /JSON/],
      [{ body: { messages: [{ role: 'system', content: 'x' }] } }, 400, 'invalid_request', /role user/],
      [{ agent: agentWith({ model: 'gone' }) }, 400, 'model_not_found', /'gone'/],
      [{ key: { allowedModels: [] } }, 400, 'model_not_allowed', /'blind'/],
      [{ body: { messages: image } }, 400, 'model_no_vision', /images/],
      [{ body: { messages: [...image, ...ASK.messages] } }, 400, 'model_no_vision', /images/],
      [
        { agent: agentWith({ web_search: true }), body: { ...ASK, stream: true } },
        400,
        'tool_not_supported',
        /web_search/,
      ],
      [{ balance: '10' }, 402, 'quota_exceeded', /balance/],
    ]
    for (const [made, status, code, message] of cases) {
      const name = `${code} ${message}`
      const call = await new Call(made).settled()
      t.ok(call.error instanceof Failure, `${name}: ${call.error}`)
      t.match(call.error, { status, code, message }, name)
      t.equal(call.attempts.length, 0, name)
      t.match(call.row, { status: 'rejected', error_code: code, cost: '0', key_id: 'key_a' }, name)
      t.equal(call.row.model, made.agent === null ? 'whatever' : (made.agent?.file.model ?? 'blind'), name)
      t.equal(call.view.inFlight, 0n, name)
    }
  })

  t.test('images go to a model that sees, and the built-in tools into streams', async (t) => {
    const content = [{ type: 'image_url', image_url: { url: 'data:,' } }]
    const seen = new Call({
      agent: agentWith({ model: 'seeing' }),
      body: { messages: [{ role: 'user', content }] },
    })
    t.same(seen.sent.messages[1].content, content)
    const agent = agentWith({ model: 'searching', web_search: true })
    t.same(new Call({ agent, body: { ...ASK, stream: true } }).sent.tools, [{ type: 'web_search' }])
  })

  t.test('an agent with built-in tools answers in one piece what its upstream streams', async (t) => {
    const agent = agentWith({ model: 'searching', web_search: true })
    const ask = () => new Call({ agent, body: { ...ASK, stream: false } })
    const call = ask()
    t.match(call.sent, {
      stream: true,
      stream_options: { include_usage: true },
      tools: [{ type: 'web_search' }],
    })
    const [upstream] = call.attempts
    upstream!.head()
    upstream!.data(word('ye') + word('s'))
    t.same(call.replies, [], 'nothing goes out before it is whole')
    upstream!.data(FINISH + usageChunk(7, 3) + DONE)
    upstream!.end()
    const [reply] = call.replies
    t.match(reply, { type: 'full', status: 200, headers: [['content-type', 'application/json']] })
    t.match(JSON.parse(String(reply?.type === 'full' && reply.body)), {
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 7, completion_tokens: 3 },
    })
    t.match(call.row, { status: 'success', stream: false, cost: parseCredits('13').toString() })

    const whole = ask()
    whole.attempts[0]!.answer({
      choices: [{ message: { content: 'yes' } }],
      usage: { prompt_tokens: 7, completion_tokens: 3 },
    })
    t.match(
      whole.replies,
      [{ type: 'full', body: /"content":"yes"/ }],
      'as is where the upstream does not stream',
    )

    const broken = ask()
    broken.attempts[0]!.head()
    broken.attempts[0]!.data(word('ye'))
    broken.attempts[0]!.fail('reset', { headReceived: true })
    t.match(broken.error, { status: 502, code: 'upstream_unreachable' })
    t.match(broken.row, { status: 'error', cost: '0' })
    const unfinished = ask()
    unfinished.attempts[0]!.stream(word('ye'))
    t.match(unfinished.error, { status: 502, code: 'upstream_error' })
    const erred = ask()
    erred.attempts[0]!.stream(word('ye') + event({ error: { message: 'no capacity' } }))
    t.match(erred.error, { status: 502, message: /no capacity/ })
  })

  t.test('without knowledge nobody is asked, and the upstream is called at once', async (t) => {
    const wiki = new OnePageWiki()
    wiki.isAway = true
    t.equal(new Call({ wiki }).attempts.length, 1)
    t.same(wiki.asked, [])
  })

  t.test('what is found for a client that has left goes nowhere', async (t) => {
    const wiki = new OnePageWiki()
    const { promise, resolve } = Promise.withResolvers<void>()
    wiki.hold = promise
    const call = await new Call({ wiki, agent: agentWith({ knowledge: ['default'] }) }).settled()
    t.equal(wiki.asked.length, 2, 'it is being searched')
    call.subscription.unsubscribe()
    resolve()
    await call.settled()
    t.same([call.attempts.length, call.settlements.length, call.view.inFlight], [0, 0, 0n])
  })

  t.test('a conversation that is named stays with one channel', async (t) => {
    const channelOf = (headers: Readonly<Record<string, string>>) =>
      new Call({ headers }).attempts[0]!.request.channel.id
    for (const name of ['session_id', 'conversation_id']) {
      const first = channelOf({ [name]: 'abc' })
      for (let turn = 0; turn < 10; turn++) t.equal(channelOf({ [name]: 'abc' }), first)
    }
    const channels = new Set(
      Array.from({ length: 40 }, (_, session) => channelOf({ session_id: String(session) })),
    )
    t.equal(channels.size, 2)
  })
})

t.test('capped calls are reserved first', async (t) => {
  const { database, sql } = await startDatabase(t)
  const CAP = 100n
  const REFUSED = { code: 'quota_exceeded', message: /spend cap/ }

  const entry = modelEntry.parse({ id: 'fast', pricing: { unit: '1M_tokens', input: '1', output: '1' } })
  const body = Buffer.from(JSON.stringify({ model: 'fast', messages: [{ role: 'user', content: 'hi' }] }))
  const CALLED = {
    time: { totalMs: 180_000, idleMs: null },
    model: { id: 'fast', entry, price: tokenPrice(entry.pricing) },
    ...{ fallbacks: [], others: [] },
    protocol: 'chat-completions',
    call: readChatCall(body),
    estimateMode: 'specified',
  }

  /** What a gateway process knows of a key with a cap, and a call of it that is admitted there. */
  async function newCaller(by = database, isShared = false) {
    const accountId = await newAccount(by)
    const { key } = await by.keys.create({ accountId, name: 'capped', kind: 'employee', spendCap: CAP })
    const { wallet } = await by.accounts.show(accountId)
    const known = {
      account: { id: accountId },
      key,
      view: new WalletView(wallet),
      cap: new WalletView(capTotals(key.grant)!),
      budgets: [],
    }
    const admitted = (estimate: bigint): AdmittedCall => {
      if (!known.view.admit(estimate, true) || !known.cap.admit(estimate, true))
        throw new Error('not admitted')
      const request = { requestId: newId('req'), submittedAt: Date.now(), header: () => '' }
      return { ...CALLED, request, known, estimate, isShared } as unknown as AdmittedCall
    }
    return { known, admitted }
  }

  const reservedFor = async (call: AdmittedCall): Promise<bigint | null> => {
    const [row] = await sql<{ amount: bigint }[]>`
    SELECT amount FROM cap_reservations WHERE ref = ${call.request.requestId}`
    return row?.amount ?? null
  }

  const refusals: string[] = []
  const onReservationRefused = (reason: string) => void refusals.push(reason)
  const faults: unknown[] = []
  const deps = {
    ...{ caps: database.reservations, journalId: 'journal', onReservationRefused },
    isAway,
    onReservationFault: (error: unknown) => void faults.push(error),
  }
  t.beforeEach(() => {
    refusals.splice(0)
    faults.splice(0)
  })

  function reserved(deps: CallReservations, call: AdmittedCall): Observable<AdmittedCall | Answered> {
    const next = reserve<AdmittedCall>(deps)(call)
    return next instanceof Observable ? next : of(next)
  }

  t.test('a call goes on once its estimate is reserved, and its end leaves its cost reserved', async (t) => {
    const { known, admitted } = await newCaller()
    const call = admitted(60n)
    t.equal(await firstValueFrom(reserved(deps, call)), call)
    t.equal(await reservedFor(call), 60n)
    t.same([known.view.inFlight, known.cap.inFlight], [60n, 60n], 'from here on it is the call that ends it')
    endReservation(deps, call, 25n)
    t.same([known.cap.inFlight, known.cap.balance], [0n, CAP - 25n])
    await until('the rest is free', async () => (await reservedFor(call)) === 25n)
  })

  t.test('what other processes have reserved is not free here', async (t) => {
    const { known, admitted } = await newCaller()
    await reserveCap(database, { keyId: known.key.id, requestId: newId('req'), amount: 50n })
    const call = admitted(60n)
    await t.rejects(firstValueFrom(reserved(deps, call)), REFUSED)
    t.same([known.view.inFlight, known.cap.inFlight], [0n, 0n], 'nothing stays reserved here either')
    t.same(refusals, ['spend_cap'])
    t.equal(await reservedFor(call), null)
  })

  t.test('a client that leaves before the answer leaves nothing reserved', async (t) => {
    const { known, admitted } = await newCaller()
    const call = admitted(60n)
    const { promise: answered, resolve } = Promise.withResolvers<void>()
    const slow = {
      ...database,
      reservations: {
        ...database.reservations,
        reserveSpend: async (wanted: Parameters<typeof database.reservations.reserveSpend>[0]) => {
          const refusal = await database.reservations.reserveSpend(wanted)
          await answered
          return refusal
        },
      },
    }
    const subscription = reserved({ ...deps, caps: slow.reservations }, call).subscribe(() =>
      t.fail('nobody waits for it'),
    )
    await until('it is reserved', async () => (await reservedFor(call)) === 60n)
    subscription.unsubscribe()
    t.same([known.view.inFlight, known.cap.inFlight], [0n, 0n])
    resolve()
    await until('it is released', async () => (await reservedFor(call)) === null)
  })

  t.test('a call of a low balance is reserved in the wallet, beside what others have reserved', async (t) => {
    const { known, admitted } = await newCaller(database, true)
    const accountId = known.account.id
    const reserve = (amount: bigint) =>
      database.reservations.reserveWallet({ accountId, requestId: newId('req'), amount })
    const free = known.view.balance
    t.ok(await reserve(free - 60n))
    const call = admitted(60n)
    t.equal(await firstValueFrom(reserved(deps, call)), call)
    const over = admitted(1n)
    await t.rejects(firstValueFrom(reserved(deps, over)), {
      code: 'quota_exceeded',
      message: /balance/,
    })
    t.same(refusals, ['wallet'])
    t.same(
      [known.view.inFlight, known.cap.inFlight],
      [60n, 60n],
      'nothing of the refused call stays reserved',
    )
    endReservation(deps, call, 25n)
    await until('its cost stays reserved, the rest is free', async () => await reserve(35n))
    t.notOk(await reserve(1n))
  })

  t.test('a call that its spend cap refuses leaves nothing reserved in the wallet', async (t) => {
    const { known, admitted } = await newCaller(database, true)
    await reserveCap(database, { keyId: known.key.id, requestId: newId('req'), amount: 50n })
    await t.rejects(firstValueFrom(reserved(deps, admitted(60n))), REFUSED)
    await until('it is released', async () => {
      const [row] = await sql<[{ reserved: bigint }]>`SELECT reserved_in(${known.account.id}) AS reserved`
      return row.reserved === 0n
    })
  })

  t.test('while PostgreSQL is away what is known here decides alone', async (t) => {
    const { database: doomed } = await startDatabase(t)
    const { known, admitted } = await newCaller(doomed, true)
    await doomed.close()
    const call = admitted(60n)
    t.equal(await firstValueFrom(reserved({ ...deps, caps: doomed.reservations }, call)), call)
    t.notOk(known.cap.admit(60n, true))
    endReservation({ ...deps, caps: doomed.reservations }, call, 10n)
    t.equal(known.cap.balance, CAP - 10n)
  })

  t.test('a statement that fails is no absence of PostgreSQL: the call fails', async (t) => {
    const { database: broken, sql: hands } = await startDatabase(t)
    const { known, admitted } = await newCaller(broken, true)
    await hands`ALTER FUNCTION reserve_spend RENAME TO reserve_nothing`
    const capped = admitted(60n)
    await t.rejects(firstValueFrom(reserved({ ...deps, caps: broken.reservations }, capped)), {
      code: '42883',
    })
    t.same([known.view.inFlight, known.cap.inFlight], [0n, 0n])
    await until('nothing stays reserved in the wallet', async () => {
      const [row] = await hands<[{ reserved: bigint }]>`SELECT reserved_in(${known.account.id}) AS reserved`
      return row.reserved === 0n
    })
    await hands`ALTER FUNCTION reserve_wallet RENAME TO reserve_no_wallet`
    await t.rejects(firstValueFrom(reserved({ ...deps, caps: broken.reservations }, admitted(60n))), {
      code: '42883',
    })
    t.same(faults, [])
    await hands`ALTER TABLE cap_reservations RENAME TO no_reservations`
    endReservation({ ...deps, caps: broken.reservations }, admitted(60n), 10n)
    await until('what cannot be shrunk is reported', async () => faults.length > 0)
    t.match(faults, [{ code: '42P01' }])
  })

  t.test('a cap that is spent refuses before anything is read', async (t) => {
    const { known, admitted } = await newCaller()
    const call = admitted(CAP)
    assertBalance(call)
    known.cap.end(CAP, CAP)
    t.throws(() => assertBalance(call), REFUSED)
  })

  /** What a gateway process knows of a key with a budget alone, and a call of it that is admitted there. */
  async function newBudgetedCaller(by = database) {
    const accountId = await newAccount(by)
    const { key, raw } = await by.keys.create({ accountId, name: 'budgeted' })
    const of = { scope: 'key', subjectId: key.id } as const
    await by.budgets.put({ accountId, amount: CAP, period: 'day', timezone: 'UTC', ...of })
    const credential = (await by.keys.findCredential(by.keys.lookupHash(raw)))!
    const [periods] = credential.budgets
    const budget = new BudgetView(periods!)
    const known = {
      ...credential,
      view: new WalletView(credential.wallet),
      cap: null,
      addresses: null,
      budgets: [budget],
    }
    const call = (estimate: bigint) => {
      const request = { requestId: newId('req'), submittedAt: Date.now(), header: () => '' }
      return { ...CALLED, request, known, estimate, isShared: false } as unknown as AdmittedCall
    }
    const admitted = (estimate: bigint) => {
      const made = call(estimate)
      const refuse = admitWithinLimits(known, estimate, made.request.submittedAt)
      if (refuse !== null || !known.view.admit(estimate, true))
        throw refuse?.('') ?? new Error('not admitted')
      return made
    }
    return { known, budget: budget.at(Date.now()), admitted }
  }

  t.test('a budget is reserved over all processes, and a refusal names it', async (t) => {
    const { known, budget, admitted } = await newBudgetedCaller()
    const call = admitted(60n)
    t.equal(await firstValueFrom(reserved(deps, call)), call)
    t.equal(await reservedFor(call), 60n)
    t.throws(() => admitted(41n), {
      code: 'quota_exceeded',
      message: /daily budget of this API key .*resets at/,
    })
    t.equal(known.view.inFlight, 60n)
    endReservation(deps, call, 25n)
    t.same([budget.inFlight, budget.balance], [0n, CAP - 25n])
    await until('the rest is free', async () => (await reservedFor(call)) === 25n)
    await reserveCap(database, { keyId: known.key.id, requestId: newId('req'), amount: 50n })
    await t.rejects(firstValueFrom(reserved(deps, admitted(60n))), { message: /daily budget/ })
    t.same(refusals, ['budget'])
    t.same([known.view.inFlight, budget.inFlight], [0n, 0n], 'nothing stays reserved here either')
  })

  t.test('while PostgreSQL is away a budget is what this process knows of it', async (t) => {
    const { database: doomed } = await startDatabase(t)
    const { budget, known, admitted } = await newBudgetedCaller(doomed)
    await doomed.close()
    const call = admitted(60n)
    t.equal(await firstValueFrom(reserved({ ...deps, caps: doomed.reservations }, call)), call)
    t.throws(() => admitted(41n), { message: /daily budget/ })
    endReservation({ ...deps, caps: doomed.reservations }, call, CAP)
    t.equal(budget.balance, 0n)
    t.throws(() => assertBalance({ known, request: call.request }), { message: /daily budget/ })
  })
})

t.test('endpoints without a model in the catalog', async (t) => {
  // They are 404 `model_not_found`, and leave a row.
  const KEY = `sk-tollgate-${'a'.repeat(64)}`

  /** What one request is answered, and the rows that it leaves. */
  async function ask(
    body: string,
    {
      kind = 'console',
      isLimited = false,
      endpoint = 'embeddings',
      params = {},
    }: {
      kind?: KeyKind
      isLimited?: boolean
      params?: object
      endpoint?: PassedEndpoint
    } = {},
  ) {
    const refused: Settlement[] = []
    const known = knownKey({
      key: apiKey({ kind }),
      account: accountOf({ requestsPerMinute: isLimited ? 1 : null }),
    })
    const catalog = {
      config: { limits: { requests_per_minute: null, concurrency: null } },
      models: [],
      resolve: (name: string) => (name === 'an-alias' ? { id: 'sonata-large' } : null),
    }
    const deps = {
      credentials: { peek: () => known },
      catalog: () => catalog,
      limiter: {
        take: (_subjects: object, told: (decisions: object[]) => void) => {
          told([{ refusedBy: 'requests', remainingRequests: 0, remainingConcurrency: 0, resetMs: 1000 }])
          return { close: () => undefined }
        },
      },
      onRefused: (settlement: Settlement) => refused.push(settlement),
    } as unknown as CallAccess
    const request = {
      requestId: 'req_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
      path: '/v1/embeddings',
      params,
      query: '',
      header: (name: string) => (name === 'x-api-key' ? KEY : ''),
      body: Buffer.from(body),
      submittedAt: Date.now(),
    } as unknown as GatewayRequest
    const handle = passCall(
      { access: deps, idempotency: {}, links: {}, forwarding: {} } as ChatDeps,
      endpoint,
    )
    const answer: unknown = await lastValueFrom(handle(request)).catch((error: unknown) => error)
    return { answer, refused }
  }

  t.test('whatever is asked, the answer is 404 model_not_found, and a row says so', async (t) => {
    for (const [body, model] of [
      ['{"model":"embed-small","input":"x"}', 'embed-small'],
      ['{"model":"an-alias","input":"x"}', 'sonata-large'],
      ['{"model":7}', ''],
      ['nonsense', ''],
      ['', ''],
    ] as const) {
      for (const endpoint of PASSED_ENDPOINTS) {
        const { answer, refused } = await ask(body, { endpoint })
        const message = `There is no model for ${endpoint.replace('audio_', '')}.`
        t.match(answer, { code: 'model_not_found', status: 404, message }, body)
        t.match(refused, [
          {
            model,
            account_id: 'acc_a',
            key_id: 'key_a',
            status: 'rejected',
            error_code: 'model_not_found',
            cost: '0',
            channel_id: null,
          },
        ])
      }
    }
  })

  t.test('the model of the row is the one that the path names, where it names one', async (t) => {
    const { refused } = await ask('{"model":"other"}', { params: { model: 'models/g' } })
    t.match(refused, [{ model: 'g', error_code: 'model_not_found' }])
  })

  t.test('so do refusals by a limit, and of a key that may not ask', async (t) => {
    const body = '{"model":"embed-small","input":"x"}'
    const limited = await ask(body, { isLimited: true })
    t.match(limited.answer, { cause: { code: 'rate_limit_exceeded' } })
    t.match(limited.refused, [{ model: 'embed-small', error_code: 'rate_limit_exceeded' }])
    const denied = await ask(body, { kind: 'agent' })
    t.match(denied.answer, { code: 'permission_denied' })
    t.match(denied.refused, [{ model: 'embed-small', error_code: 'permission_denied' }])
  })
})

t.test('files are fetched once', async (t) => {
  // Files that an upstream cannot fetch: once for all attempts of a call, and no longer than the call.
  const LINK = 'https://files.example/a.png'
  const MESSAGES = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: LINK } }] }]
  const FILES = new Map<string, FetchedFile>([[LINK, { mediaType: 'image/png', base64: 'AAAA' }]])
  const TRANSLATED = { upstream: 'generate-content', request: { messages: MESSAGES } } as const

  t.test('a second attempt has them already', async (t) => {
    let fetches = 0
    const fetchFiles = async () => {
      fetches++
      return FILES
    }
    const call = new RunningCall({ ...TRANSLATED, channels: ['first', 'second'], fetchFiles })
    const attempts = (count: number) => until(`attempt ${count}`, () => call.attempts.length === count)
    await attempts(1)
    call.attempt.answer({}, 503)
    await attempts(2)
    t.match(String(call.attempt.request.body), /AAAA/)
    t.equal(fetches, 1)
    call.abort()
  })

  t.test('they are fetched for Claude at Bedrock, which takes base64 alone, not for others', async (t) => {
    const asked = { upstream: 'messages', request: { messages: MESSAGES } } as const
    const other = new RunningCall({
      ...asked,
      fetchFiles: () => Promise.reject(new Error('not to be fetched')),
    })
    t.match(String(other.attempt.request.body), LINK)
    other.abort()
    const channelFields = { first: { provider: 'bedrock' } } as const
    const call = new RunningCall({
      ...asked,
      channels: ['first'],
      channelFields,
      fetchFiles: async () => FILES,
    })
    await until('the attempt', async () => call.attempts.length === 1)
    t.match(String(call.attempt.request.body), /"type":"base64","media_type":"image\/png","data":"AAAA"/)
    call.abort()
  })

  t.test('a client that leaves ends the fetch, and no upstream is called', async (t) => {
    const fetched = Promise.withResolvers<typeof FILES>()
    let signal: AbortSignal | null = null
    const call = new RunningCall({
      ...TRANSLATED,
      fetchFiles: (_urls, _deadlineMs, ended) => {
        signal = ended
        return fetched.promise
      },
    })
    t.match(signal, { aborted: false })
    call.abort()
    t.match(signal, { aborted: true })
    fetched.resolve(FILES)
    await fetched.promise
    t.equal(call.attempts.length, 0)
    t.equal(call.settlement.status, 'interrupted')
  })

  t.test(
    'a client that leaves while a retry fetches them does not pay the attempt that failed',
    async (t) => {
      const call = new RunningCall({
        channels: ['first', 'second'],
        channelFields: { second: { protocol: 'generate-content' } },
        request: { messages: MESSAGES },
        fetchFiles: () => new Promise(() => {}),
      })
      call.attempt.answer({}, 503)
      t.equal(call.attempts.length, 1, 'the second waits for its file')
      call.abort()
      t.match(call.settlement, { status: 'interrupted', usage_source: 'none', attempts_count: 1 })
      t.equal(call.settlement.cost, '0')
    },
  )

  t.test('a file that a retry cannot fetch leaves the failure before it', async (t) => {
    const call = new RunningCall({
      channels: ['first', 'second'],
      channelFields: { second: { protocol: 'generate-content' } },
      request: { messages: MESSAGES },
      fetchFiles: async () => Promise.reject(new Failure('invalid_request', 'It cannot be fetched.')),
    })
    call.attempt.answer({}, 503)
    await until('the answer', () => call.error !== null)
    t.match(call.error, { status: 503 })
    t.match(call.settlement, { status: 'error', error_code: 'upstream_error', attempts_count: 1 })
  })
})

t.test('forms are stored while they come', async (t) => {
  const MIB = 1024 * 1024
  const RULES = {
    accepted: { ...ACCEPTED_IMAGES, maxBytes: 32 * MIB },
    files: { image: 2, 'image[]': 16, mask: 1 },
  }

  const png = (length: number): Buffer =>
    Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(length)])
  const blob = (bytes: Buffer, type = 'image/png') => new Blob([Uint8Array.from(bytes)], { type })

  interface Served {
    readonly url: string
    readonly port: number
    readonly folder: string
    readonly store: ObjectStore
    readonly recorded: Array<{ key: string; expiresAt: number }>
    readonly seen: GatewayRequest[]
    readonly forms: Array<ReadForm | null>
    readonly server: GatewayServer
  }

  const stored = (folder: string): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => join(parentPath, name).slice(folder.length + 1))

  async function serve(
    t: Test,
    change: (store: ObjectStore) => ObjectStore = (store) => store,
  ): Promise<Served> {
    const { store: inFolder, folder } = await folderStore(t)
    const store = change(inFolder)
    const recorded: Served['recorded'] = []
    const deps: InputStore = {
      files: store,
      objects: { recordObjects: async (objects) => void recorded.push(...objects) },
      now: () => 1000,
    }
    const uploads = new Uploads({ files: store })
    const seen: GatewayRequest[] = []
    const forms: Served['forms'] = []
    const edit = (request: GatewayRequest) => {
      seen.push(request)
      const upload = uploads.begin('acc_a')
      return from(readForm(request, deps, { ...RULES, upload })).pipe(
        switchMap(async (form) => {
          forms.push(form)
          return jsonReply({ body: request.body.length, fields: form?.fields, files: form?.files })
        }),
      )
    }
    const refuse = () => throwError(() => new Failure('invalid_api_key', 'API key is invalid.'))
    const router = new Router([
      ['POST', '/edit', { handler: edit, maxFormBytes: MAX_FORM_BYTES }],
      ['POST', '/refuse', { handler: refuse, maxFormBytes: MAX_FORM_BYTES }],
    ])
    const server = new GatewayServer({
      clients: clientLimits(),
      maxTextBytes: () => MAX_BODY_BYTES,
      router,
      renderError: (path, id) =>
        makeErrorReply(path, id, { onUnforeseen: t.error, onInternal: () => undefined }),
    })
    const port = await server.listen(HOST, 0)
    t.teardown(() => server.close())
    return { url: `http://${HOST}:${port}`, port, folder, store, recorded, seen, forms, server }
  }

  const post = async (url: string, body: string | FormData, headers: Record<string, string> = {}) => {
    const response = await fetch(url, { method: 'POST', body, headers })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  t.test('fields in their order, files in the store as they were sent', async (t) => {
    const { url, store, recorded, seen } = await serve(t)
    const [one, two, mask] = [png(3 * MIB), png(100), png(70_000)]
    const form = new FormData()
    form.append('model', 'demo-image')
    form.append('image[]', blob(one), 'C:\\photos\\cat & dog.png')
    form.append('prompt', 'a hat, on the cat ☂')
    form.append('image[]', blob(two, 'text/plain'), '../../etc/passwd')
    form.append('mask', blob(mask), 'mask.png')
    const { status, body } = await post(`${url}/edit`, form)
    t.equal(status, 200)
    t.equal(seen[0]?.body.length, 0, 'nothing is held as a body')
    const id = seen[0]?.requestId
    const at = (number: number) => `inputs/${id}-${number}.png`
    const file = (number: number, bytes: Buffer, name: string) => ({
      from: 'store',
      key: at(number),
      media_type: 'image/png',
      bytes: bytes.length,
      name,
    })
    t.strictSame(body.fields, [
      ['model', 'demo-image'],
      ['prompt', 'a hat, on the cat ☂'],
    ])
    const found = body.files as { field: string; file: object }[]
    const files = found.map(({ field, file }) => ({ field, file }))
    t.strictSame(files, [
      { field: 'image[]', file: file(1, one, 'cat _ dog.png') },
      { field: 'image[]', file: file(2, two, 'passwd') },
      { field: 'mask', file: file(3, mask, 'mask.png') },
    ])
    for (const [number, bytes] of [
      [1, one],
      [2, two],
      [3, mask],
    ] as const)
      t.ok((await bytesOf((await store.get(at(number)))!.stream)).equals(bytes))
    t.same(
      recorded,
      [1, 2, 3].map((number) => ({ key: at(number), expiresAt: 1000 + 24 * 60 * 60 * 1000 })),
    )
  })

  t.test('a compressed form is read as it comes, and within the limit', async (t) => {
    const { url, forms } = await serve(t)
    const send = async (form: FormData) => {
      const plain = new Response(form)
      return fetch(`${url}/edit`, {
        method: 'POST',
        body: gzipSync(Buffer.from(await plain.arrayBuffer())),
        headers: { 'content-type': plain.headers.get('content-type')!, 'content-encoding': 'gzip' },
      })
    }
    const form = new FormData()
    form.append('prompt', 'a hat')
    form.append('image', blob(png(3 * MIB)), 'cat.png')
    t.equal((await send(form)).status, 200)
    t.match(forms[0], { fields: [['prompt', 'a hat']], files: [{ file: { bytes: 3 * MIB + 8 } }] })
    const expanding = new FormData()
    expanding.append('image', blob(Buffer.concat([png(100), Buffer.alloc(5 * MIB)])), 'cat.png')
    const refused = await send(expanding)
    t.equal(refused.status, 400)
    t.match(await refused.text(), /expands to more than 100 times its size/)
  })

  t.test('files of one content have one hash; others have others', async (t) => {
    const { url, forms } = await serve(t)
    const picture = png(1000)
    for (const bytes of [picture, Buffer.from(picture), png(999)]) {
      const form = new FormData()
      form.append('image', blob(bytes), 'a.png')
      await post(`${url}/edit`, form)
    }
    const [first, same, other] = forms.map((form) => form!.files[0]!.sha256.toString('hex'))
    t.equal(first, same)
    t.not(first, other)
  })

  t.test('any other body is as ever: whole', async (t) => {
    const { url, forms } = await serve(t)
    const { body } = await post(`${url}/edit`, '{"image":"x"}', { 'content-type': 'application/json' })
    t.equal(body.body, 13)
    t.same(forms, [null])
  })

  t.test('what is wrong with a form is said, and nothing of it stays', async (t) => {
    const { url, folder } = await serve(t)
    const refusalOf = async (build: (form: FormData) => void, headers?: Record<string, string>) => {
      const form = new FormData()
      form.append('image', blob(png(200_000)), 'good.png')
      build(form)
      const { status, body } = await post(`${url}/edit`, form, headers)
      const { code, message } = body.error as Record<string, string>
      return `${status} ${code} ${message}`
    }
    const file = (form: FormData, field: string, bytes = png(10), type?: string) =>
      form.append(field, blob(bytes, type), 'a.png')
    t.match(
      await refusalOf((form) => file(form, 'mask', Buffer.from('<svg onload="x">'))),
      '400 invalid_request The file in mask is not a PNG, JPEG, WebP or GIF image.',
    )
    t.match(await refusalOf((form) => file(form, 'mask', Buffer.alloc(0))), 'The file in mask is empty.')
    t.match(
      await refusalOf((form) => file(form, 'video')),
      '400 invalid_request The form brings a file in "video"; files go into image, image[], mask.',
    )
    t.match(await refusalOf((form) => file(form, 'constructor')), 'brings a file in "constructor"')
    t.match(
      await refusalOf((form) => {
        file(form, 'mask')
        file(form, 'mask')
      }),
      'more than 1 file in mask',
    )
    t.match(
      await refusalOf((form) => {
        for (let i = 0; i < 20; i++) file(form, 'image[]')
      }),
      /more than (?:16 files in image\[\]|19 files)/,
    )
    t.match(
      await refusalOf((form) => {
        for (let i = 0; i < 65; i++) form.append('x', '1')
      }),
      'more than 64 fields',
    )
    t.match(
      await refusalOf((form) => form.append('prompt', 'x'.repeat(256 * 1024 + 1))),
      'longer than 256 KiB',
    )
    t.match(
      await refusalOf((form) => file(form, 'mask', png(32 * MIB))),
      '413 request_too_large The file in mask is larger than 32 MiB.',
    )
    const raw = (body: string, type: string) => post(`${url}/edit`, body, { 'content-type': type })
    for (const [body, type] of [
      ['x', 'multipart/form-data'],
      ['', 'multipart/form-data; boundary=b'],
      ['--b\r\ncontent-disposition: form-data; name="a"\r\n\r\nhalf', 'multipart/form-data; boundary=b'],
    ] as const)
      t.match(await raw(body, type), {
        status: 400,
        body: { error: { code: 'invalid_request', message: /cannot be read/ } },
      })
    t.same(stored(folder), [])
  })

  t.test('a store that is away is no fault of the form', async (t) => {
    const put = async () => {
      throw new Error('connect ECONNREFUSED 10.0.0.5:9000')
    }
    const { url } = await serve(t, (store) => Object.assign(Object.create(store) as ObjectStore, { put }))
    const form = new FormData()
    form.append('image', blob(png(MIB)), 'a.png')
    const { status, body } = await post(`${url}/edit`, form)
    t.match({ status, body }, { status: 503, body: { error: { code: 'service_unavailable' } } })
    t.notMatch(JSON.stringify(body), '10.0.0.5')
  })

  const formHead = (length: number | 'chunked', path = '/edit'): string =>
    `POST ${path} HTTP/1.1\r\nhost: t\r\ncontent-type: multipart/form-data; boundary=b\r\n` +
    `${length === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${length}`}\r\n\r\n`
  const filePart = (field: string): string =>
    `--b\r\ncontent-disposition: form-data; name="${field}"; filename="a.png"\r\n\r\n\x89PNG\r\n\x1a\n`

  t.test('more than 64 MiB is refused, told beforehand or not', async (t) => {
    const { port, folder } = await serve(t)
    const told = clientOn(t, port)
    t.match(await told.send(formHead(MAX_FORM_BYTES + 1)).until((text) => text.includes('}')), /413.*64 MiB/s)

    const untold = clientOn(t, port)
    untold.send(formHead('chunked'))
    const chunk = (bytes: Buffer) =>
      Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
    untold.send(chunk(Buffer.from(filePart('image'), 'latin1')))
    for (let sent = 0; sent < 70 && !untold.text.includes('}'); sent++) {
      if (!untold.socket.write(chunk(Buffer.alloc(MIB)))) await once(untold.socket, 'drain')
      if (sent === 30) untold.socket.write(chunk(Buffer.from(`\r\n${filePart('mask')}`, 'latin1')))
    }
    t.match(await untold.until((text) => text.includes('}')), /413.*larger than/s)
    t.same(stored(folder), [])
  })

  /** So much may the gateway hold while the store takes nothing: a read brings half a MiB, and stages have a few each. */
  const MOST_HELD_BYTES = 20 * MIB
  const ESTABLISHED = '01'

  /**
   * Returns the bytes of a port's connections that lie in the kernel, sent or received: proc_net_tcp(5). The kernel
   * moves bytes from one connection's end to the other between two lines of one reading, hence several readings.
   */
  const bytesInKernel = (port: number): number =>
    Math.max(...Array.from({ length: 4 }, () => readQueues(port)))

  function readQueues(port: number): number {
    const ends = new RegExp(`:${port.toString(16).toUpperCase().padStart(4, '0')}$`)
    const lines = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1)
    const queues = lines.flatMap((line) => {
      const [, local = '', remote = '', state, sizes = ''] = line.trim().split(/\s+/)
      return state === ESTABLISHED && (ends.test(local) || ends.test(remote)) ? sizes.split(':') : []
    })
    return queues.reduce((sum, hex) => sum + Number.parseInt(hex, 16), 0)
  }

  t.test('a slow store slows the client down: never is more held than a few pieces', async (t) => {
    let taken = 0
    const { port, seen, folder } = await serve(t, (store) =>
      Object.assign(Object.create(store) as ObjectStore, {
        put: (key: string, content: Readable, options: Parameters<ObjectStore['put']>[2]) => {
          async function* slowly() {
            for await (const piece of content) {
              taken += piece.length
              await new Promise((resolve) => setTimeout(resolve, 1))
              yield piece
            }
          }
          return store.put(key, Readable.from(slowly()), options)
        },
        delete: (keys: string[]) => store.delete(keys),
      }),
    )
    const length = 31 * MIB
    const start = Buffer.from(filePart('image'), 'latin1')
    const end = Buffer.from('\r\n--b--\r\n')
    const client = clientOn(t, port)
    client.send(formHead(start.length + length + end.length)).send(start)
    let held = 0
    for (let sent = 0; sent < length; sent += 65_536) {
      if (!client.socket.write(Buffer.alloc(65_536, 7))) await once(client.socket, 'drain')
      if ((sent / 65_536) % 8 !== 0) continue
      const sentBytes = client.socket.bytesWritten - client.socket.writableLength
      held = Math.max(held, sentBytes - taken - bytesInKernel(port))
    }
    client.send(end)
    t.match(await client.until((text) => text.includes('}')), '200 OK')
    t.ok(held < MOST_HELD_BYTES, `${(held / MIB).toFixed(1)} MiB held`)
    t.equal(seen.length, 1)
    t.equal(stored(folder).length, 1)
  })

  t.test('a client that leaves half-way leaves nothing in the store', async (t) => {
    const { port, folder, server, recorded } = await serve(t)
    const client = new RawClient(port)
    client.send(formHead(60 * MIB))
    client.send(Buffer.from(filePart('image'), 'latin1')).send(Buffer.alloc(200_000, 1))
    client.send(Buffer.from(`\r\n${filePart('mask')}`, 'latin1')).send(Buffer.alloc(200_000, 1))
    await untilTrue(() => recorded.length === 2 && stored(folder).length === 2)
    client.socket.destroy()
    await untilTrue(() => stored(folder).length === 0)
    await server.waitUntilIdle()
    t.equal(recorded.length, 2, 'what may have been left would go in a day')
  })

  t.test(
    'a form that nobody reads passes: its client is answered, and its connection lives on',
    async (t) => {
      const { port, server } = await serve(t)
      const client = clientOn(t, port)
      for (let round = 1; round <= 2; round++) {
        client.send(formHead(8 * MIB, '/refuse'))
        for (let sent = 0; sent < 8; sent++)
          if (!client.socket.write(Buffer.alloc(MIB))) await once(client.socket, 'drain')
        const answers = (text: string) => text.split('HTTP/1.1 401').length - 1
        await client.until((text) => answers(text) === round)
        t.equal(answers(client.text), round)
      }
      await server.waitUntilIdle()
    },
  )

  t.test('a data URI is taken in as a file is', async (t) => {
    const { store } = await folderStore(t)
    const recorded: string[] = []
    const deps: InputStore = {
      files: store,
      objects: { recordObjects: async (objects) => void recorded.push(...objects.map(({ key }) => key)) },
    }
    const upload = new Uploads({ files: store }).begin('acc_a')
    const place = { upload, requestId: 'req_1', number: 2, field: 'image[1]' }
    const take = (uri: string) => storeDataUri(deps, { ...place, uri }, ACCEPTED_IMAGES)
    const bytes = png(5000)
    const file = await take(`data:image/jpeg;base64,${bytes.toString('base64')}`)
    t.same(file, {
      from: 'store',
      key: 'inputs/req_1-2.png',
      media_type: 'image/png',
      bytes: bytes.length,
      name: 'file-2.png',
    })
    t.ok((await bytesOf((await store.get(file.key))!.stream)).equals(bytes))
    t.same(recorded, [file.key])
    for (const uri of ['data:image/png,abc', 'http://x.test/a.png', 'data:;base64,AAAA', ''])
      await t.rejects(take(uri), { code: 'invalid_request', message: /image\[1\] is not a data URI/ }, uri)
    for (const content of ['', '%%%'])
      await t.rejects(take(`data:image/png;base64,${content}`), { message: /image\[1\] is empty/ }, content)
    const page = `data:image/png;base64,${Buffer.from('<html>').toString('base64')}`
    await t.rejects(take(page), { message: /image\[1\] is not a PNG/ })
  })
})

t.test('links are checked before they are forwarded', async (t) => {
  // A chat request whose links an upstream may not follow goes to channels that may take them, or is refused.
  const INNER = 'http://10.0.0.1/a'
  const checked: (readonly string[])[] = []
  const deps = {
    checkLinks: async (urls: readonly string[]) => {
      checked.push(urls)
      if (urls.includes(INNER))
        throw new Failure('invalid_request', `The file at ${INNER} cannot be fetched.`)
    },
  }

  function step(protocol: ChatProtocol, request: object, ...trusting: boolean[]) {
    const routes = trusting.map((private_links, id) => ({ channel: { id, private_links } }))
    const call = {
      protocol,
      call: chatWith(protocol, request),
      routes,
      ...{ fallbacks: [], others: [] },
    } as unknown as PricedCall
    return checkLinks(deps)(call)
  }

  const channelsFor = async (protocol: ChatProtocol, request: object, ...trusting: boolean[]) => {
    const next = step(protocol, request, ...trusting)
    const { routes } = (await lastValueFrom(next instanceof Observable ? next : from([next]))) as PricedCall
    return routes.map(({ channel }) => Number(channel.id))
  }

  const user = (content: unknown) => [{ role: 'user', content }]
  const REQUESTS: ReadonlyArray<readonly [ChatProtocol, (url: string) => object]> = [
    ['chat-completions', (url) => ({ messages: user([{ type: 'image_url', image_url: { url } }]) })],
    ['chat-completions', (url) => ({ messages: user([{ type: 'video_url', video_url: { url } }]) })],
    ['chat-completions', (url) => ({ messages: user([{ type: 'document_url', document_url: url }]) })],
    ['chat-completions', (url) => ({ messages: user([{ type: 'file', file: { file_data: url } }]) })],
    [
      'chat-completions',
      (url) => ({ messages: user([{ type: 'input_audio', input_audio: { data: url } }]) }),
    ],
    ['chat-completions', (url) => ({ messages: user([{ type: 'video', video: [url] }]) })],
    ['chat-completions', (url) => ({ tools: [{ type: 'mcp', server_url: url }], stream: true })],
    ['messages', (url) => ({ messages: user([{ type: 'image', source: { type: 'url', url } }]) })],
    ['messages', (url) => ({ messages: user([{ type: 'video', source: { type: 'url', url } }]) })],
    [
      'messages',
      (url) => ({
        messages: user([
          {
            type: 'tool_result',
            tool_use_id: 't',
            content: [{ type: 'image', source: { type: 'url', url } }],
          },
        ]),
      }),
    ],
    ['messages', (url) => ({ mcp_servers: [{ type: 'url', name: 'a', url }] })],
    ['generate-content', (url) => ({ contents: [{ parts: [{ fileData: { fileUri: url } }] }] })],
    ['responses', (url) => ({ input: user([{ type: 'input_image', image_url: url }]) })],
    ['responses', (url) => ({ input: user([{ type: 'input_video', url }]) })],
    [
      'responses',
      (url) => ({
        input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', url }] }],
      }),
    ],
    ['responses', (url) => ({ tools: [{ type: 'mcp', server_label: 'a', server_url: url }] })],
  ]

  for (const [protocol, request] of REQUESTS)
    t.test(`${protocol}: ${JSON.stringify(request('URL'))}`, async (t) => {
      const refused = { code: 'invalid_request', message: /cannot be fetched/ }
      t.same(await channelsFor(protocol, request('https://a.example/'), false, true), [0, 1])
      await t.rejects(channelsFor(protocol, request(INNER), false, false), refused)
      t.same(await channelsFor(protocol, request(INNER), false, true), [1], 'private_links')
    })

  t.test('a request without links, and one for private channels alone, waits for nothing', async (t) => {
    const image = {
      messages: user([{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }]),
    }
    checked.length = 0
    t.notOk(step('chat-completions', image, false) instanceof Observable)
    t.notOk(step('chat-completions', REQUESTS[0]![1](INNER), true) instanceof Observable)
    t.same(checked, [])
  })

  t.test('a link to a file that is stored at a provider is refused before', async (t) => {
    const contents = [{ role: 'user', parts: [{ fileData: { fileUri: 'files/1' } }] }]
    t.throws(() => step('generate-content', { contents }, false), {
      code: 'invalid_request',
      message: /fileUri/,
    })
  })
})

t.test('server tools need model and channel', async (t) => {
  // A call that asks for tools of the upstream goes to channels that have all of them, or is refused.
  const TOOLS = ['web_search', 'code_interpreter', 'url_context', 'computer_use', 'mcp'] as const
  const able = Object.fromEntries(TOOLS.map((tool) => [tool, true]))

  const channel = (
    id: string,
    protocol: ChatProtocol,
    models: readonly string[],
    tools: readonly string[],
  ) => ({
    id,
    protocol,
    base_url: 'http://a.example',
    api_key: 'k',
    models: Object.fromEntries(models.map((model) => [model, model])),
    tools,
  })
  const pricing = { unit: '1M_tokens', input: '1', output: '1', server_tool_call: '5' }
  const catalog = createCatalog(
    configFile.parse({
      models: [
        { id: 'able', capabilities: able, pricing },
        { id: 'plain', pricing },
        { id: 'translated', capabilities: able, pricing },
      ],
      channels: [
        ...CHAT_PROTOCOLS.flatMap((protocol) => [
          channel(`${protocol}-all`, protocol, ['able', 'plain'], TOOLS),
          channel(`${protocol}-none`, protocol, ['able', 'plain'], []),
        ]),
        channel('other', 'messages', ['translated'], TOOLS),
      ],
    }),
  )

  function channelsFor(protocol: ChatProtocol, model: string, more: object): string[] {
    const call = { ...chatWith(protocol, { stream: true, ...more }), model }
    const caller = { key: { allowedModels: null }, account: { allowedModels: null } }
    const read = { protocol, call, known: caller } as unknown as PricedCall
    const selected = selectModel(() => catalog)(read) as PricedCall
    const { routes } = requireServerTools()(selected) as PricedCall
    return routes.map((route) => route.channel.id)
  }

  const offered = (protocol: ChatProtocol, type: string): object =>
    protocol === 'generate-content' ? { [type]: {} } : { type, name: 'x' }

  for (const protocol of CHAT_PROTOCOLS)
    t.test(protocol, async (t) => {
      const own = [`${protocol}-all`, `${protocol}-none`]
      const channels = (model: string, ...types: string[]) =>
        channelsFor(protocol, model, { tools: types.map((type) => offered(protocol, type)) }).filter((id) =>
          own.includes(id),
        )
      t.same(channels('able'), own, 'without a tool any channel serves')
      for (const type of [
        'web_search_preview',
        'googleSearch',
        'code_execution',
        'urlContext',
        'computer_use',
        'mcp',
      ]) {
        t.same(channels('able', type), [`${protocol}-all`], type)
        t.throws(() => channels('plain', type), { code: 'tool_not_supported' }, type)
      }
      for (const type of ['image_generation', 'file_search', 'google_maps'])
        t.throws(() => channels('able', type), { code: 'tool_not_supported', message: /'able'/ }, type)
    })

  t.test('tools by another door are gated as well', async (t) => {
    t.throws(() => channelsFor('chat-completions', 'plain', { web_search_options: {}, stream: true }), {
      code: 'tool_not_supported',
    })
    t.throws(() => channelsFor('chat-completions', 'able', { web_search_options: {}, stream: false }), {
      code: 'invalid_request',
      message: /'stream'/,
    })
    const fetcher = { tools: [{ type: 'url_context' }] }
    for (const [model, more] of [
      ['plain', { web_search_options: {} }],
      ['plain', fetcher],
      ['translated', fetcher],
    ] as const)
      t.throws(
        () => channelsFor('chat-completions', model, { ...more, stream: false }),
        { code: 'invalid_request' },
        'a stream is asked for first',
      )
    t.throws(() => channelsFor('messages', 'plain', { mcp_servers: [{ type: 'url', url: 'x' }] }), {
      code: 'tool_not_supported',
    })
  })

  t.test('a translation can say a search alone', async (t) => {
    const tools = (type: string) => ({ tools: [{ type }] })
    t.same(channelsFor('chat-completions', 'translated', tools('web_search')), ['other'])
    for (const type of ['code_interpreter', 'mcp', 'url_context'])
      t.throws(() => channelsFor('chat-completions', 'translated', tools(type)), {
        code: 'tool_not_supported',
      })
  })
})
