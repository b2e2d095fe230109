/** `POST /v1/responses/compact`: the upstream makes a conversation shorter. See docs/api-rules.md, "Responses". */
import OpenAI from 'openai'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { post, traceOf, upstreamCalls, upstreamRequest } from '../support.ts'
import { Books, checkRefused, configOf, ERRORS, simulated } from './support.ts'

const PATH = '/v1/responses/compact'
const CONFIG = configOf({ native: { max_output_tokens: 100 }, failing: {}, foreign: {}, kept: {} }, [
  simulated('responses', { native: 'sim-native@tokens=8', failing: 'sim-down@fault=status:500' }),
  simulated('responses', { failing: 'sim-up@tokens=8' }, { id: 'second', priority: 1 }),
  simulated('responses', { kept: 'sim-kept@tokens=8' }, { id: 'keeping', keeps_responses_days: 30 }),
  simulated('chat-completions', { foreign: 'sim-foreign' }, { serve: ['responses'] }),
])
const INPUT = [
  { role: 'user' as const, content: 'a long story' },
  { role: 'assistant' as const, content: 'an answer as long' },
]

t.test('conversations are compacted', async (t) => {
  const service = await borrowService(t, CONFIG)
  const books = await Books.open(service)
  const client = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: books.key, maxRetries: 0 })
  const toldBy = ({ input_tokens, output_tokens }: OpenAI.Responses.ResponseUsage) => ({
    input: input_tokens,
    output: output_tokens,
  })

  await t.test('the SDK compacts a conversation, and goes on with what is left', async (t) => {
    const asked = { model: 'native', input: INPUT, instructions: 'Be brief.' }
    const { data, response } = await client.responses.compact(asked).withResponse()
    t.match(data, {
      object: 'response.compaction',
      output: [{ type: 'message', role: 'user' }, { type: 'compaction' }],
    })
    await books.charged(traceOf(response), toldBy(data.usage), { model: 'native' })
    const sent = await upstreamRequest(service, traceOf(response))
    t.strictSame(JSON.parse(sent.body), { ...asked, model: 'sim-native@tokens=8' }, 'nothing is added')
    t.equal((await upstreamCalls(service, traceOf(response)))[0]?.path, PATH)
    const input = [...data.output, { role: 'user', content: 'go on' }] as OpenAI.Responses.ResponseInput
    const next = await client.responses.create({ model: 'native', input }).withResponse()
    await books.charged(traceOf(next.response), toldBy(next.data.usage!))
  })

  await t.test('another channel is tried where one fails', async (t) => {
    const { data, response } = await client.responses
      .compact({ model: 'failing', input: 'hi' })
      .withResponse()
    t.equal(data.object, 'response.compaction')
    await books.charged(traceOf(response), toldBy(data.usage), { attempts_count: 2 })
  })

  await t.test('a response that its channel keeps is compacted there', async (t) => {
    const first = await client.responses.create({ model: 'kept', input: 'hi' }).withResponse()
    await books.charged(traceOf(first.response), toldBy(first.data.usage!))
    const body = { model: 'kept', input: 'and now', previous_response_id: first.data.id }
    const { data, response } = await client.responses.compact(body).withResponse()
    t.equal(data.object, 'response.compaction')
    await books.charged(traceOf(response), toldBy(data.usage))
  })

  await t.test('what no upstream can do is refused', async (t) => {
    const foreign = await post(service, books.key, PATH, { model: 'foreign', input: INPUT })
    await checkRefused(t, foreign, 'responses', ERRORS.noChannel, /responses protocol/)
    for (const more of [{ stream: true }, { background: true }, { conversation: 'conv_1' }])
      await checkRefused(
        t,
        await post(service, books.key, PATH, { model: 'native', input: INPUT, ...more }),
        'responses',
        ERRORS.invalidRequest,
        new RegExp(Object.keys(more)[0]!),
      )
  })
})
