/** A text ends before the first stop sequence, in each dialect that has them, and usage counts what was said. */
import t from 'tap'
import { type Prompt, writeScript } from '../../simulator/answers/script.ts'
import { askChat, askGenerateContent, askMessages, eventsOf, type Json, jsonOf } from './dialects-support.ts'
import { callsOf, simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const headers = { 'x-simulate': `text=${encodeURIComponent('One,two, END three END four')}` }
const SAID = 'One,two, '
/** `One,two,` and the space before the sequence. */
const TOKENS = 2

const listOf = (value: unknown) => value as readonly Json[]
const joined = (parts: readonly unknown[]) => parts.filter((part) => typeof part === 'string').join('')

t.test('chat-completions', async (t) => {
  for (const stop of ['END', ['never', 'END']]) {
    const whole = jsonOf(await askChat(url, '', { headers, fields: { stop } }))
    const [choice] = listOf(whole.choices)
    t.match(choice, { message: { content: SAID }, finish_reason: 'stop' })
    t.equal(whole.usage?.completion_tokens, TOKENS)
    const { body } = await askChat(url, '', { headers, fields: { stop }, stream: true })
    const choices = eventsOf(body).flatMap(({ data }) => listOf(data.choices ?? []))
    t.equal(joined(choices.map(({ delta }) => delta?.content)), SAID)
    t.equal(choices.at(-1)?.finish_reason, 'stop')
    t.equal((await callsOf(url)).at(-1)?.output_tokens, TOKENS)
  }
})

t.test('messages: it names the sequence', async (t) => {
  const fields = { stop_sequences: ['never', 'END'] }
  const ending = { stop_reason: 'stop_sequence', stop_sequence: 'END' }
  const whole = jsonOf(await askMessages(url, '', { headers, fields }))
  t.match(whole, { ...ending, content: [{ text: SAID }], usage: { output_tokens: TOKENS } })
  const events = eventsOf((await askMessages(url, '', { headers, fields, stream: true })).body)
  t.equal(joined(events.map(({ data }) => data.delta?.text)), SAID)
  const end = events.findLast(({ event }) => event === 'message_delta')?.data
  t.match(end, { delta: ending, usage: { output_tokens: TOKENS } })
  const unsaid = jsonOf(await askMessages(url, '', { headers, fields: { stop_sequences: ['never'] } }))
  t.match(unsaid, { stop_reason: 'end_turn', stop_sequence: null })
})

t.test('generate-content', async (t) => {
  const fields = { generationConfig: { stopSequences: ['END'] } }
  const ask = askGenerateContent('?alt=sse')
  const whole = jsonOf(await ask(url, '', { headers, fields }))
  t.match(whole, {
    candidates: [{ content: { parts: [{ text: SAID }] }, finishReason: 'STOP' }],
    usageMetadata: { candidatesTokenCount: TOKENS },
  })
  const events = eventsOf((await ask(url, '', { headers, fields, stream: true })).body)
  const parts = events.flatMap(({ data }) => listOf(listOf(data.candidates)[0]?.content?.parts ?? []))
  t.equal(joined(parts.map(({ text }) => text)), SAID)
  t.match(events.at(-1)?.data, { usageMetadata: { candidatesTokenCount: TOKENS } })
})

const prompt: Prompt = {
  model: 'sim',
  json: '"Hi"',
  seed: null,
  maxTokens: null,
  choices: 1,
  tools: [],
  builtIns: [],
  toolChoice: 'auto',
  format: 'text',
  thinking: 'off',
  stop: [],
  logprobs: null,
}

t.test('the sequence that is complete first ends the text, also where it stands first', (t) => {
  const said = (text: string, stop: readonly string[], maxTokens: number | null = null) => {
    const [choice] = writeScript({ ...prompt, stop, maxTokens }, { text }).choices
    return [choice?.text.join(''), choice?.stopSequence, choice?.finish, choice?.tokens]
  }
  t.same(said('a bc d', ['bc d', 'c']), ['a b', 'c', 'stop', 2])
  t.same(said('a bc d', ['c', 'bc']), ['a ', 'bc', 'stop', 2], 'of two that end together the longer')
  t.same(said('a bc d', ['a']), ['', 'a', 'stop', 0])
  t.same(said('a bc d', ['x']), ['a bc d', null, 'stop', 3])
  t.same(said('a bc d', ['d'], 2), ['a bc', null, 'length', 2], 'the limit came before it')
  t.end()
})
