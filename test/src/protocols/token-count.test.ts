/** The tokenizer's estimate of a prompt: one rule for all protocols, any text, and files by what can be read of them. */
import { Buffer } from 'node:buffer'
import t from 'tap'
import type { CountingProtocol } from '../../../src/channels/channel.ts'
import { BODY_WORK } from '../../../src/protocols/body-work.ts'
import { getCountedBody } from '../../../src/protocols/generate-content/count.ts'
import { READERS } from '../../../src/protocols/registry.ts'

const FILES = { image_tokens: 1600, file_tokens: 16_000, audio_tokens: 2000, server_tool_calls: 3 }
const FRAME = 4
const SCHEMA = { type: 'object', properties: { place: { type: 'string' } } }
const PNG_HEAD = 'iVBORw0KGgoAAAANSUhEUgAA'

type Body = Readonly<Record<string, unknown>>

/** Counts as the endpoint of the protocol does. */
function count(client: CountingProtocol, body: Body): number {
  const bytes = Buffer.from(JSON.stringify(body))
  if (client !== 'generate-content') {
    const reader = client === 'messages' ? 'messages-count' : client
    const call = READERS[reader].read({ query: '', body: bytes })
    return BODY_WORK.count({ client, call, files: FILES }, bytes)
  }
  const read = READERS['generate-content-count'].read({ model: 'm', query: '', body: bytes })
  const source = { body: getCountedBody(read) }
  return BODY_WORK.count({ client, call: { ...read, source }, files: FILES }, bytes)
}

const said = (text: string): Body => ({ model: 'm', messages: [{ role: 'user', content: text }] })
const countText = (text: string): number => count('messages', said(text)) - FRAME

/** The head of a picture of this size. */
function pictureOf(width: number, height: number): string {
  const sizes = Buffer.alloc(8)
  sizes.writeUInt32BE(width, 0)
  sizes.writeUInt32BE(height, 4)
  const head = [
    Buffer.from(PNG_HEAD, 'base64').subarray(0, 16),
    sizes,
    Buffer.from([8, 2, 0, 0, 0, 0, 0, 0, 0]),
  ]
  return Buffer.concat(head).toString('base64')
}

t.test('text is counted as the tokenizer splits it', async (t) => {
  t.equal(countText('hello world'), 2)
  t.equal(countText(''), 0)
  t.equal(countText('Grüße, 世界 👋'), 7)
  t.ok(countText('<|endoftext|>') > 1, 'a special token is text')
  t.ok(countText('\ud800 lone') > 0)
})

t.test('text without a break, and a very long one, are counted at nearly the same rate', async (t) => {
  const near = (tokens: number, expected: number) => t.ok(Math.abs(tokens / expected - 1) < 0.02, `${tokens}`)
  near(countText('a'.repeat(100_000)), 100_000 / 8)
  near(countText('hello world '.repeat(100_000)), 200_000)
})

t.test('the same conversation has the same tokens in each protocol', async (t) => {
  const [tool, instructions, text] = ['weather', 'Be brief.', 'What is it like in Oslo?']
  const args = { place: 'Oslo' }
  const expected =
    [
      instructions,
      text,
      tool,
      'Tells the weather.',
      JSON.stringify(SCHEMA),
      tool,
      JSON.stringify(args),
      'Rain',
    ]
      .map(countText)
      .reduce((sum, tokens) => sum + tokens, 0) +
    // The instructions, three messages, the tool, its call and its result.
    7 * FRAME
  const described = { name: tool, description: 'Tells the weather.' }
  const messages = {
    model: 'm',
    system: instructions,
    messages: [
      { role: 'user', content: text },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: tool, input: args }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'Rain' }] },
    ],
    tools: [{ ...described, input_schema: SCHEMA }],
  }
  t.equal(count('messages', messages), expected)
  const responses = {
    model: 'm',
    instructions,
    input: [
      { role: 'user', content: text },
      { type: 'function_call', call_id: 'c', name: tool, arguments: JSON.stringify(args) },
      { type: 'function_call_output', call_id: 'c', output: 'Rain' },
    ],
    tools: [{ type: 'function', ...described, parameters: SCHEMA }],
  }
  t.equal(count('responses', responses), expected)
  const request = {
    systemInstruction: { parts: [{ text: instructions }] },
    contents: [
      { role: 'user', parts: [{ text }] },
      { role: 'model', parts: [{ functionCall: { name: tool, args } }] },
      { role: 'user', parts: [{ functionResponse: { name: tool, response: { output: 'Rain' } } }] },
    ],
    tools: [{ functionDeclarations: [{ ...described, parametersJsonSchema: SCHEMA }] }],
  }
  const whole = { generateContentRequest: { model: 'models/m', ...request } }
  t.equal(count('generate-content', whole), expected)
  const only = { contents: request.contents.slice(0, 1) }
  t.equal(count('generate-content', only), countText(text) + FRAME)
})

t.test('files count by what can be read of them', async (t) => {
  const file = (type: string, source: object) =>
    count('messages', { model: 'm', messages: [{ role: 'user', content: [{ type, source }] }] }) - FRAME
  const inline = (media_type: string, data: string) => ({ type: 'base64', media_type, data })
  t.equal(file('image', inline('image/png', pictureOf(750, 100))), 100)
  t.equal(file('image', inline('image/png', pictureOf(9000, 9000))), FILES.image_tokens)
  t.equal(file('image', inline('image/png', 'AAAA')), FILES.image_tokens)
  t.equal(file('image', { type: 'url', url: 'https://example.com/a.png' }), FILES.image_tokens)
  t.equal(file('document', inline('application/pdf', 'A'.repeat(400))), 100)
  t.equal(file('document', inline('application/pdf', 'A'.repeat(400_000))), FILES.file_tokens)
  t.equal(file('document', { type: 'url', url: 'https://example.com/a.pdf' }), FILES.file_tokens)
})

t.test('what no upstream keeps cannot be counted', async (t) => {
  const reference = [{ type: 'item_reference', id: 'msg_1' }]
  t.throws(() => count('responses', { model: 'm', input: reference }), { code: 'invalid_request' })
})
