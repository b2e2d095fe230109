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
