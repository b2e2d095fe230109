/** What is noted of responses and conversations that an upstream keeps. */
import { Observable } from 'rxjs'
import t from 'tap'
import { CallEnds, type Stage } from '../../../pipelines/calls/pipeline.ts'
import {
  noteStoredResponse,
  noteUnfinishedCall,
  ResponseNotes,
  runAfter,
} from '../../../pipelines/chat/forward/response-notes.ts'
import type { PricedCall } from '../../../pipelines/chat/select-model.ts'
import {
  addConversationItems,
  beginConversation,
  type KeptConversations,
} from '../../../pipelines/chat/stored/conversations.ts'
import {
  addKeptTokens,
  type CountedCall,
  countInConversation,
  findConversation,
  findResponse,
  followItems,
  followState,
  type StoredState,
} from '../../../pipelines/chat/stored/state.ts'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import { NO_USAGE } from '../../../src/core/pricing/usage.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import type { ResponseToStore } from '../../../src/postgres/requests/stored-responses.ts'
import { VirtualTime } from '../../simulation/virtual-time.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'
import { knownKey } from '../../support/known-key.ts'
import { fullReply } from '../../support/reply-to.ts'

const REPORTED = { ...NO_USAGE, prompt: 100, output: 20 }
const WHOLE = { responseId: 'resp_1', itemIds: ['msg_1'], usage: REPORTED, isUsageWhole: true }

function collect() {
  const notes: ResponseToStore[] = []
  const storeResponse = async (note: ResponseToStore) => void notes.push(note)
  return { notes, deps: { storeResponse } as never }
}

/** A call of 10 tokens of prompt and 7 of output. */
const admitted = (state: object | undefined) =>
  ({
    call: { state, promptBytes: 40, outputLimit: 7, links: { image: 0, file: 0, audio: 0 } },
    known: { account: { id: 'acc' } },
    request: { requestId: 'req' },
    model: { entry: modelEntry.parse({ id: 'm' }) },
  }) as never

t.test('what a response leaves behind', async (t) => {
  const note = async (state: object | undefined, days = 30, metered: object = WHOLE) => {
    const { notes, deps } = collect()
    const route = { channel: { id: 'c', keeps_responses_days: days } }
    const noted = noteStoredResponse(
      deps,
      admitted(state),
      route as never,
      { readMeter: () => metered } as never,
    )
    await noted
    t.equal(noted === null, notes.length === 0)
    return notes[0] ?? null
  }
  const stored = { isStored: true, conversation: null }

  t.test('it is noted where client and channel keep it, with its id', async (t) => {
    t.match(await note(stored), {
      accountId: 'acc',
      id: 'resp_1',
      channelId: 'c',
      days: 30,
      conversation: null,
    })
    t.equal(await note(undefined), null, 'another protocol')
    t.equal(await note({ ...stored, isStored: false }), null, 'the client said no')
    t.equal(await note(stored, 0), null, 'the channel keeps none')
    t.equal(await note(stored, 30, { ...WHOLE, responseId: undefined }), null, 'nobody can name it')
    t.match(await note(stored, 1), { id: 'resp_1' })
  })

  t.test('its tokens are those of its prompt and its output, as they were reported', async (t) => {
    t.match(await note(stored), { tokens: 120, items: { ids: ['msg_1'], tokens: 20 } })
    t.same((await note(stored, 30, { ...WHOLE, itemIds: undefined }))?.items, { ids: [], tokens: 20 })
    for (const unreported of [{ isUsageWhole: false }, { usage: null }])
      t.match(await note(stored, 30, { ...WHOLE, ...unreported }), { tokens: 17, items: { tokens: null } })
  })

  t.test('a conversation grows by each call, stored or not', async (t) => {
    const within = { conversation: 'conv', isStored: false }
    const conversation = { id: 'conv', requestId: 'req', reported: 120, isStored: true }
    t.match(await note(within), { id: null, conversation })
    t.match(await note({ ...within, isStored: true }), { id: 'resp_1', conversation })
    t.match(await note({ ...within, isStored: true }, 0), { id: null, conversation })
  })
})

t.test('what a call leaves in its conversation that did not succeed', async (t) => {
  const note = (
    kind: string,
    status: number | null,
    conversation: string | null = 'conv',
    metered: object = WHOLE,
  ) => {
    const { notes, deps } = collect()
    const attempt = status === null ? null : { status }
    noteUnfinishedCall(deps, admitted({ conversation }), { ending: { kind }, attempt, metered } as never)
    return notes[0] ?? null
  }
  const isStored = (...given: Parameters<typeof note>) => note(...given)?.conversation?.isStored

  t.test('nothing is noted of one that succeeded, or without a conversation', async (t) => {
    t.equal(note('success', 200), null)
    t.equal(note('failed', 500, null), null)
    const { notes, deps } = collect()
    noteUnfinishedCall(deps, admitted(undefined), { ending: { kind: 'failed' }, attempt: null } as never)
    t.same(notes, [])
  })

  t.test('what its upstream may have kept counts', async (t) => {
    t.equal(isStored('failed', 500), true)
    t.equal(isStored('cancelled', 200), true)
    t.equal(isStored('cancelled', 400), true, 'only a failure is a refusal')
    for (const status of [400, 499]) t.equal(isStored('failed', status), false, `${status}`)
    t.equal(isStored('failed', 399), true)
    t.equal(isStored('refused', 500), false, 'it was never sent')
    t.equal(isStored('failed', null), false, 'nothing was sent')
  })

  t.test('with the tokens that a whole report names', async (t) => {
    const reported = (metered: object) => note('failed', 500, 'conv', metered)?.conversation?.reported
    t.equal(reported(WHOLE), 120)
    t.equal(reported({ ...WHOLE, isUsageWhole: false }), null)
    t.equal(reported({ ...WHOLE, usage: null }), null)
    t.equal(reported({ ...WHOLE, usage: { ...REPORTED, prompt: 0 } }), null, 'no prompt has no tokens')
  })
})

t.test('what is put into a conversation is counted', async (t) => {
  const pricing = { unit: '1M_tokens', input: '1', output: '1' }
  const catalog = createCatalog(
    configFile.parse({
      models: [
        { id: 'plain', pricing, estimate: { image_tokens: 100 } },
        { id: 'dear', pricing, estimate: { image_tokens: 2_000 } },
      ],
      channels: [
        {
          id: 'keeping',
          protocol: 'responses',
          base_url: 'http://upstream.test/v1',
          api_key: 'key',
          models: { plain: 'plain', dear: 'dear' },
          keeps_responses_days: 30,
          keeps_conversations: true,
        },
      ],
    }),
  )

  /** Asks for one of the two with a body; returns what was counted, in order, and which links were checked. */
  async function ask(what: 'begin' | 'add', body: object, status = 200) {
    const counted: number[] = []
    const checked: string[] = []
    const deps = {
      access: {
        credentials: { peek: () => knownKey() },
        catalog: () => catalog,
        limiter: { take: () => ({ close: () => undefined }) },
      },
      links: { checkLinks: async (urls: readonly string[]) => void checked.push(...urls) },
      channels: {
        catalog: () => catalog,
        calls: {
          send: async () => ({ status, header: () => null, body: Buffer.from('{"id":"conv_1"}') }),
        },
      },
      conversations: {
        findStoredConversation: async () => ({ channelId: 'keeping' }),
        storeConversation: async ({ tokens }: { tokens: number }) => void counted.push(tokens),
        addToConversation: async (_account: string, _id: string, tokens: number) => {
          counted.push(tokens)
          return true
        },
      },
    } as unknown as KeptConversations
    const request = gatewayRequest({
      method: 'POST',
      path: '/v1/conversations',
      params: { id: 'conv_1' } as never,
      header: (name) => (name === 'x-api-key' ? `sk-tollgate-${'a'.repeat(64)}` : ''),
      body: Buffer.from(JSON.stringify(body)),
    })
    const handle = what === 'begin' ? beginConversation(deps) : addConversationItems(deps)
    const answered = await fullReply(handle(request)).catch((error: unknown) => error)
    return { counted, checked, answered }
  }

  const text = [{ role: 'user', content: 'a long story '.repeat(50) }]
  const TEXT_TOKENS = Math.ceil(JSON.stringify(text).length / 4)

  t.test('by the bytes of its items, and of nothing else in the body', async (t) => {
    t.same((await ask('begin', { items: text })).counted, [TEXT_TOKENS])
    t.same((await ask('begin', { metadata: { topic: 'x'.repeat(400) }, items: text })).counted, [TEXT_TOKENS])
    t.same((await ask('begin', {})).counted, [0])
    t.same((await ask('add', { items: text })).counted, [TEXT_TOKENS])
  })

  t.test('a link counts as at the model where it counts most, once it is checked', async (t) => {
    const url = 'https://files.test/a.png'
    const items = [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }]
    const tokens = Math.ceil(JSON.stringify(items).length / 4) + 2_000
    for (const what of ['begin', 'add'] as const) {
      const { counted, checked, answered } = await ask(what, { items })
      t.same([counted, checked], [[tokens], [url]], what)
      t.match(answered, { status: 200 })
    }
  })

  t.test(
    'items that the upstream refuses are taken off again, others that may be there are not',
    async (t) => {
      t.same((await ask('add', { items: text }, 400)).counted, [TEXT_TOKENS, -TEXT_TOKENS])
      t.same((await ask('add', { items: text }, 500)).counted, [TEXT_TOKENS])
    },
  )
})

t.test('a call goes on with what is stored', async (t) => {
  const MODEL = { id: 'm', entry: modelEntry.parse({ id: 'm', context_window: 1000 }) }
  const routeTo = (id: string, more: object = {}, protocol = 'responses') => ({
    channel: { id, protocol: 'responses', keeps_responses_days: 30, keeps_conversations: true, ...more },
    protocol,
  })
  const KEEPING = routeTo('keeping')
  const FORGETTING = routeTo('forgetting', { keeps_responses_days: 0, keeps_conversations: false })
  const STATE = { previous: null, conversation: null, items: [], isStored: true, isBackground: false }

  /** A call of 10 tokens of prompt and 7 of output. */
  const makeCall = (state: object | undefined, more: object = {}, call: object = {}) =>
    ({
      ...{ model: MODEL, requested: MODEL, routes: [KEEPING, FORGETTING], fallbacks: ['another model'] },
      ...{ known: knownKey(), request: { requestId: 'req' }, ends: new CallEnds() },
      call: {
        ...{ conversationBytes: 40, promptBytes: 40, outputLimit: 7, links: { image: 0, file: 0, audio: 0 } },
        ...{ stream: false, state: state && { ...STATE, ...state }, ...call },
      },
      ...more,
    }) as unknown as PricedCall

  /** What the account `acc_a` has. */
  const stored = (more: object = {}) =>
    ({
      findStoredResponse: async (accountId: string, id: string) =>
        accountId === 'acc_a' && id.startsWith('resp')
          ? { channelId: 'keeping', upstreamId: id === 'resp_own' ? 'upstream_1' : id, tokens: 50 }
          : null,
      findStoredItems: async (accountId: string, ids: readonly string[]) =>
        accountId === 'acc_a'
          ? ids
              .filter((id) => id.startsWith('msg'))
              .map((id) => ({ id, responseId: id.slice(0, 5), channelId: 'keeping', tokens: 30 }))
          : [],
      findStoredConversation: async (accountId: string, id: string) =>
        accountId === 'acc_a' && id === 'conv' ? { channelId: 'keeping', tokens: 60 } : null,
      ...more,
    }) as unknown as StoredState

  async function run<C>(stage: Stage<PricedCall, C>, call: PricedCall): Promise<C | string> {
    try {
      const next = stage(call)
      if (!(next instanceof Observable)) return next as C
      return await new Promise<C>((resolve, reject) =>
        next.subscribe({ next: (found) => resolve(found as C), error: reject }),
      )
    } catch (error) {
      if (error instanceof Failure) return `${error.code}: ${error.message}`
      throw error
    }
  }
  const follow = (state: object | undefined, more: object = {}, call: object = {}, of = stored()) =>
    run(followState<PricedCall>(of), makeCall(state, more, call))
  const listChannels = (call: PricedCall | string) =>
    typeof call === 'string' ? call : call.routes.map(({ channel }) => channel.id)

  t.test('any other call passes at once', async (t) => {
    for (const state of [undefined, {}]) {
      const call = makeCall(state)
      for (const stage of [followState(stored()), followItems(stored()), countInConversation(stored())])
        t.equal(stage(call as never), call)
    }
  })

  t.test('at the channel that keeps the response, with its tokens', async (t) => {
    const next = (await follow({ previous: 'resp_1' })) as PricedCall
    t.same(listChannels(next), ['keeping'])
    t.same(next.fallbacks, [])
    t.match(next.call, { keptTokens: 50, conversationBytes: 240, promptBytes: 240 })
    t.notOk('upstreamPrevious' in next.call.state!)
    t.match(((await follow({ previous: 'resp_own' })) as PricedCall).call.state, {
      ...{ previous: 'resp_own', upstreamPrevious: 'upstream_1' },
    })
  })

  t.test('at the channel that keeps the conversation', async (t) => {
    const next = (await follow({ conversation: 'conv' })) as PricedCall
    t.same(listChannels(next), ['keeping'])
    t.same(next.fallbacks, [])
    t.equal(next.call.promptBytes, 40, 'its tokens are counted when it begins')
  })

  t.test('not with what another account has, what is gone, or a name that nothing has', async (t) => {
    const other = { known: knownKey({ account: { id: 'acc_b' } as never }) }
    for (const [state, more] of [
      [{ previous: 'resp_1' }, other],
      [{ previous: 'gone' }, {}],
      [{ previous: 'resp_\0' }, {}],
    ] as const)
      t.match(await follow(state, more), /^not_found: There is no response .*, or it has expired/)
    for (const [state, more] of [
      [{ conversation: 'conv' }, other],
      [{ conversation: 'gone' }, {}],
      [{ conversation: 'conv\0' }, {}],
    ] as const)
      t.match(await follow(state, more), /^not_found: There is no conversation/)
    const away = stored({
      findStoredResponse: () => Promise.reject(new Error('away')),
      findStoredConversation: () => Promise.reject(new Error('away')),
    })
    const unavailable = { code: 'service_unavailable', internal: 'away' }
    await t.rejects(findResponse(away, 'acc_a', 'resp_1'), unavailable)
    await t.rejects(findConversation(away, 'acc_a', 'conv'), unavailable)
  })

  t.test('only where a channel of the model that was asked for keeps it', async (t) => {
    const previous = { previous: 'resp_1' }
    const noChannel = (field: string, why: string) =>
      `invalid_request: ${field}: no channel of the model 'm' keeps ${why}`
    const full = 'send the full history in input.'
    t.equal(
      await follow(previous, { routes: [FORGETTING] }),
      noChannel('previous_response_id', `responses; ${full}`),
    )
    t.match(await follow(previous, { requested: { ...MODEL } }), /^invalid_request: previous_response_id/)
    t.equal(
      await follow({ conversation: 'conv' }, { routes: [FORGETTING] }),
      noChannel('conversation', `conversations; ${full}`),
    )
    for (const [state, field] of [
      [previous, 'previous_response_id'],
      [{ conversation: 'conv' }, 'conversation'],
    ] as const)
      t.match(
        await follow(state, { routes: [routeTo('other')] }),
        `invalid_request: ${field}: the channel that keeps it does not serve the model 'm' now.`,
      )
  })

  t.test('in the background where a channel keeps the answer in that protocol', async (t) => {
    const translated = routeTo('translated', { protocol: 'messages' })
    const background = { isBackground: true }
    t.same(listChannels(await follow(background, { routes: [FORGETTING, KEEPING, translated] })), ['keeping'])
    t.match(
      await follow(background, { routes: [FORGETTING, translated] }),
      /^invalid_request: background: .* without which none is made in the background/,
    )
  })

  t.test('compacted by an upstream that can', async (t) => {
    const routes = [routeTo('other', { protocol: 'messages' }), routeTo('spoken', {}, 'messages'), KEEPING]
    const next = (await follow({ isCompaction: true }, { routes })) as PricedCall
    t.same([listChannels(next), next.fallbacks], [['keeping'], []])
    t.match(await follow({ isCompaction: true }, { routes: routes.slice(0, 2) }), /^no_channel_available/)
  })

  t.test('not with fields that exclude each other', async (t) => {
    const compaction = { isCompaction: true }
    for (const [state, stream, field] of [
      [compaction, true, 'stream'],
      [{ ...compaction, isBackground: true }, false, 'background'],
      [{ ...compaction, conversation: 'conv' }, false, 'conversation'],
      [{ previous: 'resp_1', conversation: 'conv' }, false, 'conversation'],
      [{ isBackground: true }, true, 'background'],
      [{ isBackground: true, isStored: false }, false, 'background'],
      [{ callbackUrl: 'https://x.test' }, false, 'callback_url'],
    ] as const)
      t.match(
        await follow(state, {}, { stream }),
        new RegExp(`^invalid_request: ${field}: `),
        JSON.stringify(state),
      )
    for (const [state, stream] of [
      [compaction, false],
      [{ isBackground: true, callbackUrl: 'https://x.test' }, false],
      [{ previous: 'resp_1' }, true],
    ] as const)
      t.type(await follow(state, {}, { stream }), 'object', JSON.stringify(state))
  })

  t.test('with items of earlier responses, each output once', async (t) => {
    const items = (ids: readonly string[], more: object = {}, of = stored()) =>
      run(followItems<PricedCall>(of), makeCall({ items: ids }, more))
    const next = (await items(['msg_1a', 'msg_1b', 'msg_2a'])) as PricedCall
    t.same([listChannels(next), next.call.keptTokens], [['keeping'], 60])
    t.match(await items(['msg_1', 'gone']), /^not_found: There is no item 'gone', or it has expired/)
    t.match(await items(['msg_\0']), /^not_found/)
    t.match(await items(['msg_1'], { routes: [FORGETTING] }), /^invalid_request: input: .* an item_reference/)
    const elsewhere = stored({
      findStoredItems: async () => [{ id: 'msg_1', responseId: 'r', channelId: 'elsewhere', tokens: null }],
    })
    t.match(await items(['msg_1'], {}, elsewhere), /^invalid_request: input: the channel that keeps it/)
    const unknown = stored({
      findStoredItems: async () => [
        { id: 'msg_1', responseId: 'r', channelId: 'keeping', tokens: null },
        { id: 'msg_2', responseId: 's', channelId: 'keeping', tokens: 5 },
      ],
    })
    const whole = (await items(['msg_1', 'msg_2'], {}, unknown)) as PricedCall
    t.equal(whole.call.keptTokens, 1000, 'of unknown ones, all that the model reads')
  })

  t.test('tokens that are kept count up to what the model reads', async (t) => {
    const kept = (tokens: number | null, before?: number, model: object = MODEL) => {
      const { call } = addKeptTokens(makeCall({}, { model }, { keptTokens: before }), tokens)
      return [call.keptTokens, call.promptBytes, call.conversationBytes]
    }
    t.same(kept(5), [5, 60, 60])
    t.same(kept(5, 7), [12, 60, 60])
    for (const tokens of [null, 1001]) t.same(kept(tokens), [1000, 4040, 4040])
    t.same(kept(null, 0, { entry: modelEntry.parse({ id: 'm' }) })[0], 10_000_000)
  })

  t.test('a call counts in its conversation from before its estimate until its end', async (t) => {
    const begun: object[] = []
    const notes: ResponseToStore[] = []
    const of = (tokens: number | null | Error) =>
      stored({
        async beginConversationCall(call: object) {
          begun.push(call)
          if (tokens instanceof Error) throw tokens
          return tokens === null ? null : { tokens }
        },
        storeResponse: async (note: ResponseToStore) => void notes.push(note),
      })
    const begin = (call: PricedCall, tokens: number | null | Error = 60) =>
      run<CountedCall>(countInConversation<PricedCall>(of(tokens)), call)
    const end = async (call: PricedCall) => {
      ;(call.ends as CallEnds).unsubscribe()
      await new Promise(setImmediate)
      return notes.splice(0)
    }
    const live = makeCall({ conversation: 'conv' })
    const counted = (await begin(live)) as CountedCall
    t.same(begun, [{ accountId: 'acc_a', id: 'conv', requestId: 'req', tokens: 17, hours: 2 }])
    t.equal(counted.call.keptTokens, 60)
    t.match(await end(live), [
      {
        ...{ accountId: 'acc_a', id: null, channelId: '', tokens: null, days: 0 },
        conversation: { id: 'conv', requestId: 'req', reported: null, isStored: false },
      },
    ])
    const sent = makeCall({ conversation: 'conv', isBackground: true })
    const going = (await begin(sent)) as CountedCall
    t.match(begun[1], { hours: 48 })
    t.notOk(going.inConversation?.isHandedOver)
    going.inConversation?.handOver()
    t.ok(going.inConversation?.isHandedOver)
    t.same(await end(sent), [], 'its outcome upstream decides how its end is noted')
    t.match(
      await begin(makeCall({ conversation: 'gone' }), null),
      /^not_found: There is no conversation 'gone'/,
    )
    const away = makeCall({ conversation: 'conv' })
    t.match(await begin(away, new Error('away')), /^service_unavailable/)
    t.same(await end(away), [])
  })
})

t.test('notes wait for PostgreSQL', async (t) => {
  const makeNote = (id: string | null, more: Partial<ResponseToStore> = {}): ResponseToStore => ({
    ...{ accountId: 'acc', id, channelId: 'c', tokens: 5, days: 1, conversation: null },
    ...more,
  })

  function start() {
    const time = new VirtualTime(50)
    const logged: string[] = []
    const details: object[] = []
    const written: ResponseToStore[] = []
    const state = { isAway: false, writeMs: 0 }
    const pause = (ms: number) =>
      new Promise<void>((resolve) =>
        time.after(ms, () => {
          resolve()
          time.promiseSettled()
        }),
      )
    const note = (more: object, message: string) => {
      logged.push(message)
      details.push(more)
    }
    const notes = new ResponseNotes({
      responses: {
        async storeResponse(response) {
          if (state.writeMs > 0) await pause(state.writeMs)
          if (state.isAway) throw new Error('away')
          written.push(response)
        },
        findStoredResponse: async () => ({ channelId: 'stored', upstreamId: 'u', tokens: 1 }),
        findStoredItems: async () => [{ id: 'msg_1', responseId: 'r', channelId: 'stored', tokens: 1 }],
        forgetStoredResponse: async (accountId, id) => void logged.push(`forgot ${id} of ${accountId}`),
      },
      log: { info: note, warn: note, error: note },
      pause,
    })
    const pass = async (ms: number) => {
      time.after(ms, () => time.promiseSettled())
      await time.run(time.now + ms)
    }
    const store = (response: ResponseToStore) => {
      const stored = { isOver: false }
      void notes.storeResponse(response).then(() => {
        stored.isOver = true
      })
      return stored
    }
    return { notes, logged, details, written, state, pass, store }
  }

  t.test('for 100 ms, then they are tried again each second, in their order', async (t) => {
    const { logged, notes, pass, state, store, written } = start()
    t.ok(store(makeNote('resp_1')))
    await pass(0)
    t.equal(written.length, 1)
    state.writeMs = 500
    const slow = store(makeNote('resp_2'))
    await pass(99)
    t.notOk(slow.isOver)
    await pass(1)
    t.ok(slow.isOver)
    await pass(400)
    t.equal(written.length, 2)
    Object.assign(state, { isAway: true, writeMs: 0 })
    const failed = store(makeNote('resp_3'))
    await pass(0)
    t.ok(failed.isOver, 'nobody waits for what is tried again')
    const later = store(makeNote('resp_4'))
    await pass(0)
    t.ok(later.isOver)
    t.equal((await notes.findStoredResponse('acc', 'resp_4'))?.channelId, 'c', 'and this process has it')
    await pass(500)
    state.isAway = false
    store(makeNote('resp_5'))
    await pass(499)
    t.equal(written.length, 2, 'a later one waits for those before it')
    await pass(1)
    t.same(
      written.map(({ id }) => id),
      ['resp_1', 'resp_2', 'resp_3', 'resp_4', 'resp_5'],
    )
    t.same(logged, ['Noting responses fails; retrying', 'Noting responses works again'])
    store(makeNote('resp_6'))
    await pass(0)
    t.equal(written.length, 6, 'and then at once again')
    t.equal((await notes.findStoredResponse('acc', 'resp_4'))?.channelId, 'stored')
  })

  t.test('meanwhile this process finds them, for their account alone', async (t) => {
    const { details, logged, notes, pass, state, store } = start()
    state.isAway = true
    store(makeNote(null, { items: { ids: ['msg_3'], tokens: 9 } }))
    store(makeNote('resp_3'))
    store(makeNote('resp_1', { items: { ids: ['msg_1', 'msg_2'], tokens: 9 } }))
    store(makeNote(null, { conversation: { id: 'conv', requestId: 'req', reported: 1, isStored: true } }))
    await pass(0)
    t.same(await notes.findStoredResponse('acc', 'resp_1'), {
      channelId: 'c',
      upstreamId: 'resp_1',
      tokens: 5,
    })
    for (const [account, id] of [
      ['other', 'resp_1'],
      ['acc', 'resp_2'],
      ['acc', 'req'],
    ] as const)
      t.match(await notes.findStoredResponse(account, id), { channelId: 'stored' }, `${account} ${id}`)
    const items = await notes.findStoredItems('acc', ['msg_1', 'msg_2', 'msg_3'])
    t.same(items, [
      { id: 'msg_1', responseId: 'resp_1', channelId: 'c', tokens: 9 },
      { id: 'msg_2', responseId: 'resp_1', channelId: 'c', tokens: 9 },
    ])
    t.same(
      (await notes.findStoredItems('other', ['msg_2'])).map(({ channelId }) => channelId),
      ['stored'],
    )
    t.same(
      (await notes.findStoredItems('acc', ['msg_1'])).map(({ id }) => id),
      ['msg_1'],
    )
    await notes.forgetStoredResponse('acc', 'resp_1')
    t.ok(logged.includes('forgot resp_1 of acc'))
    t.match(await notes.findStoredResponse('acc', 'resp_1'), { channelId: 'stored' })
    await notes.close()
    t.match(logged.at(-1), 'Lost notes of responses')
    t.same(details.at(-1), { responses: 3 })
    state.isAway = false
    const { length } = logged
    await notes.close()
    t.notMatch(logged.slice(length), /Lost/)
  })

  t.test('up to 10,000, then the oldest is dropped', async (t) => {
    const { details, logged, notes, pass, state, store } = start()
    state.isAway = true
    for (let at = 0; at < 10_000; at++) store(makeNote(`resp_${at}`))
    await pass(0)
    t.notMatch(logged, /Dropped/)
    store(makeNote('resp_last'))
    t.match(logged.at(-1), 'Dropped the note of a response')
    t.same(details.at(-1), { channel: 'c' })
    t.match(await notes.findStoredResponse('acc', 'resp_0'), { channelId: 'stored' })
    t.match(await notes.findStoredResponse('acc', 'resp_1'), { channelId: 'c' })
  })

  t.test('each is written once, however many are under way', async (t) => {
    const { notes, pass, state, store, written } = start()
    state.isAway = true
    for (const id of ['resp_1', 'resp_2']) store(makeNote(id))
    await pass(0)
    Object.assign(state, { isAway: false, writeMs: 10 })
    await pass(1_100)
    t.same(
      written.map(({ id }) => id),
      ['resp_1', 'resp_2'],
    )
    state.writeMs = 50
    store(makeNote('resp_3'))
    await pass(20)
    store(makeNote('resp_4'))
    await pass(500)
    t.equal(written.length, 4)
    store(makeNote('resp_5'))
    await pass(20)
    store(makeNote('resp_5', { tokens: 8 }))
    await pass(35)
    t.equal((await notes.findStoredResponse('acc', 'resp_5'))?.tokens, 8, 'the later note is not written yet')
  })

  t.test('what follows a note runs behind it, or at once', async (t) => {
    const order: string[] = []
    runAfter(null, () => order.push('at once'))
    runAfter(Promise.resolve(), () => order.push('behind'))
    t.same(order, ['at once'])
    await null
    await null
    t.same(order, ['at once', 'behind'])
  })
})
