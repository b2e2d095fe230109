/** A search is translated under each name that it may have, and where its options stand in place of a tool. */
import t from 'tap'
import { passageOf } from '../../../src/protocols/registry.ts'
import { chatWith } from './plain-requests.ts'

function sentTools(upstream: 'messages' | 'generate-content', more: object): readonly object[] {
  const { body, dropped } = passageOf('chat-completions', upstream).wire(chatWith('chat-completions', more), {
    upstreamModel: 'theirs',
    outputCeiling: 4096,
    outputLimitField: 'max_tokens',
    askUsage: true,
    fetched: new Map(),
  })
  t.same(dropped, [])
  return JSON.parse(body.toString()).tools
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
