/**
 * An error as the first event leads to another channel; after the first byte there is no second attempt and no end
 * mark. See docs/failure-modes.md, "Streams", rows 35, 36 and 38.
 */
import t, { type Test } from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import type { LentService } from '../../support/service.ts'
import { estimatedTokens, eventsIn, rowOf, say, textIn, traceOf, upstreamCalls } from '../support.ts'
import { clientFor } from './support.ts'

const MESSAGES = say('hello')
const PROMPT_TOKENS = Math.ceil(JSON.stringify(MESSAGES).length / 4)
/** Behind the first event of every stream here, before its end. */
const MIDDLE_BYTES = 1000

/** What the first channel of each model does; the second always answers. */
const FIRST = {
  errs_first: 'fault=stream_error',
  refuses: 'fault=status:503',
  resets_head: 'fault=reset:head',
  resets_early: 'fault=reset:10',
  errs_later: 'fault=stream_error:3',
  resets: `fault=reset:${MIDDLE_BYTES}`,
  cuts: `fault=cut:${MIDDLE_BYTES}`,
  truncates: `fault=truncate:${MIDDLE_BYTES}`,
}

/**
 * Each model is served by a channel that fails, and then by one that does not; as `NAME-alone` by the failing one only.
 * A channel that fails often is rested: each fault has its own.
 */
function config(): string {
  const names = Object.keys(FIRST)
  const price = '{ unit: 1M_tokens, input: "1000000", output: "2000000" }'
  const channel = (id: string, priority: number, models: readonly string[]) => [
    `  - id: ${id}`,
    '    protocol: chat-completions',
    '    base_url: ${TEST_SIMULATOR_URL}/v1',
    '    api_key: test',
    `    priority: ${priority}`,
    `    models: { ${models.join(', ')} }`,
  ]
  const failing = Object.entries(FIRST).flatMap(([name, fault]) => {
    const upstream = JSON.stringify(`sim-${name}@${fault}`)
    return channel(`failing-${name}`, 0, [`${name}: ${upstream}`, `${name}-alone: ${upstream}`])
  })
  return [
    'models:',
    ...names.flatMap((name) => [name, `${name}-alone`]).map((id) => `  - { id: ${id}, pricing: ${price} }`),
    'channels:',
    ...failing,
    ...channel(
      'second',
      1,
      names.map((name) => `${name}: sim-second`),
    ),
    '',
  ].join('\n')
}

const stream = (model: string) => ({ model, messages: MESSAGES, max_tokens: 8, stream: true })

t.test('an upstream that fails', async (t) => {
  const service = await borrowService(t, config())
  const { key } = await service.newKey('1000000')
  const modelsCalled = async (requestId: string) =>
    (await upstreamCalls(service, requestId)).map(({ model }) => model?.replace(/@.*/, ''))

  await t.test('before the first event, with another channel: nothing of it is seen', async (t) => {
    for (const model of ['errs_first', 'refuses', 'resets_head', 'resets_early']) {
      for (const body of [stream(model), { ...stream(model), stream: false }]) {
        const response = await service.chat(key, body)
        const text = await response.text()
        t.equal(response.status, 200)
        t.notMatch(text, /error/)
        if (body.stream) t.ok(text.endsWith('data: [DONE]\n\n'))
        const called = await modelsCalled(traceOf(response))
        // A kept connection that is reset before any answer may only have been closed: a fresh one is tried, once.
        const failing = Array(model === 'resets_head' && called.length === 3 ? 2 : 1).fill(`sim-${model}`)
        t.strictSame(called, [...failing, 'sim-second'])
        const row = await rowOf(service, key, traceOf(response))
        const attempts_count = called.length
        t.match(row, { status: 'success', attempts_count, input_tokens: PROMPT_TOKENS, output_tokens: 8 })
      }
    }
  })

  await t.test(
    'before the first event, on the only channel: a status that says so, or the event, no charge',
    async (t) => {
      const statuses = { errs_first: 200, refuses: 503, resets_head: 502, resets_early: 502 }
      for (const [model, status] of Object.entries(statuses)) {
        const response = await service.chat(key, stream(`${model}-alone`))
        t.equal(response.status, status, model)
        const text = await response.text()
        const { error } = JSON.parse(status === 200 ? text.slice('data: '.length) : text)
        if (status === 200) t.match(error, { message: String })
        else t.match(error, { type: 'api_error', code: /^upstream_(error|unreachable)$/ })
        const row = await rowOf(service, key, traceOf(response))
        t.match(row, { status: 'error', cost: '0' })
        t.equal(row.attempts_count, model === 'resets_head' ? 2 : 1, model)
      }
    },
  )

  await t.test('after it: no second attempt, an end without a mark, billed for what was sent', async (t) => {
    const call = clientFor(t, service, key, 1)
    for (const model of ['resets', 'cuts', 'truncates']) {
      const { status, body, isWhole, requestId } = await call(stream(model))
      t.equal(status, 200)
      t.notOk(isWhole, 'the connection is cut')
      t.equal(body.length, MIDDLE_BYTES, 'every byte that came, and none more')
      await endsUnfinished(t, body.toString())
      t.strictSame(await modelsCalled(requestId), [`sim-${model}`])
      await isBilledFor(t, service, key, requestId, body.toString())
    }
  })

  await t.test("an upstream's own error event passes, and still there is no end mark of ours", async (t) => {
    const { status, body, requestId } = await clientFor(t, service, key, 1)(stream('errs_later'))
    t.equal(status, 200)
    const events = eventsIn(body.toString())
    t.match(events.at(-1), /^\{"error":/)
    t.notMatch(body.toString(), /\[DONE\]|"finish_reason":"/)
    t.strictSame(await modelsCalled(requestId), ['sim-errs_later'])
    t.match(await rowOf(service, key, requestId), { status: 'error', attempts_count: 1, output_tokens: 8 })
  })
})

async function endsUnfinished(t: Test, text: string): Promise<void> {
  t.notMatch(text, /\[DONE\]/)
  t.notMatch(text, /"finish_reason":"/)
  t.notMatch(text, /"error"/)
  t.equal(text.split('"role":"assistant"').length, 2, 'one head of a stream')
}

async function isBilledFor(
  t: Test,
  service: LentService,
  key: string,
  requestId: string,
  text: string,
): Promise<void> {
  const output = estimatedTokens(textIn(eventsIn(text)))
  t.ok(output > 0)
  const row = await rowOf(service, key, requestId)
  t.match(row, { status: 'error', error_code: 'upstream_error', attempts_count: 1 })
  t.match(row, { input_tokens: PROMPT_TOKENS, output_tokens: output })
  t.equal(row.cost, String(PROMPT_TOKENS + 2 * output))
}
