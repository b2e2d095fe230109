/**
 * A client leaves behind the first word of a stream of each family: what was reported by then is charged as reported, and
 * the rest by the gateway's own count. The charges are computed by hand from these prices. See docs/pricing.md.
 */

import { readFileSync } from 'node:fs'
import t from 'tap'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { parseCredits } from '../../../schemas/money.ts'
import { CHAT_PROVIDERS } from '../../support/chat-providers.ts'
import { chunk } from '../../support/event-stream.ts'
import { clientCall, RunningCall } from './forward-support.ts'

const PRICING = {
  unit: '1M_tokens',
  ...{ input: '10', output: '40', cached_input: '1', reasoning: '60' },
  ...{ input_audio: '30', output_audio: '80', output_image: '120' },
  ...{ server_tool_call: '0.01', server_tools: { web_search: '0.02' } },
}
/** With what is around it in JSON, 4,000 characters: 1,000 tokens by the gateway's own count. */
const CONTENT = 'x'.repeat(3970)
/** Six characters: 2 tokens by the gateway's own count. */
const WORD = 'Hello '

/** Nothing is reported before the end: (1000 x 10 + 2 x 40) / 1,000,000. */
const ESTIMATED = '0.01008'
const CHARGES: Readonly<Partial<Record<string, string>>> = {
  // In every chunk: (500 x 10 + 300 x 1 + 200 x 12.5 + 90 x 40) / 1,000,000
  qwen: '0.0114',
  // The prompt at the beginning: (500 x 10 + 200 x 1 + 100 x 12.5 + 200 x 20 + 2 x 40) / 1,000,000
  anthropic: '0.01053',
  // (700 x 10 + 200 x 1 + 100 x 12.5 + 2 x 40) / 1,000,000
  bedrock: '0.00853',
  // All but the text: (300 x 10 + 300 x 30 + 400 x 1 + 50 x 60 + 2 x 40) / 1,000,000
  gemini: '0.01548',
  vertex: '0.01548',
}

const PROTOCOLS: Readonly<Partial<Record<string, ChatProtocol>>> = {
  anthropic: 'messages',
  bedrock: 'messages',
  gemini: 'generate-content',
  vertex: 'generate-content',
}
/** What says `CONTENT`; of generate-content it is shorter by what is longer around it. */
const saying = (protocol: ChatProtocol) =>
  clientCall(protocol, protocol === 'generate-content' ? CONTENT.slice(9) : CONTENT, true)

/** The events of a family's recorded stream up to the first word. */
function begun(family: string): readonly (string | Buffer)[] {
  const url = new URL(`../../fixtures/providers/${family}/stream.txt`, import.meta.url)
  const text = readFileSync(url, 'utf8')
  const events = text.slice(0, text.indexOf('\n\n', text.indexOf(WORD)) + 2).split(/(?<=\n\n)/)
  if (family !== 'bedrock') return events
  return events.map((event) => chunk(JSON.parse(event.slice(event.indexOf('{')))))
}

for (const family of CHAT_PROVIDERS)
  t.test(family, async (t) => {
    const protocol = PROTOCOLS[family] ?? 'chat-completions'
    const call = new RunningCall({
      client: saying(protocol),
      upstream: protocol,
      modelFields: { pricing: PRICING },
      channelFields: { only: { provider: family } },
    })
    const framed = { 'content-type': 'application/vnd.amazon.eventstream' }
    call.attempt.head(200, family === 'bedrock' ? framed : {})
    for (const event of begun(family)) call.attempt.data(event)
    t.match(call.sent, WORD)
    call.abort()
    t.match(call.settlement, {
      status: 'interrupted',
      cost: parseCredits(CHARGES[family] ?? ESTIMATED).toString(),
    })
    t.equal(call.attempt.isLeft, true)
  })

const search = { type: 'web_search_call', id: 'ws_1', action: { type: 'search', query: 'x' } }
const searchBlock = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
const groundingMetadata = { webSearchQueries: ['x'] }
const SEARCHES: Readonly<Record<'responses' | 'messages' | 'generate-content', readonly object[]>> = {
  responses: [
    { type: 'response.created', response: { id: 'resp_1' } },
    { type: 'response.output_item.done', item: search },
    { type: 'response.output_text.delta', delta: WORD },
  ],
  messages: [
    { type: 'content_block_start', index: 0, content_block: searchBlock },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: WORD } },
  ],
  'generate-content': [{ candidates: [{ content: { parts: [{ text: WORD }] }, groundingMetadata }] }],
}

t.test('a search that was made is charged though nothing was reported', async (t) => {
  for (const [upstream, events] of Object.entries(SEARCHES))
    for (const protocol of [upstream, 'chat-completions'] as ChatProtocol[]) {
      if (protocol !== upstream && upstream === 'responses') continue
      const call = new RunningCall({
        client: saying(protocol),
        upstream: upstream as ChatProtocol,
        modelFields: { pricing: PRICING },
      })
      call.attempt.head()
      for (const event of events) call.attempt.data(`data: ${JSON.stringify(event)}\n\n`)
      call.abort()
      // (1000 x 10 + 2 x 40) / 1,000,000 + 0.02
      const charged = { server_tool_calls: 1, cost: parseCredits('0.03008').toString() }
      t.match(call.settlement, charged, `${protocol} to ${upstream}`)
    }
})

const user = (...content: object[]) => [{ role: 'user', content }]
const BASE64 = 'A'.repeat(400_000)
const URI = `data:image/png;base64,${BASE64}`
const image = { type: 'image_url', image_url: { url: URI } }
const source = { type: 'base64', media_type: 'image/png', data: BASE64 }
const made = { type: 'image_generation_call', id: 'ig_1', result: BASE64 }

/** The prompt, the length of what is in it, and the tokens that this is taken for. */
type Carrying = readonly [protocol: ChatProtocol, prompt: readonly object[], inline: number, tokens: number]
const CARRYING: readonly Carrying[] = [
  ['chat-completions', user({ type: 'text', text: 'What is it?' }, image), URI.length, 1600],
  [
    'chat-completions',
    user({ type: 'input_audio', input_audio: { data: BASE64, format: 'mp3' } }),
    BASE64.length,
    2000,
  ],
  ['responses', user({ type: 'input_image', image_url: URI }), URI.length, 1600],
  ['responses', [made, { role: 'user', content: 'Bluer.' }], BASE64.length, 1600],
  ['messages', user({ type: 'image', source }), BASE64.length, 1600],
  [
    'generate-content',
    [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: BASE64 } }] }],
    BASE64.length,
    1600,
  ],
  // A file may be a text.
  ['responses', user({ type: 'input_file', file_data: `data:text/plain;base64,${BASE64}` }), 0, 0],
]
const PROMPT_FIELDS: Readonly<Record<ChatProtocol, string>> = {
  'chat-completions': 'messages',
  messages: 'messages',
  responses: 'input',
  'generate-content': 'contents',
}

t.test('pictures and sound in the request count as given by URL, not by their bytes', async (t) => {
  for (const [protocol, prompt, inline, tokens] of CARRYING) {
    const call = new RunningCall({
      client: clientCall(protocol, '', true, { [PROMPT_FIELDS[protocol]]: prompt }),
      upstream: protocol,
      modelFields: { pricing: PRICING },
    })
    // Of a stream that has begun the request is released.
    if (protocol === 'chat-completions') {
      call.attempt.head()
      call.attempt.data(`data: ${JSON.stringify({ choices: [{ delta: { content: WORD } }] })}\n\n`)
    }
    call.abort()
    const input_tokens = Math.ceil((JSON.stringify(prompt).length - inline) / 4) + tokens
    t.match(
      call.settlement,
      { status: 'interrupted', input_tokens },
      `${protocol} ${JSON.stringify(prompt).slice(0, 80)}`,
    )
  }
})
