/** A stream put together says what the whole answer would: every field, those that nothing here knows too. */
import t from 'tap'
import { AssembledCompletion } from '../../../../src/protocols/chat-completions/assembled.ts'
import { completionAsStream } from '../../../../src/protocols/chat-completions/whole-as-stream.ts'

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const assembled = (text: string, cut = text.length) => {
  const whole = new AssembledCompletion()
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += cut) whole.push(bytes.subarray(at, at + cut))
  return JSON.parse(whole.body().toString())
}

const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }
const delta = (value: object, more: object = {}) =>
  event({ ...head, choices: [{ index: 0, delta: value, finish_reason: null, ...more }] })
const call = (index: number, more: object, fields: object = {}) =>
  delta({ tool_calls: [{ index, ...fields, function: more }] })

t.test('texts, thoughts, calls and what else a delta has', async (t) => {
  const text =
    delta({ role: 'assistant', content: '' }) +
    delta({ reasoning_content: 'Let me ' }) +
    delta({ reasoning_content: 'see.' }) +
    delta({ content: 'Grü' }, { logprobs: { content: [{ token: 'Grü', logprob: -0.1 }] } }) +
    delta({ content: 'ße 🌞' }, { logprobs: { content: [{ token: 'ße', logprob: -0.2 }] } }) +
    call(0, { name: 'weather', arguments: '' }, { id: 'call_1', type: 'function' }) +
    call(1, { name: 'time', arguments: '{' }, { id: 'call_2', type: 'function' }) +
    call(0, { arguments: '{"place":' }) +
    call(0, { arguments: '"Oslo"}' }) +
    call(1, { arguments: '}' }) +
    delta({ annotations: [{ type: 'url_citation', url: 'https://a.example' }] }) +
    delta({ annotations: [{ type: 'url_citation', url: 'https://b.example' }] }) +
    event({ ...head, choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }) +
    event({ ...head, choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }) +
    'data: [DONE]\n\n'
  const expected = {
    ...head,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Grüße 🌞',
          reasoning_content: 'Let me see.',
          tool_calls: [
            {
              id: 'call_1',
              type: 'function',
              function: { name: 'weather', arguments: '{"place":"Oslo"}' },
            },
            { id: 'call_2', type: 'function', function: { name: 'time', arguments: '{}' } },
          ],
          annotations: [
            { type: 'url_citation', url: 'https://a.example' },
            { type: 'url_citation', url: 'https://b.example' },
          ],
        },
        finish_reason: 'tool_calls',
        logprobs: {
          content: [
            { token: 'Grü', logprob: -0.1 },
            { token: 'ße', logprob: -0.2 },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 4 },
  }
  for (const cut of [1, 7, text.length]) t.strictSame(assembled(text, cut), expected)
})

t.test('several choices, in their order', async (t) => {
  const chunk = (index: number, content: string, finish_reason: string | null = null) =>
    event({ ...head, choices: [{ index, delta: { content }, finish_reason }] })
  const { choices } = assembled(
    chunk(1, 'b') + chunk(0, 'a') + chunk(1, 'B', 'stop') + chunk(0, 'A', 'length'),
  )
  t.match(choices, [
    { index: 0, message: { role: 'assistant', content: 'aA' }, finish_reason: 'length' },
    { index: 1, message: { role: 'assistant', content: 'bB' }, finish_reason: 'stop' },
  ])
})

t.test('a whole answer that was printed as a stream is itself again', async (t) => {
  const whole = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'hi', refusal: null }, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  }
  const stream = completionAsStream(Buffer.from(JSON.stringify(whole)), true)
  t.match(assembled(stream.toString()), whole)
})

t.test('a name that would change all objects changes none', async (t) => {
  assembled('data: {"choices":[{"index":0,"delta":{"__proto__":{"polluted":true}}}]}\n\n')
  t.notOk('polluted' in {})
})
