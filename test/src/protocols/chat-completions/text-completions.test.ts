/** A chat's answer as text completions: streams in any pieces, answers that were not streamed, errors as they are. */
import { Buffer } from 'node:buffer'
import t from 'tap'
import { writePromptAsChat } from '../../../../src/protocols/chat-completions/text-completions.ts'
import type { ChatCall } from '../../../../src/protocols/dialect.ts'
import { callAdapter, READERS } from '../../../../src/protocols/registry.ts'
import { checkEverySplit, outputInPieces } from '../every-split.ts'

const HEAD = { id: 'c', created: 7, model: 'm' }
const USAGE = { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 }

function readCall(asked: object): ChatCall {
  const { body } = writePromptAsChat(Buffer.from(JSON.stringify({ model: 'm', prompt: 'hi', ...asked })))
  const read = READERS['chat-completions'].read({ query: '', body })
  return { ...read, isTextCompletion: true }
}
const findAdapter = (call: ChatCall) => callAdapter('chat-completions', call, 'chat-completions')

const chunk = (more: object): string =>
  `data: ${JSON.stringify({ ...HEAD, object: 'chat.completion.chunk', ...more })}\n\n`
const delta = (content: string, more: object = {}) => ({
  index: 0,
  delta: { content },
  finish_reason: null,
  ...more,
})
const text = (said: string, more: object = {}) => ({
  text: said,
  index: 0,
  logprobs: null,
  finish_reason: null,
  ...more,
})
const printed = (more: object): string =>
  `data: ${JSON.stringify({ ...HEAD, object: 'text_completion', ...more })}\n\n`
const DONE = 'data: [DONE]\n\n'

t.test('a stream is the same in all pieces', async (t) => {
  const stream = Buffer.from(
    chunk({ choices: [delta('Grü')] }) +
      ': waiting\n\n' +
      chunk({ choices: [delta('ße', { finish_reason: 'stop' })] }) +
      chunk({ choices: [], usage: USAGE }) +
      DONE,
  )
  const said =
    printed({ choices: [text('Grü')] }) + printed({ choices: [text('ße', { finish_reason: 'stop' })] })
  for (const wantsUsage of [false, true]) {
    const call = readCall({ stream: true, stream_options: { include_usage: wantsUsage } })
    const expected = said + (wantsUsage ? printed({ usage: USAGE, choices: [] }) : '') + DONE
    checkEverySplit(t, stream, { seed: 7, pairs: 50 }, (cuts) => {
      const answer = findAdapter(call).openStream(call)
      const out = outputInPieces(answer, stream, cuts).toString()
      return out === expected && answer.isComplete && answer.usage?.output === 3
    })
  }
})

t.test('a field of chats that is null is left out', async (t) => {
  const { body } = writePromptAsChat(Buffer.from('{"model":"m","prompt":"hi","messages":null,"tools":null}'))
  t.same(JSON.parse(body.toString()), {
    messages: [{ role: 'user', content: 'hi' }],
    model: 'm',
    tools: null,
  })
  t.equal(body.toString().match(/"messages"/g)?.length, 1)
})

t.test('an error, and a stream that is cut off, are as they came', async (t) => {
  const call = readCall({ stream: true })
  const error = 'data: {"error":{"message":"busy"}}\n\n'
  const answer = findAdapter(call).openStream(call)
  t.equal(outputInPieces(answer, Buffer.from(error), []).toString(), error)
  t.ok(answer.firstError)
  const cut = findAdapter(call).openStream(call)
  t.match(outputInPieces(cut, Buffer.from(chunk({ choices: [delta('a')] })), []).toString(), '"text":"a"')
  t.equal(cut.isComplete, false)
})

t.test('an answer in one piece, and as a stream', async (t) => {
  const logprobs = {
    content: [
      { token: 'Hey', logprob: -1, top_logprobs: [{ token: 'Hey', logprob: -1 }] },
      { token: '!', logprob: -2, top_logprobs: [] },
    ],
  }
  const message = { role: 'assistant', content: 'Hey!' }
  const choices = [{ index: 0, message, finish_reason: 'stop', logprobs }]
  const body = Buffer.from(JSON.stringify({ ...HEAD, object: 'chat.completion', choices, usage: USAGE }))
  const call = readCall({ stream: true, stream_options: { include_usage: true }, logprobs: 1 })
  const whole = findAdapter(call).readWhole(call, body)
  const shown = {
    tokens: ['Hey', '!'],
    token_logprobs: [-1, -2],
    top_logprobs: [{ Hey: -1 }, {}],
    text_offset: [0, 3],
  }
  const expected = {
    ...HEAD,
    object: 'text_completion',
    choices: [text('Hey!', { logprobs: shown, finish_reason: 'stop' })],
  }
  t.same(JSON.parse(whole.body.toString()), { ...expected, usage: USAGE })
  const events = findAdapter(call).wholeAsStream(call, whole.body).toString().trim().split('\n\n')
  t.same(
    events.slice(0, 2).map((event) => JSON.parse(event.slice('data: '.length))),
    [expected, { ...expected, choices: [], usage: USAGE }],
  )
  t.equal(events[2], 'data: [DONE]')
  const failed = Buffer.from('{"error":{"message":"busy"}}')
  t.equal(findAdapter(call).readWhole(call, failed).isAnswer, false)
})
