/** A name that would change an object, and names that differ only in case, come through each translation as they are. */
import t from 'tap'
import { protocolAdapter, READERS } from '../../../../src/protocols/registry.ts'
import { encodeOptions } from '../encode-options.ts'

const CHOSEN = '{"__proto__":{"polluted":true},"Name":1,"name":2,"inner":{"__proto__":3,"NAME":4}}'
const SCHEMA = `{"type":"object","properties":${CHOSEN.replace(/\d/g, '{"type":"string"}').replace('true', '{"type":"string"}')}}`

const REQUEST = `{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":${SCHEMA}}}],"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":${JSON.stringify(CHOSEN)}}}]},{"role":"tool","tool_call_id":"1","content":${JSON.stringify(CHOSEN)}}]}`

const call = () =>
  READERS['chat-completions'].read({
    path: '/v1/chat/completions',
    query: '',
    body: Buffer.from(REQUEST),
  })

const sentTo = (to: 'chat-completions' | 'messages' | 'generate-content', upstreamModel: string): string =>
  protocolAdapter('chat-completions', to)
    .encodeRequest(call(), encodeOptions({ upstreamModel }))
    .body.toString()

t.afterEach(() => {
  if ('polluted' in {}) throw new Error('a prototype was changed')
})

t.test('requests', async (t) => {
  const messages = sentTo('messages', 'claude-sonnet-4-5')
  t.match(messages, `"input":${CHOSEN}`)
  t.match(messages, `"input_schema":${SCHEMA}`)
  t.match(messages, `"content":${JSON.stringify(CHOSEN)}`)
  const generate = sentTo('generate-content', 'gemini-2.5-pro')
  t.match(generate, `"args":${CHOSEN}`)
  t.match(generate, `"response":${CHOSEN}`)
  t.match(generate, `"parametersJsonSchema":${SCHEMA}`)
  const older = JSON.parse(sentTo('generate-content', 'gemini-1.5-pro'))
  const { properties } = older.tools[0].functionDeclarations[0].parameters
  t.same(Object.keys(properties), ['__proto__', 'Name', 'name', 'inner'])
  t.match(sentTo('chat-completions', 'theirs'), `"parameters":${SCHEMA}`)
})

t.test('answers', async (t) => {
  const argumentsIn = (from: 'messages' | 'generate-content', answer: string) => {
    const { body } = protocolAdapter('chat-completions', from).readWhole(call(), Buffer.from(answer))
    return JSON.parse(body.toString()).choices[0].message.tool_calls[0].function.arguments
  }
  t.equal(
    argumentsIn(
      'messages',
      `{"id":"a","type":"message","content":[{"type":"tool_use","id":"1","name":"f","input":${CHOSEN}}],"usage":{"input_tokens":1,"output_tokens":1}}`,
    ),
    CHOSEN,
  )
  t.equal(
    argumentsIn(
      'generate-content',
      `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${CHOSEN}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`,
    ),
    CHOSEN,
  )
})
