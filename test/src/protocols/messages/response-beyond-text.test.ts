/** What an answer of the messages protocol says beyond text and calls: sources, refusals, usage, legacy calls. */
import t from 'tap'
import { begin, chunks, chunksOf, delta, deltas, ended, START, STOP, stop, USAGE, whole } from './answers.ts'
import { chatCall, TO_MESSAGES } from './streams.ts'

const TEXT = { type: 'text', text: 'x' }
const cited = (url: string, title: string | null = 'About it') => ({
  type: 'web_search_result_location',
  cited_text: 'x',
  encrypted_index: 'e',
  url,
  title,
})
const annotation = (start_index: number, end_index: number, url: string, title = 'About it') => ({
  type: 'url_citation',
  url_citation: { start_index, end_index, url, title },
})

t.test('citations: annotations, each source once for the text that cites it', async (t) => {
  const [one, two] = ['https://example.org/1', 'https://example.org/2']
  const content = [
    { type: 'text', text: 'Zürich 🌧: ' },
    { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'rain' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: 's',
      content: [{ type: 'web_search_result', url: one, title: 'x' }],
    },
    { type: 'text', text: 'rain', citations: [cited(one), cited(one), cited(two, null)] },
    { type: 'text', text: '.', citations: null },
    { type: 'text', text: 'x', citations: [{ type: 'char_location', document_title: 'no URL' }, 7, null] },
  ]
  const expected = [annotation(10, 14, one), annotation(10, 14, two, '')]
  const { message } = whole({ content }).value.choices[0]
  t.strictSame(message.annotations, expected)
  t.equal([...message.content].slice(10, 14).join(''), 'rain')
  const found = deltas(
    chunks(
      START,
      begin(0, { type: 'text', text: '' }),
      delta(0, { type: 'text_delta', text: 'Zürich 🌧: ' }),
      stop(0),
      begin(1, { type: 'text', text: '', citations: [] }),
      delta(1, { type: 'citations_delta', citation: cited(one) }),
      delta(1, { type: 'text_delta', text: 'rain' }),
      delta(1, { type: 'citations_delta', citation: cited(two, null) }),
      stop(1),
      ended('end_turn'),
      STOP,
    ),
  )
  const told = found.filter((delta) => 'annotations' in delta)
  t.strictSame(told, [{ annotations: expected }], 'in one delta: SDKs keep the last')
})

t.test('why a model refuses: message.refusal', async (t) => {
  const stop_details = { type: 'refusal', category: 'cyber', explanation: 'This would harm.' }
  const message = { id: 'm', content: [], stop_reason: 'refusal', stop_details, usage: USAGE }
  const { body } = TO_MESSAGES.readWhole(chatCall(), Buffer.from(JSON.stringify(message)))
  t.match(JSON.parse(body.toString()).choices[0], {
    message: { content: '', refusal: 'This would harm.' },
    finish_reason: 'content_filter',
  })
  const last = { type: 'message_delta', delta: { stop_reason: 'refusal', stop_details }, usage: USAGE }
  t.strictSame(deltas(chunks(START, last, STOP)).slice(1), [{ refusal: 'This would harm.' }, {}])
  t.strictSame(deltas(chunks(START, ended('refusal'), STOP)).slice(1), [{}])
})

t.test('an answer by the tool for a JSON schema is text, and ends as text does', async (t) => {
  const block = { type: 'tool_use', id: 't', name: 'tollgate_json_answer', input: { a: 'ü' } }
  const { choices } = whole({ content: [block], stop_reason: 'tool_use' }).value
  t.strictSame(choices[0].message, { role: 'assistant', content: '{"a":"ü"}', refusal: null })
  t.equal(choices[0].finish_reason, 'stop')
  const pieces = ['{"a"', ':1}'].map((partial_json) => delta(0, { type: 'input_json_delta', partial_json }))
  const found = chunks(START, begin(0, { ...block, input: {} }), ...pieces, stop(0), ended('tool_use'), STOP)
  t.strictSame(deltas(found).slice(1), [{ content: '{"a"' }, { content: ':1}' }, {}])
  t.equal(found.at(-3).choices[0].finish_reason, 'stop')
})

t.test('a request of legacy functions is answered with one function_call', async (t) => {
  const call = chatCall({ functions: [{ name: 'f' }] })
  const content = ['f', 'g'].map((name) => ({ type: 'tool_use', id: name, name, input: { a: 1 } }))
  const body = Buffer.from(JSON.stringify({ content, stop_reason: 'tool_use', usage: USAGE }))
  const [choice] = JSON.parse(TO_MESSAGES.readWhole(call, body).body.toString()).choices
  t.strictSame(choice.message, {
    role: 'assistant',
    content: null,
    refusal: null,
    function_call: { name: 'f', arguments: '{"a":1}' },
  })
  t.equal(choice.finish_reason, 'function_call')
  const events = [
    START,
    ...content.flatMap((block, index) => [begin(index, block), stop(index)]),
    ended('tool_use'),
    STOP,
  ]
  const found = chunksOf(TO_MESSAGES.openStream(call), events)
  t.strictSame(deltas(found).slice(1), [
    { function_call: { name: 'f', arguments: '' } },
    { function_call: { arguments: '{"a":1}' } },
    {},
  ])
  t.equal(found.at(-3).choices[0].finish_reason, 'function_call')
})

t.test('a client that offers tools reads tool_calls, whatever else it offers', async (t) => {
  const content = [{ type: 'tool_use', id: 't', name: 'f', input: {} }]
  const body = Buffer.from(JSON.stringify({ content, stop_reason: 'tool_use', usage: USAGE }))
  const tools = [{ type: 'function', function: { name: 'f' } }]
  for (const request of [
    { tools, functions: [{ name: 'g' }] },
    { tools, functions: null },
    { functions: [] },
    { messages: [{ role: 'user', content: 'What are "functions"?' }] },
  ]) {
    const [choice] = JSON.parse(TO_MESSAGES.readWhole(chatCall(request), body).body.toString()).choices
    t.match(choice, { message: { tool_calls: [{ id: 't' }] }, finish_reason: 'tool_calls' })
  }
})

t.test('usage: reasoning_tokens and the searches of the upstream, where it tells them', async (t) => {
  const usage = {
    ...USAGE,
    output_tokens_details: { thinking_tokens: 3 },
    server_tool_use: { web_search_requests: 2 },
  }
  const expected = {
    completion_tokens_details: { reasoning_tokens: 3 },
    server_tool_use: { web_search_requests: 2 },
  }
  t.match(whole({ content: [TEXT], usage }).value.usage, expected)
  t.match(chunks(START, ended('end_turn', usage), STOP).at(-2).usage, expected)
})
