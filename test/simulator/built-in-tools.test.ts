import t from 'tap'
import {
  askChat,
  askGenerateContent,
  askMessages,
  askResponses,
  eventsOf,
  type Json,
  jsonOf,
} from './dialects-support.ts'
import { readPng } from './media/probe.ts'
import { simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const SEARCH = { tools: [{ type: 'web_search' }] }
const DRAW = { tools: [{ type: 'image_generation' }] }
const SOURCE_URL = /^https:\/\/example\.com\//
const askGenerate = askGenerateContent('?alt=sse')

t.test('chat-completions: a search is cited and counted, streamed too', async (t) => {
  const cited = { type: 'url_citation', url_citation: { start_index: 0, end_index: Number, url: SOURCE_URL } }
  const whole = jsonOf(await askChat(url, '@tokens=3', { fields: SEARCH }))
  t.match(whole.choices, [{ message: { content: /\S/, annotations: [cited, cited] } }])
  t.match(whole.usage, { completion_tokens: 3, server_tool_use: { web_search_requests: 1 } })
  const fields = { ...SEARCH, stream_options: { include_usage: true } }
  const { body } = await askChat(url, '@tokens=3,searches=2', { fields, stream: true })
  const events = eventsOf(body).map(({ data }) => data)
  t.match(events.at(-4)?.choices, [
    { delta: { annotations: [cited, cited, cited, cited] }, finish_reason: null },
  ])
  t.match(events.at(-2)?.usage, { completion_tokens: 3, server_tool_use: { web_search_requests: 2 } })
  const options = { web_search_options: {} }
  t.match(jsonOf(await askChat(url, '', { fields: options })).usage, {
    server_tool_use: { web_search_requests: 1 },
  })
  t.notOk('server_tool_use' in (jsonOf(await askChat(url, '@searches=2')).usage ?? {}), 'no tool, no search')
})

t.test('chat-completions: pictures are data URIs of valid PNGs', async (t) => {
  const whole = jsonOf(await askChat(url, '@tokens=1', { fields: DRAW }))
  const { body } = await askChat(url, '@tokens=1', { fields: DRAW, stream: true })
  const found = /data:image\/png;base64,([^"]*)"/.exec(body.toString())?.[1] ?? ''
  t.match(whole.choices, [
    { message: { images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${found}` } }] } },
  ])
  t.match(readPng(Buffer.from(found, 'base64')), { width: 8, height: 8 })
})

t.test('messages: a search is a server tool with its result, before the text that cites it', async (t) => {
  const fields = { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 3 }] }
  const whole = jsonOf(await askMessages(url, '@tokens=3', { fields }))
  const id = (whole.content as unknown as { id: string }[])[0]?.id
  t.match(whole.content, [
    { type: 'server_tool_use', id: /^srvtoolu_/, name: 'web_search', input: { query: /\S/ } },
    {
      type: 'web_search_tool_result',
      tool_use_id: id,
      content: [{ type: 'web_search_result', url: SOURCE_URL }],
    },
    { type: 'text', citations: [{ type: 'web_search_result_location', url: SOURCE_URL }] },
  ])
  t.match(whole.usage, { output_tokens: 3, server_tool_use: { web_search_requests: 1 } })
  const events = eventsOf((await askMessages(url, '@tokens=3', { fields, stream: true })).body)
  const query = events
    .filter(({ data }) => data.delta?.partial_json !== undefined)
    .map(({ data }) => data.delta?.partial_json)
  t.match(JSON.parse(query.join('')), { query: /\S/ })
  t.match(events.find(({ data }) => String(data.delta?.type) === 'citations_delta')?.data, {
    ...{ index: 2, delta: { citation: { url: SOURCE_URL } } },
  })
  t.match(events.at(-2)?.data.usage, { server_tool_use: { web_search_requests: 1 } })
})

t.test('generate-content: a search grounds the answer, an image modality draws', async (t) => {
  const grounded = { webSearchQueries: [/\S/], groundingChunks: [{ web: { uri: SOURCE_URL } }] }
  const searching = { tools: [{ googleSearch: {} }] }
  const whole = jsonOf(await askGenerate(url, '', { fields: searching }))
  t.match(whole.candidates, [{ groundingMetadata: grounded }])
  const events = eventsOf((await askGenerate(url, '', { fields: searching, stream: true })).body)
  t.match(events.at(-1)?.data.candidates, [{ groundingMetadata: grounded }])
  const drawing = { generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } }
  const drawn = jsonOf(await askGenerate(url, '', { fields: drawing })).candidates
  t.match(drawn, [
    { content: { parts: [{ inlineData: { mimeType: 'image/png', data: String } }, { text: /\S/ }] } },
  ])
})

t.test('responses: what the tools did are items, with events of their own', async (t) => {
  const fields = { tools: [...SEARCH.tools, ...DRAW.tools] }
  const whole = jsonOf(await askResponses(url, '@images=2', { fields }))
  const picture = { type: 'image_generation_call', id: /^ig_/, status: 'completed', result: /^iVBORw0KGgo/ }
  t.match(whole.output, [
    { type: 'web_search_call', id: /^ws_/, status: 'completed', action: { type: 'search', query: /\S/ } },
    picture,
    picture,
    { type: 'message', content: [{ annotations: [{ type: 'url_citation', url: SOURCE_URL }] }] },
  ])
  t.equal(whole.usage?.num_server_side_tools_used, 3)
  const [, first] = whole.output as unknown as { result: string }[]
  t.match(readPng(Buffer.from(first?.result ?? '', 'base64')), { width: 8 })
  const events = eventsOf((await askResponses(url, '', { fields, stream: true })).body)
  const told = events.map(({ event }) => event).filter((event) => /_call\.|annotation/.test(event ?? ''))
  t.same(told, [
    ...['in_progress', 'searching', 'completed'].map((state) => `response.web_search_call.${state}`),
    ...['in_progress', 'generating', 'partial_image', 'completed'].map(
      (state) => `response.image_generation_call.${state}`,
    ),
    ...['response.output_text.annotation.added', 'response.output_text.annotation.added'],
  ])
})

t.test('a tool is used unless the choice excludes it, and never changes the words', async (t) => {
  const searches = async (fields: object) => {
    const output = jsonOf(await askResponses(url, '', { fields })).output as unknown as Json[]
    return output.filter(({ type }) => String(type) === 'web_search_call').length
  }
  const named = { type: 'function', name: 'f' }
  const tools = [...SEARCH.tools, named]
  t.equal(await searches({ tools }), 1)
  t.equal(await searches({ tools, tool_choice: 'none' }), 0)
  t.equal(await searches({ tools, tool_choice: named }), 0)
  t.equal(await searches({ tools, tool_choice: 'required' }), 0)
  t.equal(await searches({ ...SEARCH, tool_choice: 'required' }), 1)
  t.equal(await searches({ tools, tool_choice: { type: 'web_search' } }), 1)
  const contentOf = async (fields: object) =>
    (jsonOf(await askChat(url, '', { fields })).choices as unknown as { message: Json }[])[0]?.message.content
  t.equal(await contentOf(SEARCH), await contentOf({}))
})
