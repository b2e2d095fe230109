/** A call that asks for tools of the upstream goes to channels that have all of them, or is refused. */
import t from 'tap'
import { type PricedCall, requireServerTools, selectModel } from '../../../pipelines/chat/select-model.ts'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../schemas/config/catalog.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { chatWith } from '../../src/protocols/request/plain-requests.ts'

const TOOLS = ['web_search', 'code_interpreter', 'url_context', 'computer_use', 'mcp'] as const
const able = Object.fromEntries(TOOLS.map((tool) => [tool, true]))

const channel = (
  id: string,
  protocol: ChatProtocol,
  models: readonly string[],
  tools: readonly string[],
) => ({
  id,
  protocol,
  base_url: 'http://a.example',
  api_key: 'k',
  models: Object.fromEntries(models.map((model) => [model, model])),
  tools,
})
const pricing = { unit: '1M_tokens', input: '1', output: '1', server_tool_call: '5' }
const catalog = createCatalog(
  configFile.parse({
    models: [
      { id: 'able', capabilities: able, pricing },
      { id: 'plain', pricing },
      { id: 'translated', capabilities: able, pricing },
    ],
    channels: [
      ...CHAT_PROTOCOLS.flatMap((protocol) => [
        channel(`${protocol}-all`, protocol, ['able', 'plain'], TOOLS),
        channel(`${protocol}-none`, protocol, ['able', 'plain'], []),
      ]),
      channel('other', 'messages', ['translated'], TOOLS),
    ],
  }),
)

function channelsFor(protocol: ChatProtocol, model: string, more: object): string[] {
  const call = { ...chatWith(protocol, { stream: true, ...more }), model }
  const caller = { key: { allowedModels: null }, account: { allowedModels: null } }
  const read = { protocol, call, known: caller } as unknown as PricedCall
  const selected = selectModel(() => catalog)(read) as PricedCall
  const { routes } = requireServerTools()(selected) as PricedCall
  return routes.map((route) => route.channel.id)
}

const offered = (protocol: ChatProtocol, type: string): object =>
  protocol === 'generate-content' ? { [type]: {} } : { type, name: 'x' }

for (const protocol of CHAT_PROTOCOLS)
  t.test(protocol, async (t) => {
    const own = [`${protocol}-all`, `${protocol}-none`]
    const channels = (model: string, ...types: string[]) =>
      channelsFor(protocol, model, { tools: types.map((type) => offered(protocol, type)) }).filter((id) =>
        own.includes(id),
      )
    t.same(channels('able'), own, 'without a tool any channel serves')
    for (const type of [
      'web_search_preview',
      'googleSearch',
      'code_execution',
      'urlContext',
      'computer_use',
      'mcp',
    ]) {
      t.same(channels('able', type), [`${protocol}-all`], type)
      t.throws(() => channels('plain', type), { code: 'tool_not_supported' }, type)
    }
    for (const type of ['image_generation', 'file_search', 'google_maps'])
      t.throws(() => channels('able', type), { code: 'tool_not_supported', message: /'able'/ }, type)
  })

t.test('tools by another door are gated as well', async (t) => {
  t.throws(() => channelsFor('chat-completions', 'plain', { web_search_options: {}, stream: true }), {
    code: 'tool_not_supported',
  })
  t.throws(() => channelsFor('chat-completions', 'able', { web_search_options: {}, stream: false }), {
    code: 'invalid_request',
    message: /'stream'/,
  })
  const fetcher = { tools: [{ type: 'url_context' }] }
  for (const [model, more] of [
    ['plain', { web_search_options: {} }],
    ['plain', fetcher],
    ['translated', fetcher],
  ] as const)
    t.throws(
      () => channelsFor('chat-completions', model, { ...more, stream: false }),
      { code: 'invalid_request' },
      'a stream is asked for first',
    )
  t.throws(() => channelsFor('messages', 'plain', { mcp_servers: [{ type: 'url', url: 'x' }] }), {
    code: 'tool_not_supported',
  })
})

t.test('a translation can say a search alone', async (t) => {
  const tools = (type: string) => ({ tools: [{ type }] })
  t.same(channelsFor('chat-completions', 'translated', tools('web_search')), ['other'])
  for (const type of ['code_interpreter', 'mcp', 'url_context'])
    t.throws(() => channelsFor('chat-completions', 'translated', tools(type)), { code: 'tool_not_supported' })
})
