/** Each row has its test, streamed and whole. See docs/translation.md, "The answer". */
import t from 'tap'
import { CREATED_SECONDS, chatCall, MODEL } from '../messages/streams.ts'
import { chunks, deltas, ended, finish, finishes, message, said, USAGE, USAGE_OUT, whole } from './answers.ts'
import { TO_GENERATE_CONTENT, translatedStream } from './streams.ts'

t.test('head of the answer: the client’s name of the model, the upstream’s id', async (t) => {
  const { value } = whole(ended('STOP', [{ text: 'Hi' }]))
  t.match(value, { id: 'resp-1', object: 'chat.completion', created: CREATED_SECONDS, model: MODEL })
  t.strictSame(value.choices[0].message.content, 'Hi')
  for (const chunk of chunks(ended('STOP', [{ text: 'Hi' }])).slice(0, -1))
    t.match(chunk, { id: 'resp-1', object: 'chat.completion.chunk', model: MODEL })
})

t.test('text parts become content, thought parts reasoning_content', async (t) => {
  const parts = [{ text: 'Hm', thought: true }, { text: 'm.', thought: true }, { text: 'Yes' }, { text: '!' }]
  t.match(message(ended('STOP', parts)), { content: 'Yes!', reasoning_content: 'Hmm.' })
  t.strictSame(deltas(said(parts.slice(0, 1)), said(parts.slice(1)), ended('STOP')), [
    { reasoning_content: 'Hm' },
    { reasoning_content: 'm.' },
    { content: 'Yes' },
    { content: '!' },
  ])
})

t.test('functionCall becomes tool_calls with generated unique ids and distinct indexes', async (t) => {
  const calls = [
    { functionCall: { name: 'a', args: { x: [1, 'ü'] } }, thoughtSignature: 'c2ln' },
    { functionCall: { name: 'a', args: { x: [1, 'ü'] }, id: 'same' } },
    { functionCall: { name: 'b', id: 'same' } },
  ]
  const { content, tool_calls } = message(ended('STOP', calls))
  t.equal(content, null)
  const ids = tool_calls.map((call: { id: string }) => call.id)
  t.equal(new Set(ids).size, 3)
  t.ok(ids.every((id: string) => /^call_[0-9A-Z]{26}$/.test(id)))
  t.strictSame(
    tool_calls.map((call: { function: object }) => call.function),
    [
      { name: 'a', arguments: '{"x":[1,"ü"]}' },
      { name: 'a', arguments: '{"x":[1,"ü"]}' },
      { name: 'b', arguments: '{}' },
    ],
  )
  t.strictSame(tool_calls[0].extra_content, { google: { thought_signature: 'c2ln' } })
  t.notOk('extra_content' in tool_calls[1])
  const streamed = deltas(said(calls.slice(0, 2)), said(calls.slice(2)), ended('STOP'))
  const heads = streamed.filter((delta) => delta.tool_calls[0].id !== undefined)
  t.strictSame(
    heads.map((delta) => delta.tool_calls[0].index),
    [0, 1, 2],
  )
  t.equal(new Set(heads.map((delta) => delta.tool_calls[0].id)).size, 3)
  t.strictSame(heads[0].tool_calls[0].extra_content, { google: { thought_signature: 'c2ln' } })
})

t.test('STOP is stop, and tool_calls if any call appeared anywhere in the stream', async (t) => {
  const call = [{ functionCall: { name: 'a', args: {} } }]
  t.equal(finish(ended('STOP', [{ text: 'x' }])), 'stop')
  t.equal(finish(ended('STOP', call)), 'tool_calls')
  t.strictSame(finishes(ended('STOP', [{ text: 'x' }])), ['stop'])
  t.strictSame(finishes(said(call), said([{ text: 'x' }]), ended('STOP')), ['tool_calls'])
  t.strictSame(finishes(said([{ text: 'x' }]), ended('STOP', call)), ['tool_calls'])
  t.strictSame(finishes(ended('STOP'), said(call)), ['tool_calls'], 'even after it')
})

t.test('a limit is length, even after a call', async (t) => {
  for (const reason of ['MAX_TOKENS', 'CONTINUATION']) {
    t.equal(finish(ended(reason)), 'length')
    t.strictSame(finishes(said([{ functionCall: { name: 'a' } }]), ended(reason)), ['length'])
  }
})

t.test('filters are content_filter', async (t) => {
  const reasons = [
    ...['SAFETY', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'RECITATION', 'MODEL_ARMOR'],
    ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', 'IMAGE_OTHER'],
  ]
  for (const reason of reasons) {
    t.equal(finish(ended(reason)), 'content_filter', reason)
    t.strictSame(finishes(said([{ text: 'x' }]), ended(reason)), ['content_filter'], reason)
  }
})

t.test('a promptFeedback.blockReason is content_filter, whole and complete', async (t) => {
  const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 10 } }
  const { value, isAnswer, metered } = whole(blocked)
  t.equal(isAnswer, true)
  t.strictSame(value.choices, [
    {
      index: 0,
      message: { role: 'assistant', content: '', refusal: null },
      logprobs: null,
      finish_reason: 'content_filter',
    },
  ])
  t.match(metered.usage, { prompt: 10, output: 0 })
  t.strictSame(finishes(blocked), ['content_filter'])
  t.equal(chunks(blocked).at(-1), '[DONE]')
})

t.test('anything else is stop', async (t) => {
  for (const reason of [
    'OTHER',
    'LANGUAGE',
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'NO_IMAGE',
    'a reason nobody knows',
    'FINISH_REASON_UNSPECIFIED',
    'constructor',
  ])
    t.equal(finish(ended(reason, [{ text: 'x' }])), 'stop', reason)
})

t.test('usage: cached within prompt, tool use added to it, thoughts within completion', async (t) => {
  const usageMetadata = {
    promptTokenCount: 100,
    cachedContentTokenCount: 60,
    toolUsePromptTokenCount: 20,
    candidatesTokenCount: 5,
    thoughtsTokenCount: 7,
    totalTokenCount: 132,
  }
  const expected = {
    prompt_tokens: 120,
    completion_tokens: 12,
    total_tokens: 132,
    prompt_tokens_details: { cached_tokens: 60 },
    completion_tokens_details: { reasoning_tokens: 7 },
  }
  t.strictSame(whole({ ...ended('STOP'), usageMetadata }).value.usage, expected)
  t.strictSame(chunks({ ...ended('STOP'), usageMetadata }).at(-2).usage, expected)
})

t.test('Stream: cumulative usage on many chunks goes out once, at the end', async (t) => {
  const events = [
    { ...said([{ text: 'a' }]), usageMetadata: { ...USAGE, candidatesTokenCount: 1 } },
    { ...said([{ text: 'b' }]), usageMetadata: { ...USAGE, candidatesTokenCount: 2 } },
    ended('STOP'),
    { usageMetadata: USAGE },
  ]
  const told = chunks(...events).filter((chunk) => chunk !== '[DONE]' && chunk.usage !== null)
  t.equal(told.length, 1)
  t.strictSame(told[0].choices, [])
  t.strictSame(told[0].usage, USAGE_OUT)
})

t.test('Stream: the last chunk may have no parts, no content, no candidates', async (t) => {
  const text = said([{ text: 'x' }])
  const bare = { candidates: [{ finishReason: 'STOP', index: 0 }] }
  for (const last of [
    ended('STOP'),
    bare,
    { candidates: [{ finishReason: 'STOP', content: { role: 'model' } }] },
  ]) {
    t.strictSame(finishes(text, last), ['stop'])
    t.equal(chunks(text, last, { usageMetadata: USAGE }).at(-1), '[DONE]')
  }
})

t.test('Stream: exactly one finish per candidate; the upstream’s own [DONE] is not a second', async (t) => {
  t.strictSame(finishes(ended('STOP'), ended('STOP'), ended('STOP')), ['stop'])
  const two = (finishReason?: string) => ({
    candidates: [0, 1].map((index) => ({ content: { parts: [{ text: 'x' }] }, index, finishReason })),
  })
  t.strictSame(finishes(two(), two('STOP'), two('MAX_TOKENS')), ['length', 'length'])
  const stream = translatedStream()
  stream.push(Buffer.from(`data: ${JSON.stringify(ended('STOP'))}\n\ndata: [DONE]\n\n`))
  t.equal(
    stream
      .end()
      ?.toString()
      .match(/\[DONE\]/g)?.length,
    1,
  )
})

t.test('Stream: an end before any finishReason gets no finish and no [DONE]', async (t) => {
  const cut = chunks(said([{ text: 'x' }]))
  t.equal(cut.at(-1).choices[0].delta.content, 'x')
  t.strictSame(finishes(said([{ text: 'x' }])), [])
  const oneOfTwo = { candidates: [{ index: 0, finishReason: 'STOP' }, { index: 1 }] }
  t.strictSame(finishes(oneOfTwo), [])
})

t.test('Stream: an error event, or one that is no JSON, ends it without finish and [DONE]', async (t) => {
  const error = { error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }
  t.strictSame(finishes(said([{ text: 'x' }]), error), [])
  t.strictSame(finishes(ended('STOP'), error, ended('STOP')), [])
  for (const payload of [JSON.stringify(error), 'no JSON']) {
    const stream = translatedStream()
    const event = `data: ${payload}\n\n`
    const shown = payload === 'no JSON' ? undefined : event
    t.equal(stream.push(Buffer.from(event))?.toString(), shown, 'as the first event it is the answer')
    t.equal(stream.end(), null)
    t.match(stream, { hasBegun: false, isComplete: false })
    t.match(JSON.parse(stream.firstError!.toString()).error.message, /overloaded|not JSON/)
  }
})

t.test('Stream: only a client that asked for usage gets it', async (t) => {
  const call = chatCall({}, { source: { body: Buffer.from('{}'), request: { stream_options: null } } })
  const stream = TO_GENERATE_CONTENT.openStream(call)
  stream.push(Buffer.from(`data: ${JSON.stringify({ ...ended('STOP'), usageMetadata: USAGE })}\n\n`))
  t.notMatch(stream.end()?.toString(), 'usage')
  t.match(stream, { isComplete: true, usage: { prompt: 10, output: 4 } })
})

t.test('whole: an error, or what is no answer, is an error despite its status, its bytes kept', async (t) => {
  const bodies = ['{"error":{"code":500,"message":"m"}}', 'no JSON', '{}', '[]', 'null', '{"candidates":[]}']
  for (const text of bodies) {
    const body = Buffer.from(text)
    const found = TO_GENERATE_CONTENT.readWhole(chatCall(), body)
    t.equal(found.isAnswer, false, text)
    t.equal(found.body, body)
    t.equal(found.metered.characters, 0)
  }
})

t.test('whole: several candidates are several choices', async (t) => {
  const candidates = ['one', 'two'].map((text, index) => ({
    content: { parts: [{ text }] },
    index,
    finishReason: 'STOP',
  }))
  const { choices } = whole({ candidates }).value
  t.strictSame(
    choices.map((choice: { message: { content: string } }) => choice.message.content),
    ['one', 'two'],
  )
})
