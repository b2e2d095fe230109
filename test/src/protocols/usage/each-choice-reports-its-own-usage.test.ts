/** Several choices of a stream may each report what it has used itself: all of them are charged, and the prompt once. */
import t from 'tap'
import { protocolAdapter } from '../../../../src/protocols/registry.ts'
import { chatCall } from '../messages/streams.ts'

const choice = (index: number, content: string, usage?: object) => ({
  ...{ index, delta: { content }, finish_reason: usage === undefined ? null : 'stop' },
  ...(usage !== undefined && { usage }),
})
const ofChoice = (completion_tokens: number) => ({
  ...{ prompt_tokens: 100, completion_tokens, total_tokens: 100 + completion_tokens },
  ...{ cached_tokens: 60, completion_tokens_details: { reasoning_tokens: 5 } },
})
const ofCall = { prompt_tokens: 100, completion_tokens: 35, total_tokens: 135, cached_tokens: 60 }
const spoken = [choice(0, 'One'), choice(1, 'Two')].map((one) => ({ choices: [one] }))

const STREAMS: Readonly<Record<string, readonly object[]>> = {
  'the longer one first': [
    ...spoken,
    { choices: [choice(0, '', ofChoice(20))] },
    { choices: [choice(1, '', ofChoice(15))] },
  ],
  'the shorter one first': [
    ...spoken,
    { choices: [choice(1, '', ofChoice(15))] },
    { choices: [choice(0, '', ofChoice(20))] },
  ],
  'both in one event': [...spoken, { choices: [choice(0, '', ofChoice(20)), choice(1, '', ofChoice(15))] }],
  'each twice': [
    ...spoken,
    { choices: [choice(0, '', ofChoice(19))] },
    { choices: [choice(0, '', ofChoice(20))] },
    { choices: [choice(1, '', ofChoice(15))] },
  ],
  'and then the whole call': [
    ...spoken,
    { choices: [choice(0, '', ofChoice(20))] },
    { choices: [choice(1, '', ofChoice(15))] },
    { choices: [], usage: ofCall },
  ],
  'the whole call beside the last choice': [
    ...spoken,
    { choices: [choice(1, '')], x_groq: { usage: ofCall } },
  ],
}

t.test('choices that report themselves are added, and a report of the call stands', async (t) => {
  const adapter = protocolAdapter('chat-completions', 'chat-completions')
  for (const [what, events] of Object.entries(STREAMS)) {
    const stream = adapter.openStream(chatCall({}, { choices: 2 }), 'moonshot')
    for (const event of events) stream.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
    stream.end()
    const counts = { prompt: 100, cached: 60, output: 35 }
    t.match(stream, { usage: counts, suspect: '', isUsageWhole: true }, what)
  }
})

t.test('one choice reports the call', async (t) => {
  const stream = protocolAdapter('chat-completions', 'chat-completions').openStream(chatCall(), 'moonshot')
  for (const event of [{ choices: [choice(0, 'One')] }, { choices: [choice(0, '', ofChoice(20))] }])
    stream.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  t.match(stream, { usage: { prompt: 100, cached: 60, output: 20, reasoning: 5 }, suspect: '' })
})
