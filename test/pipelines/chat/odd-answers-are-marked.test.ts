/**
 * Answers with counts that no call can have, or from another model than was asked for: in every protocol, streamed and
 * whole, they are charged once, by what was delivered, and marked in the call's detail; a usual answer is not.
 */
import t from 'tap'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'
import { clientCall, DONE, event, RunningCall } from './forward-support.ts'

const BEYOND = MAX_CONTEXT_TOKENS + 1

interface Way {
  readonly client: ChatProtocol
  readonly upstream: ChatProtocol
  readonly whole: (model: string, output: number) => object
  readonly stream: (model: string, output: number) => string
}

const ofMessages = {
  upstream: 'messages' as const,
  whole: (model: string, output_tokens: number) => ({
    ...{ type: 'message', role: 'assistant', model, content: [{ type: 'text', text: 'hello' }] },
    ...{ stop_reason: 'end_turn', usage: { input_tokens: 5, output_tokens } },
  }),
  stream: (model: string, output_tokens: number) =>
    event({ type: 'message_start', message: { id: 'msg_1', model, usage: { input_tokens: 5 } } }) +
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } }) +
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens } }) +
    event({ type: 'message_stop' }),
}
const generated = (modelVersion: string, candidatesTokenCount: number) => ({
  candidates: [{ content: { parts: [{ text: 'hello' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount },
  modelVersion,
})
const ofGenerateContent = {
  upstream: 'generate-content' as const,
  whole: generated,
  stream: (model: string, output: number) => event(generated(model, 1)) + event(generated('unread', output)),
}
const response = (model: string, output_tokens: number) => ({
  ...{ object: 'response', status: 'completed', model, usage: { input_tokens: 5, output_tokens } },
  output: [{ type: 'message', content: [{ type: 'output_text', text: 'hello' }] }],
})

const WAYS: readonly Way[] = [
  {
    client: 'chat-completions',
    upstream: 'chat-completions',
    whole: (model, completion_tokens) => ({
      model,
      choices: [{ index: 0, message: { content: 'hello' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 5, completion_tokens },
    }),
    stream: (model, completion_tokens) =>
      event({ model, choices: [{ index: 0, delta: { content: 'hello' } }] }) +
      event({ model, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }) +
      event({ model, choices: [], usage: { prompt_tokens: 5, completion_tokens } }) +
      DONE,
  },
  { client: 'messages', ...ofMessages },
  { client: 'chat-completions', ...ofMessages },
  { client: 'generate-content', ...ofGenerateContent },
  { client: 'chat-completions', ...ofGenerateContent },
  {
    client: 'responses',
    upstream: 'responses',
    whole: response,
    stream: (model, output) =>
      event({ type: 'response.created', response: { model } }) +
      event({ type: 'response.output_text.delta', delta: 'hello' }) +
      event({ type: 'response.completed', response: response(model, output) }),
  },
]

for (const way of WAYS)
  for (const isStream of [true, false])
    t.test(`${way.client} over ${way.upstream}, ${isStream ? 'stream' : 'whole'}`, async (t) => {
      const settled = (nameOf: (asked: string) => string, output: number) => {
        const call = new RunningCall({
          client: clientCall(way.client, 'hi', isStream),
          upstream: way.upstream,
        })
        const { attempt } = call
        const model = nameOf(attempt.request.upstreamModel)
        attempt.head(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
        attempt.data(isStream ? way.stream(model, output) : JSON.stringify(way.whole(model, output)))
        attempt.end()
        const { detail, ...settlement } = call.settlement
        const { usage_suspect: us, answered_by_other_model: om } = JSON.parse(detail!)
        return { settlement, us, om, oddities: call.oddities }
      }
      const usual = settled((asked) => `${asked}-2026-01-01`, 7)
      t.match(usual, {
        settlement: { status: 'success', output_tokens: 7 },
        us: undefined,
        om: undefined,
        oddities: [{ suspect: '', otherModel: '' }],
      })

      const odd = settled((asked) => `${asked}-mini`, BEYOND)
      const suspect = `output ${BEYOND} > ${MAX_CONTEXT_TOKENS}`
      t.match(odd, {
        // What was delivered is billed; a stream of generate-content says 'hello' twice.
        settlement: {
          status: 'success',
          input_tokens: 5,
          output_tokens: isStream && way.upstream === 'generate-content' ? 3 : 2,
        },
        us: suspect,
        om: 1,
        oddities: [{ suspect, otherModel: /-mini$/ }],
      })
      t.notMatch(JSON.stringify(odd.settlement), /-mini/, 'the row does not name the upstream’s model')
    })
