/** A stream of several choices is whole when each of them has finished, or its upstream has ended it. */
import t from 'tap'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { DIALECTS, protocolAdapter } from '../../../../src/protocols/registry.ts'
import { chatWith } from '../request/plain-requests.ts'

const PADDING = 'x'.repeat(300_000)
const choice = (index: number, finish: string | null, content = 'x') => ({
  choices: [{ index, delta: { content }, finish_reason: finish }],
})
const both = { choices: [0, 1].map((index) => choice(index, 'stop').choices[0]) }
const usage = { prompt_tokens: 1, completion_tokens: 2 }
const DONE = 'data: [DONE]\n\n'

const sse = (events: readonly (object | string)[]) =>
  events.map((event) => (typeof event === 'string' ? event : `data: ${JSON.stringify(event)}\n\n`)).join('')

const CHAT: ReadonlyArray<readonly [what: string, n: number, events: (object | string)[], isWhole: boolean]> =
  [
    ['one of one', 1, [choice(0, null), choice(0, 'stop')], true],
    ['one of two', 2, [choice(0, null), choice(1, null), choice(0, 'stop')], false],
    ['one of two, twice', 2, [choice(0, 'stop'), choice(1, null), choice(0, 'stop', '')], false],
    ['one of two, with its usage', 2, [choice(1, null), { ...choice(0, 'stop'), usage }], false],
    ['one of two, with an empty reason of the other', 2, [choice(1, ''), choice(0, 'stop')], false],
    ['both', 2, [choice(0, 'stop'), choice(1, null), choice(1, 'length', '')], true],
    ['both in one event', 2, [both], true],
    ['both in long events', 2, [choice(0, 'stop', PADDING), choice(1, 'stop', PADDING)], true],
    ['one of two in a long event', 2, [choice(1, null), choice(0, 'stop', PADDING)], false],
    ['one, from an upstream that makes no second', 2, [choice(0, 'stop'), DONE], true],
    ['one, and then the usage of the call', 2, [choice(0, 'stop'), { choices: [], usage }], true],
  ]

t.test('chat-completions', async (t) => {
  for (const [what, n, events, isWhole] of CHAT) {
    const adapter = protocolAdapter('chat-completions', 'chat-completions')
    const stream = adapter.openStream(chatWith('chat-completions', { n, stream: true }))
    stream.push(Buffer.from(sse(events)))
    t.equal(stream.isComplete, isWhole, what)
    const [first] = events
    if (!isWhole && typeof first === 'object') t.equal(stream.awaitsUsage, false, `${what}: it still writes`)
  }
})

const candidate = (index: number | undefined, finishReason?: string) => ({
  ...{ content: { parts: [{ text: 'x' }] }, finishReason },
  ...(index !== undefined && { index }),
})
const answer = (...candidates: object[]) => ({
  candidates,
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
})
const GENERATED: ReadonlyArray<readonly [what: string, n: number, events: object[], isWhole: boolean]> = [
  ['one of one', 1, [answer(candidate(undefined)), answer(candidate(undefined, 'STOP'))], true],
  ['one of two', 2, [answer(candidate(0), candidate(1)), answer(candidate(0, 'STOP'))], false],
  ['the other of two', 2, [answer(candidate(undefined), candidate(1, 'STOP'))], false],
  ['both', 2, [answer(candidate(0), candidate(1, 'STOP')), answer(candidate(undefined, 'STOP'))], true],
  ['both at once', 2, [answer(candidate(0, 'STOP'), candidate(1, 'MAX_TOKENS'))], true],
  ['one, from an upstream that makes no second', 2, [answer(candidate(0, 'STOP'))], true],
  ['a prompt that was blocked', 2, [{ promptFeedback: { blockReason: 'SAFETY' } }], true],
]

t.test('generate-content', async (t) => {
  const frames: ReadonlyArray<readonly [ChatProtocol, (events: object[]) => string, query: string]> = [
    ['generate-content', sse, 'alt=sse'],
    ['generate-content', (events) => JSON.stringify(events), ''],
    ['chat-completions', sse, ''],
  ]
  for (const [client, print, query] of frames)
    for (const [what, n, events, isWhole] of GENERATED) {
      const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
      const body = Buffer.from(JSON.stringify({ contents, generationConfig: { candidateCount: n } }))
      const path = '/v1beta/models/m:streamGenerateContent'
      const call =
        client === 'generate-content'
          ? DIALECTS[client].read({ path, query, body })
          : chatWith(client, { n, stream: true })
      const stream = protocolAdapter(client, 'generate-content').openStream(call)
      stream.push(Buffer.from(print(events)))
      if (client === 'chat-completions') stream.end()
      t.equal(stream.isComplete, isWhole, `${what}, ${client} ${query}`)
    }
})
