/** A search is translated under each name that it may have, and where its options stand in place of a tool. */
import t from 'tap'
import { protocolAdapter } from '../../../../src/protocols/registry.ts'
import { encodeOptions } from '../encode-options.ts'
import { chatWith } from '../request/plain-requests.ts'

type Upstream = 'messages' | 'generate-content'

function sent(upstream: Upstream, more: object) {
  const { body, dropped } = protocolAdapter('chat-completions', upstream).encodeRequest(
    chatWith('chat-completions', more),
    encodeOptions(),
  )
  return { tools: JSON.parse(body.toString()).tools as readonly object[], dropped }
}

function sentTools(upstream: Upstream, more: object): readonly object[] {
  const { tools, dropped } = sent(upstream, more)
  t.same(dropped, [])
  return tools
}

const ASKED = [
  ...['web_search', 'web_search_preview', 'googleSearch', 'google_search_retrieval'].map((type) => ({
    tools: [{ type }],
  })),
  { web_search_options: {} },
  { web_search_options: {}, tools: [{ type: 'googleSearch' }] },
]

for (const asked of ASKED)
  t.test(JSON.stringify(asked), async (t) => {
    t.match(sentTools('messages', asked), [{ type: /^web_search_\d{8}$/, name: 'web_search' }])
    t.same(sentTools('generate-content', asked), [{ googleSearch: {} }])
    t.equal(sentTools('messages', asked).length, 1)
  })

t.test('where the searcher is goes with it', async (t) => {
  const approximate = { country: 'CH' }
  const asked = { web_search_options: { user_location: { type: 'approximate', approximate } } }
  t.match(sentTools('messages', asked), [{ user_location: { type: 'approximate', country: 'CH' } }])
})

t.test('options that the upstream does not have are named', async (t) => {
  const options = { search_context_size: 'high', user_location: { type: 'approximate', country: 'CH' } }
  for (const asked of [{ web_search_options: options }, { tools: [{ type: 'web_search', ...options }] }]) {
    t.same(sent('messages', asked).dropped, ['search_context_size'])
    t.same(sent('generate-content', asked).dropped, ['search_context_size', 'user_location'])
  }
})

t.test('the default of an option is not named', async (t) => {
  const asked = { web_search_options: { search_context_size: 'medium' } }
  for (const upstream of ['messages', 'generate-content'] as const) t.same(sent(upstream, asked).dropped, [])
})
