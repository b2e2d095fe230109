import t from 'tap'
import { askResponses, eventsOf, jsonOf, type StreamEvent } from './dialects-support.ts'
import { simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const TOOLS = [
  {
    type: 'function',
    name: 'weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
]

t.test('a stream tells the response, its items, and its end, numbered from 0', async (t) => {
  const answer = await askResponses(url, '@tokens=2', { stream: true })
  t.match(answer.head, /content-type: text\/event-stream; charset=utf-8/i)
  const events = eventsOf(answer.body)
  t.same(
    events.map(({ event }) => event),
    [
      ...['response.created', 'response.in_progress', 'response.output_item.added'],
      ...['response.content_part.added', 'response.output_text.delta', 'response.output_text.delta'],
      ...['response.output_text.done', 'response.content_part.done', 'response.output_item.done'],
      'response.completed',
    ],
  )
  for (const [index, { event, data }] of events.entries()) {
    t.equal(data.type, event)
    t.equal(data.sequence_number, index)
  }
  const created = events[0]?.data.response
  t.match(created, {
    id: /^resp_[0-9a-f]{24}$/,
    object: 'response',
    status: 'in_progress',
    output: { length: 0 },
    usage: null,
  })
  t.match(created, { model: 'sim', instructions: 'Be brief.', error: null, incomplete_details: null })
  t.match(created, {
    reasoning: { effort: null, summary: null },
    tool_choice: 'auto',
    parallel_tool_calls: true,
  })
  const itemId = events[2]?.data.item?.id
  t.match(itemId, /^msg_[0-9a-f]{24}$/)
  for (const { data } of events.slice(3, 8))
    t.match(data, { item_id: itemId, output_index: 0, content_index: 0 })
  t.match(events[9]?.data.response, { status: 'completed', usage: { output_tokens: 2 } })
})

t.test('whole and streamed say the same', async (t) => {
  const fields = { tools: TOOLS, reasoning: { effort: 'low', summary: 'auto' } }
  for (const directives of ['@tokens=5', '@tool_calls=2', '@tokens=0', '@reasoning=3,reasoning_text=false']) {
    const whole = jsonOf(await askResponses(url, directives, { fields }))
    const events = eventsOf((await askResponses(url, directives, { fields, stream: true })).body)
    t.same(events.at(-1)?.data.response, whole, directives)
    const done = events.filter(({ event }) => event === 'response.output_item.done')
    t.same(
      done.map(({ data }) => data.item),
      whole.output,
    )
    t.same(textsOf(events, 'delta'), textsOf(events, 'done'), 'the pieces are the whole')
  }
})

t.test('reasoning comes first: hidden, as a summary, or sealed', async (t) => {
  const items = async (directives: string, fields: object = {}) =>
    jsonOf(await askResponses(url, directives, { fields })).output
  const message = { type: 'message' }
  t.match(await items('', { reasoning: { effort: 'high' } }), [
    { type: 'reasoning', summary: { length: 0 } },
    message,
  ])
  t.match(await items('@reasoning=3,reasoning_text'), [
    { id: /^rs_/, type: 'reasoning', summary: [{ type: 'summary_text', text: /\S/ }] },
    message,
  ])
  const include = ['reasoning.encrypted_content']
  t.match(await items('@reasoning=3', { include }), [
    { type: 'reasoning', encrypted_content: String },
    message,
  ])
  t.match(await items('', { reasoning: { effort: 'none' } }), [message])
})

t.test('functions are called by items of their own', async (t) => {
  const whole = jsonOf(await askResponses(url, '@tool_calls=2', { fields: { tools: TOOLS } }))
  const called = {
    type: 'function_call',
    id: /^fc_/,
    call_id: /^call_/,
    name: 'weather',
    status: 'completed',
  }
  t.match(whole.output, [called, called])
  for (const { arguments: json } of whole.output as unknown as { arguments: string }[])
    t.match(JSON.parse(json), { city: String })
  const named = { tools: TOOLS, tool_choice: { type: 'function', name: 'weather' } }
  t.match(jsonOf(await askResponses(url, '', { fields: named })).output, [called])
})

t.test('usage has the names of this interface, and is reported where the directive wants it', async (t) => {
  const input = [{ role: 'user', content: 'How is the river?' }]
  const bytes = Buffer.byteLength(JSON.stringify(input)) + Buffer.byteLength('"Be brief."')
  t.same(jsonOf(await askResponses(url, '@tokens=3,reasoning=4,cached=5')).usage, {
    input_tokens: Math.ceil(bytes / 4),
    input_tokens_details: { cached_tokens: 5 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 4 },
    total_tokens: Math.ceil(bytes / 4) + 7,
  })
  const written = jsonOf(await askResponses(url, '@cache_write=2')).usage
  t.equal(written?.input_tokens_details?.cache_write_tokens, 2)
  const told = async (mode: string) => {
    const { body } = await askResponses(url, `@tokens=3,usage=${mode}`, { stream: true })
    const events = eventsOf(body)
    return [events[0], events.at(-1)].map((event) => event?.data.response?.usage?.output_tokens)
  }
  t.same(await told('asked'), [undefined, 3])
  t.same(await told('none'), [undefined, undefined])
  t.same(await told('zero'), [undefined, 0])
  t.same(await told('early'), [3, 3])
})

t.test('an answer that is cut is incomplete', async (t) => {
  const cut = { max_output_tokens: 16 }
  const incomplete = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
  const whole = jsonOf(await askResponses(url, '@tokens=50', { fields: cut }))
  t.match(whole, { ...incomplete, output: [{ status: 'incomplete' }], usage: { output_tokens: 16 } })
  const events = eventsOf((await askResponses(url, '@tokens=50', { fields: cut, stream: true })).body)
  t.match(events.at(-1), { event: 'response.incomplete', data: { response: incomplete } })
  const [, , error] = eventsOf(
    (await askResponses(url, '@fault=stream_error:1', { stream: true })).body,
  ).slice(-3)
  t.match(error, { event: 'error', data: { type: 'error', code: 'server_error', sequence_number: Number } })
})

t.test('an error event goes on with the numbers', async (t) => {
  const events = eventsOf((await askResponses(url, '@fault=stream_error:2', { stream: true })).body)
  t.same(
    events.map(({ data }) => data.sequence_number),
    events.map((_, index) => index),
  )
  t.equal(events.at(-1)?.event, 'error')
})

t.test('JSON is answered where it is asked for', async (t) => {
  const schema = { type: 'object', properties: { days: { type: 'integer' } } }
  const text = { format: { type: 'json_schema', name: 'forecast', schema } }
  const { output } = jsonOf(await askResponses(url, '', { fields: { text } }))
  const [message] = output as unknown as { content: { text: string }[] }[]
  t.match(JSON.parse(message?.content[0]?.text ?? ''), { days: Number })
})

/** What the events of this kind say of text, reasoning and arguments together, by item. */
function textsOf(events: readonly StreamEvent[], kind: 'delta' | 'done'): Record<string, string> {
  const texts: Record<string, string> = {}
  const said = /^response\.(output_text|reasoning_summary_text|function_call_arguments)\.(delta|done)$/
  for (const { event, data } of events) {
    const found = said.exec(event ?? '')
    if (found?.[2] !== kind) continue
    const text = data.delta ?? data.text ?? data.arguments ?? ''
    const item = String(data.item_id)
    texts[item] = `${texts[item] ?? ''}${text}`
  }
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ''))
}
