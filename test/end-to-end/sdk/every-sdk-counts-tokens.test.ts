/** Each vendor's SDK counts tokens at a channel of each protocol: its own one counts, for any other the gateway estimates. */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { CHAT_PROTOCOLS } from '../protocols/support.ts'
import { balanceOf, post } from '../support.ts'
import { MODELS, SERVING_CONFIG } from './support.ts'

const TEXT = 'What is it like in Oslo?'
/** By the tokenizer, with the frame of one message. */
const ESTIMATE = 11
interface Count {
  readonly input_tokens: number
}
const WARNING = 'x-protocol-warning'

t.test('tokens are counted at every channel', async (t) => {
  const service = await borrowService(t, SERVING_CONFIG)
  const { key } = await service.newKey('1')
  const anthropic = new Anthropic({ baseURL: service.baseUrl, apiKey: key, maxRetries: 0 })
  const openai = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: key, maxRetries: 0 })
  const google = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: service.baseUrl } })
  const messages = [{ role: 'user' as const, content: TEXT }]
  const contents = [{ role: 'user', parts: [{ text: TEXT }] }]
  const counts = {
    async messages(model: string) {
      const { data, response } = await anthropic.messages.countTokens({ model, messages }).withResponse()
      return { tokens: data.input_tokens, warning: response.headers.get(WARNING) }
    },
    async responses(model: string) {
      const { data, response } = await openai.responses.inputTokens
        .count({ model, input: TEXT })
        .withResponse()
      t.equal(data.object, 'response.input_tokens')
      return { tokens: data.input_tokens, warning: response.headers.get(WARNING) }
    },
    async 'generate-content'(model: string) {
      const { totalTokens, sdkHttpResponse } = await google.models.countTokens({ model, contents })
      return { tokens: totalTokens, warning: sdkHttpResponse?.headers?.[WARNING] ?? null }
    },
  }
  for (const client of ['messages', 'responses', 'generate-content'] as const)
    for (const upstream of CHAT_PROTOCOLS)
      await t.test(`${client} at ${upstream}`, async (t) => {
        const { tokens, warning } = await counts[client](MODELS[upstream])
        const field = client === 'generate-content' ? 'totalTokens' : 'input_tokens'
        const own = { tokens: Number, warning: null }
        const estimated = {
          tokens: ESTIMATE,
          warning: `${field} (an estimate by the tokenizer o200k_base)`,
        }
        t.match({ tokens, warning }, client === upstream ? own : estimated)
      })

  await t.test('a prompt of 500 KB, and thirty at once', async (t) => {
    const long = 'hello world '.repeat(42_000)
    const ask = (text: string) =>
      post(service, key, '/v1/messages/count_tokens', {
        model: MODELS['chat-completions'],
        messages: [{ role: 'user', content: text }],
      })
    const answers = await Promise.all([ask(long), ...Array.from({ length: 30 }, () => ask('hi'))])
    const counts = answers.map(async (answer) => ((await answer.json()) as Count).input_tokens)
    const [first, ...others] = await Promise.all(counts)
    t.ok(first! > 80_000 && first! < 90_000, `${first}`)
    t.same(others, Array(30).fill(5))
  })

  await t.test('costs nothing', async (t) => {
    t.match(await balanceOf(service, key), { remaining: '1', used: '0' })
  })
})
