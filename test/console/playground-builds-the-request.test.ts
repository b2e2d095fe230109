/** The request of the playground, and the command that sends the same one. */
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { curlOf, readTools, requestBody, type Settings } from '../../console/src/pages/playground/request.ts'

const SETTINGS: Settings = {
  model: 'demo-chat',
  system: '',
  stream: false,
  temperature: null,
  topP: null,
  maxTokens: null,
  reasoningEffort: null,
  tools: '',
}

t.test('what is not set is not sent', async (t) => {
  t.same(requestBody(SETTINGS, [{ role: 'user', text: 'Hello!' }]), {
    model: 'demo-chat',
    messages: [{ role: 'user', content: 'Hello!' }],
  })
})

t.test('everything that is set is sent', async (t) => {
  const tools = [{ type: 'function', function: { name: 'weather' } }]
  const set = {
    ...SETTINGS,
    system: 'Be brief.',
    stream: true,
    temperature: 0,
    topP: 0.9,
    maxTokens: 100,
    reasoningEffort: 'low',
    tools: JSON.stringify(tools),
  } as const
  const body = requestBody(set, [
    { role: 'user', text: 'What is this?', pictures: [{ name: 'a.png', url: 'data:image/png;base64,AA==' }] },
    { role: 'assistant', text: '', toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{}' }] },
    { role: 'tool', text: '12 degrees', toolCallId: 'call_1' },
  ])
  t.same(body, {
    model: 'demo-chat',
    messages: [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
        ],
      },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '12 degrees' },
    ],
    stream: true,
    stream_options: { include_usage: true },
    temperature: 0,
    top_p: 0.9,
    max_tokens: 100,
    reasoning_effort: 'low',
    tools,
  })
})

t.test('definitions of tools that cannot be read are named', async (t) => {
  t.equal(readTools('[').problem, 'not_json')
  t.equal(readTools('{}').problem, 'not_a_list')
  t.equal(readTools('[{"type":"function"}]').problem, 'no_function_name')
  t.same(readTools(' '), { tools: [], problem: null })
})

t.test('the command survives a shell, whatever the prompt holds', async (t) => {
  const body = { prompt: `It's "$HOME" \`id\` \\ and\na line 你好` }
  // A function in place of curl prints the last argument: the body.
  const script = `curl() { printf %s "\${@: -1}"; }\n${curlOf('http://127.0.0.1:1', '/v1/chat/completions', body)}`
  const printed = execFileSync('bash', ['-c', script], { encoding: 'utf8' })
  t.same(JSON.parse(printed), body)
})
