/** What is noted of responses and conversations that an upstream keeps. */
import t from 'tap'
import { noteStoredResponse, noteUnfinishedCall } from '../../../pipelines/chat/forward/response-notes.ts'
import {
  addConversationItems,
  beginConversation,
  type KeptConversations,
} from '../../../pipelines/chat/stored/conversations.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { NO_USAGE } from '../../../src/core/pricing/usage.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import type { ResponseToStore } from '../../../src/postgres/requests/stored-responses.ts'
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

const admitted = (state: object | undefined) =>
  ({ call: { state }, known: { account: { id: 'acc' } }, request: { requestId: 'req' }, model: {} }) as never

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
