/** Tools that upstreams run are known by each of their names in every protocol; a tool that is not known is refused. */
import t from 'tap'
import type { ChatProtocol, ServerTool } from '../../../../schemas/config/catalog.ts'
import { CHAT_PROTOCOLS, SERVER_TOOLS } from '../../../../schemas/config/catalog.ts'
import { chatWith } from './plain-requests.ts'

type Names = Partial<Record<ServerTool, readonly string[]>>

const SEARCHES = ['web_search', 'web_search_preview', 'web_search_20250305', 'googleSearch']
/** What vendors, and gateways that translate, call them where a tool is known by its type. */
const TYPES: Names = {
  web_search: [
    ...SEARCHES,
    ...['google_search', 'googleSearchRetrieval', 'google_search_retrieval', 'web_search_2025_08_26'],
    ...['web_search_preview_2025_03_11', 'web_search_20260209', 'enterpriseWebSearch'],
  ],
  image_generation: ['image_generation'],
  code_interpreter: ['code_interpreter', 'code_execution', 'code_execution_20250825', 'codeExecution'],
  computer_use: ['computer_use', 'computer_use_preview', 'computer-use-preview', 'computerUse'],
  file_search: ['file_search', 'fileSearch', 'retrieval'],
  maps: ['google_maps', 'googleMaps'],
  mcp: ['mcp', 'mcp_toolset'],
  tool_search: ['tool_search', 'tool_search_tool_regex_20251119', 'tool_search_tool_bm25'],
  url_context: ['url_context', 'urlContext', 'web_fetch_20250910'],
}
const CLIENTS: Readonly<Record<ChatProtocol, readonly object[]>> = {
  'chat-completions': [
    { type: 'function', function: { name: 'f', parameters: { type: 'object' } } },
    { type: 'custom', custom: { name: 'c' } },
  ],
  messages: [
    { name: 'f', input_schema: {} },
    { type: 'custom', name: 'f', input_schema: {} },
    ...['bash_20250124', 'text_editor_20250728', 'computer_20250124', 'memory_20250818'].map((type) => ({
      type,
      name: 'x',
    })),
    ...['computer_toolset_20260801', 'browser_toolset_20260801'].map((type) => ({ type })),
  ],
  responses: [
    { type: 'function', name: 'f' },
    ...['custom', 'local_shell', 'apply_patch', 'shell'].map((type) => ({ type, name: 'x' })),
    { type: 'shell', environment: { type: 'local' } },
    { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }] },
  ],
  'generate-content': [
    { functionDeclarations: [{ name: 'f' }] },
    { function_declarations: [{ name: 'f' }] },
    { googleSearch: null },
    {},
  ],
}

const offered = (protocol: ChatProtocol, type: string): object =>
  protocol === 'generate-content' ? { [type]: {} } : { type, name: 'x' }
const toolsIn = (protocol: ChatProtocol, ...tools: readonly object[]) =>
  chatWith(protocol, { tools }).builtInTools

for (const protocol of CHAT_PROTOCOLS) {
  t.test(`${protocol}: each server tool under all its names`, async (t) => {
    for (const tool of SERVER_TOOLS) {
      const types = TYPES[tool] ?? []
      t.not(types.length, 0, tool)
      for (const type of types) t.same(toolsIn(protocol, offered(protocol, type)), [tool], type)
    }
    t.same(
      toolsIn(protocol, ...SEARCHES.map((type) => offered(protocol, type)), offered(protocol, 'url_context')),
      ['web_search', 'url_context'],
      'each once',
    )
  })

  t.test(`${protocol}: what the client runs is no server tool`, async (t) => {
    for (const tool of CLIENTS[protocol]) t.same(toolsIn(protocol, tool), [], JSON.stringify(tool))
    t.same(toolsIn(protocol, ...CLIENTS[protocol]), [])
    t.same(toolsIn(protocol, ...CLIENTS[protocol], offered(protocol, 'googleSearch')), ['web_search'])
  })

  t.test(`${protocol}: what is not known is refused`, async (t) => {
    const unknown = ['advisor_20260301', 'web_searcher', '', 'constructor', 'Function ', 'x'.repeat(500)]
    for (const type of unknown)
      t.throws(
        () => toolsIn(protocol, ...CLIENTS[protocol], offered(protocol, type)),
        { code: 'tool_not_supported', message: /^The tool type '.{0,60}' is not known/ },
        type,
      )
  })
}

t.test('vendors’ client tools are known in their own protocol alone', async (t) => {
  const refused = { code: 'tool_not_supported' }
  t.throws(() => toolsIn('chat-completions', { type: 'bash_20250124' }), refused)
  t.throws(() => toolsIn('responses', { type: 'bash_20250124' }), refused)
  t.throws(() => toolsIn('messages', { type: 'local_shell', name: 'x' }), refused)
  t.same(toolsIn('responses', { type: 'computer' }), ['computer_use'])
})

t.test('tools by another door', async (t) => {
  t.same(chatWith('chat-completions', { web_search_options: {} }).builtInTools, ['web_search'])
  t.same(chatWith('chat-completions', { web_search_options: null }).builtInTools, [])
  t.same(
    chatWith('chat-completions', { web_search_options: {}, tools: [{ type: 'web_search' }] }).builtInTools,
    ['web_search'],
  )
  t.same(chatWith('messages', { mcp_servers: [{ type: 'url', url: 'https://a.example' }] }).builtInTools, [
    'mcp',
  ])
  t.same(chatWith('messages', { mcp_servers: [] }).builtInTools, [])
  t.same(toolsIn('responses', { type: 'shell', environment: { type: 'container_auto' } }), [
    'code_interpreter',
  ])
  t.same(toolsIn('responses', { type: 'namespace', name: 'n', tools: [{ type: 'web_search' }] }), [
    'web_search',
  ])
  const found = { type: 'tool_search_output', tools: [{ type: 'web_search_preview' }] }
  t.same(chatWith('responses', { input: [found] }).builtInTools, ['web_search'])
})

t.test('tools that the conversation adds', async (t) => {
  const input = (...tools: object[]) => ({ input: [{ type: 'additional_tools', role: 'developer', tools }] })
  t.same(chatWith('responses', input({ type: 'function', name: 'f' }, { type: 'web_search' })).builtInTools, [
    'web_search',
  ])
  const addition = (definition: object) => ({
    ...{ type: 'tool_addition', tool: { type: 'tool_definition', definition } },
  })
  const saying = (...blocks: object[]) => {
    const { builtInTools, toolCallLimit } = chatWith('messages', {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hi' }, ...blocks] },
        { role: 'assistant', content: 'Well.' },
      ],
    })
    return { builtInTools, toolCallLimit }
  }
  const search = addition({ type: 'web_search_20260318', name: 'web_search', max_uses: 2 })
  t.same(saying(search), { builtInTools: ['web_search'], toolCallLimit: 2 })
  t.same(saying({ type: 'compaction', content: 'x', tool_changes: [search] }).builtInTools, ['web_search'])
  t.same(saying(addition({ name: 'f', input_schema: {} })).builtInTools, [])
  for (const tool of [{ type: 'tool_reference', name: 'f' }, null])
    t.same(saying({ type: 'tool_addition', tool }, { type: 'tool_removal', tool }).builtInTools, [])
  const advisor = addition({ type: 'advisor_20260301', name: 'advisor', model: 'dear' })
  t.throws(() => saying(advisor), { code: 'tool_not_supported' })
})

t.test('the client may limit the calls of server tools', async (t) => {
  const search = { type: 'web_search_20250305', name: 'web_search' }
  const fetcher = { type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 2 }
  const own = { name: 'f', input_schema: {} }
  const messages = (more: object) => chatWith('messages', more).toolCallLimit
  t.equal(messages({ tools: [own, { ...search, max_uses: 3 }, fetcher] }), 5)
  for (const max_uses of [undefined, null, '3', -1, 0.5])
    t.equal(messages({ tools: [{ ...search, max_uses }, fetcher] }), null, `${max_uses}`)
  t.equal(messages({ tools: [fetcher], mcp_servers: [{ url: 'https://a.example' }] }), null)
  const responses = (max_tool_calls: unknown) =>
    chatWith('responses', { tools: [{ type: 'web_search' }], max_tool_calls }).toolCallLimit
  t.equal(responses(4), 4)
  for (const none of [undefined, null, '4', -1]) t.equal(responses(none), null, `${none}`)
})
