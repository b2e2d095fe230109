/** "Balance and billing": the estimate before a call, and the balance of zero. */
import t from 'tap'
import { parseCredits, printCredits } from '../../schemas/money.ts'
import type { ChatProtocol } from '../end-to-end/protocols/support.ts'
import { section, statement, statements } from './statement.ts'

/** The least amount of money. */
const ONE_STEP = 1n

const DEFAULT_MAX_TOKENS = 100

const MAX_OUTPUT_TOKENS = 1000

const MOST_ASSUMED = 32_768

interface Estimated {
  readonly protocol: ChatProtocol
  readonly model?: string
  readonly what: string
  /** The prompt that counts, as it is sent. */
  readonly prompt: readonly unknown[]
  readonly more: object
  readonly output: number
}

const user = [{ role: 'user', content: 'hi' }]

const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]

const system = { parts: [{ text: 'Be brief.' }] }

const schema = { type: 'object', properties: { city: { type: 'string', description: 'x'.repeat(400) } } }

const FUNCTION = { type: 'function', function: { name: 'f', parameters: schema } }

/** A request, and what it is estimated at: a quarter of the prompt's bytes, and the output. */
const ESTIMATED: readonly Estimated[] = [
  {
    protocol: 'chat-completions',
    what: 'messages, and max_tokens in full',
    prompt: [user],
    more: { messages: user, max_tokens: 77 },
    output: 77,
  },
  {
    protocol: 'chat-completions',
    what: 'messages, and the default of the model without max_tokens',
    prompt: [user],
    more: { messages: user },
    output: DEFAULT_MAX_TOKENS,
  },
  {
    protocol: 'chat-completions',
    model: 'uncapped',
    what: 'messages, and 32768 where the default of the model is more',
    prompt: [user],
    more: { messages: user },
    output: MOST_ASSUMED,
  },
  {
    protocol: 'chat-completions',
    model: 'uncapped',
    what: 'max_tokens in full also above 32768',
    prompt: [user],
    more: { messages: user, max_tokens: 45_000 },
    output: 45_000,
  },
  {
    protocol: 'chat-completions',
    what: 'messages alone: tools, schemas and other fields count nothing',
    prompt: [user],
    more: {
      messages: user,
      tools: [FUNCTION],
      response_format: { type: 'json_schema', json_schema: { name: 's', schema } },
      user: 'x'.repeat(500),
    },
    output: DEFAULT_MAX_TOKENS,
  },
  {
    protocol: 'chat-completions',
    model: 'seeing',
    what: 'messages alone: a link to a picture counts its bytes',
    prompt: [
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] }],
    ],
    more: {
      messages: [
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] },
      ],
      max_tokens: 10,
    },
    output: 10,
  },
  {
    protocol: 'chat-completions',
    what: 'n choices of output',
    prompt: [user],
    more: { messages: user, n: 3 },
    output: 3 * DEFAULT_MAX_TOKENS,
  },
  {
    protocol: 'messages',
    what: 'messages and system, and max_tokens',
    prompt: [user, 'Be brief.'],
    more: { messages: user, system: 'Be brief.', max_tokens: 77 },
    output: 77,
  },
  {
    protocol: 'messages',
    what: 'messages alone: tools count nothing',
    prompt: [user],
    more: { messages: user, max_tokens: 77, tools: [{ name: 'f', input_schema: schema }] },
    output: 77,
  },
  {
    protocol: 'generate-content',
    what: 'contents and systemInstruction, and maxOutputTokens',
    prompt: [contents, system],
    more: { contents, systemInstruction: system, generationConfig: { maxOutputTokens: 77 } },
    output: 77,
  },
  {
    protocol: 'generate-content',
    what: 'contents alone: tools count nothing, and the default of the model counts',
    prompt: [contents],
    more: { contents, tools: [{ functionDeclarations: [{ name: 'f', parameters: schema }] }] },
    output: DEFAULT_MAX_TOKENS,
  },
  {
    protocol: 'responses',
    what: 'input and instructions, and max_output_tokens',
    prompt: [user, 'Be brief.'],
    more: { input: user, instructions: 'Be brief.', max_output_tokens: 77 },
    output: 77,
  },
  {
    protocol: 'responses',
    what: 'input alone: tools count nothing, and the default of the model counts',
    prompt: [user],
    more: { input: user, tools: [{ type: 'function', name: 'f', parameters: schema }] },
    output: DEFAULT_MAX_TOKENS,
  },
]

/** In credits: 1 a prompt token, 2 an output token. */
function estimateCall({ prompt, output }: Estimated): bigint {
  const bytes = prompt.reduce<number>((sum, part) => sum + Buffer.byteLength(JSON.stringify(part)), 0)
  return parseCredits(String(Math.ceil(bytes / 4) + 2 * output))
}

/** Every billed endpoint, with a body that would be refused for itself. */
const BILLED = [
  '/v1/chat/completions',
  '/v1/messages',
  '/v1/responses',
  '/v1beta/models/plain-generate-content:generateContent',
  '/v1beta/models/plain-generate-content:streamGenerateContent',
  '/v1/images/generations',
  '/v1/images/edits',
  '/v1/videos/generations',
  '/v1/music/generations',
  '/v1/audio/speech',
  '/v1/audio/voices',
  '/v1/transcripts/extract',
  '/v1/videos/avatars',
  '/v1/videos/clip-subtitles',
]

await section(t, 'Balance and billing: the pre-charge', [
  statements(
    ESTIMATED,
    ({ protocol, what }) => `The estimate counts ${what} (${protocol})`,
    async (t, world, estimated) => {
      const { protocol, model = `plain-${protocol}`, more } = estimated
      const estimate = estimateCall(estimated)
      const enough = await world.client(printCredits(estimate))
      const passed = await enough.call(protocol, model, { more })
      t.equal(passed.status, 200, `${printCredits(estimate)} is enough: ${passed.text.slice(0, 300)}`)
      const short = await world.client(printCredits(estimate - ONE_STEP))
      const refused = await short.call(protocol, model, { more })
      t.equal(refused.status, 402, 'the least amount less is not')
      t.same(await world.upstreamCalls(refused.trace), [], 'nothing went upstream')
    },
  ),
  statement('The estimate counts bytes, as they are sent', async (t, world) => {
    for (const content of ['Ελλάδα 🙂 河流', '\\u03b1\\n', 'x'.repeat(1001)]) {
      const messages = `[{"role":"user",  "content":"${content}"}]`
      const estimate = parseCredits(String(Math.ceil(Buffer.byteLength(messages) / 4) + 2))
      const body = `{"model":"plain-chat-completions","max_tokens":1,"messages":${messages}}`
      const ask = async (credit: bigint) =>
        (await (await world.client(printCredits(credit))).post('/v1/chat/completions', body)).status
      t.equal(await ask(estimate), 200)
      t.equal(await ask(estimate - ONE_STEP), 402)
    }
  }),
  statements(
    [
      ['chat-completions', (body: Record<string, unknown>) => body.max_tokens],
      ['responses', (body: Record<string, unknown>) => body.max_output_tokens],
      [
        'generate-content',
        (body: Record<string, { maxOutputTokens?: number }>) => body.generationConfig?.maxOutputTokens,
      ],
    ] as const,
    ([protocol]) => `Without an output limit the upstream is sent the ceiling of the model (${protocol})`,
    async (t, world, [protocol, limitOf]) => {
      const client = await world.client()
      const answer = await client.call(protocol, `plain-${protocol}`)
      const received = await world.received(answer.trace)
      t.equal((limitOf as (body: object) => unknown)(received), MAX_OUTPUT_TOKENS)
    },
  ),
  statements(
    BILLED,
    (path) => `At a balance of zero ${path} is 402 before its body is read`,
    async (t, world, path) => {
      const client = await world.client('0')
      for (const body of ['{"model":', '{}', '{"model":"unheard-of"}']) {
        const { status, text } = await client.post(path, body)
        t.equal(status, 402, body)
        t.match(text, /top up/i)
      }
    },
  ),
])
