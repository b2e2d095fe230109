/**
 * A stream reports its usage in several events, and not each of them has all counts: what a later one leaves out stays
 * as it was. See docs/pricing.md, "Usage that contradicts itself".
 */
import t from 'tap'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { protocolAdapter } from '../../../../src/protocols/registry.ts'
import { chatCall } from '../messages/streams.ts'

type Event = Readonly<Record<string, unknown>>

function streamed(client: ChatProtocol, upstream: ChatProtocol, events: readonly Event[]): AnswerStream {
  const stream = protocolAdapter(client, upstream).openStream(chatCall())
  for (const event of events) stream.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  stream.end()
  return stream
}

const chunk = (content: string, usage: object): Event => ({
  choices: [{ index: 0, delta: { content }, finish_reason: null }],
  usage,
})

t.test('chat-completions: tokens from the cache stay what they are without their details', async (t) => {
  const counts = { prompt_tokens: 100, completion_tokens: 1 }
  const details = { cached_tokens: 60, cache_write_tokens: 30 }
  const first = chunk('One', { ...counts, prompt_tokens_details: details })
  const rows = [
    ['the same prompt', { ...counts, completion_tokens: 2 }, { prompt: 100, cached: 60, cacheWrite: 30 }],
    ['a larger prompt', { ...counts, prompt_tokens: 140 }, { prompt: 140, cached: 60, cacheWrite: 30 }],
    [
      'more of it from the cache',
      { ...counts, prompt_tokens_details: { cached_tokens: 90 } },
      { prompt: 100, cached: 90, cacheWrite: 10 },
    ],
  ] as const
  for (const [what, usage, expected] of rows) {
    const said = streamed('chat-completions', 'chat-completions', [first, chunk(', two.', usage)])
    t.match(said, { usage: expected, suspect: '' }, what)
  }
})

const CLIENTS: readonly ChatProtocol[] = ['messages', 'chat-completions']

t.test('messages: a report of zeros says nothing of a prompt that was reported', async (t) => {
  const started = { input_tokens: 20, cache_read_input_tokens: 80, output_tokens: 1 }
  const answer = (usage: object): Event[] => [
    { type: 'message_start', message: { id: 'msg_1', model: 'opus-9', content: [], usage: started } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'One' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
    { type: 'message_stop' },
  ]
  const rows = [
    [
      { input_tokens: 0, output_tokens: 5 },
      { prompt: 100, cached: 80 },
    ],
    [
      { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5 },
      { prompt: 100, cached: 80 },
    ],
    // All of it came from the cache after all.
    [
      { input_tokens: 0, cache_read_input_tokens: 100, output_tokens: 5 },
      { prompt: 100, cached: 100 },
    ],
  ] as const
  for (const client of CLIENTS)
    for (const [usage, expected] of rows) {
      const said = streamed(client, 'messages', answer(usage))
      t.match(said, { usage: { ...expected, output: 5 }, suspect: '' }, `${client} ${JSON.stringify(usage)}`)
    }
})
