/** The usage option is left out only where the upstream refuses it, and nothing that a customer sends is the reason. */
import t from 'tap'
import { REFUSAL_KEPT_MS, UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import { event, type ForwardOptions, MODEL, RunningCall, type ScriptedUpstream } from './forward-support.ts'

const asks = (attempt: ScriptedUpstream): unknown =>
  JSON.parse(attempt.request.body.toString()).stream_options ?? null

const openAi = (message: string, param?: string) => ({
  error: { message, type: 'invalid_request_error', param },
})
const fastApi = (...path: string[]) => ({
  detail: [{ type: 'extra_forbidden', loc: ['body', ...path], msg: 'Extra inputs are not permitted' }],
})
const UNRECOGNIZED = openAi('Unrecognized request argument supplied: stream_options')

t.test('an upstream that refuses the option is called without it, and that is remembered', async (t) => {
  const bodies: [what: string, body: object, status?: number][] = [
    ['unrecognized argument', UNRECOGNIZED],
    ['unknown parameter', openAi("Unknown parameter: 'stream_options'.", 'stream_options')],
    ['any words, with the parameter named', openAi('Bad request.', 'stream_options')],
    ['not supported', openAi('stream_options is not supported by this model.')],
    ['quoted at the beginning', openAi('"stream_options": extra fields not permitted')],
    ['JSON Schema', openAi("Additional properties are not allowed ('stream_options' was unexpected)")],
    ['FastAPI', fastApi('stream_options'), 422],
    ['FastAPI, one field deeper', fastApi('stream_options', 'include_usage'), 422],
    ['FastAPI inside a message', { object: 'error', message: fastApi('stream_options') }, 422],
    ['FastAPI inside an error', { error: fastApi('stream_options') }, 400],
  ]
  for (const [what, body, status = 400] of bodies) {
    const usageOptionRefusals = new UsageOptionRefusals()
    const options: ForwardOptions = { usageOptionRefusals, retries: 0 }
    const first = new RunningCall(options)
    t.strictSame(asks(first.attempt), { include_usage: true })
    first.attempt.answer(body, status)
    t.equal(first.attempts.length, 2, what)
    t.equal(asks(first.attempt), null)
    t.equal(usageOptionRefusals.count(), 0, 'the retry has to prove it')
    first.attempt.succeed()
    t.match(first.settlement, { status: 'success', attempts_count: 2 })
    t.equal(usageOptionRefusals.count(), 1)
    t.equal(asks(new RunningCall(options).attempt), null)
  }
})

t.test('an error that only mentions the option changes nothing', async (t) => {
  const bodies: [what: string, body: object][] = [
    ['a quoted link', openAi('Failed to download https://images.example/stream_options.png.')],
    ['a quoted page', openAi('The link answered: Unrecognized request argument supplied: stream_options')],
    ['another parameter', openAi('Unknown parameter: stream_options', 'messages[0].stream_options')],
    ['FastAPI, a field of a message', fastApi('messages', '0', 'stream_options')],
    [
      'FastAPI, two problems',
      { detail: [...fastApi('stream_options').detail, ...fastApi('messages').detail] },
    ],
    ['a longer name', openAi('Unknown parameter: stream_options_v2')],
  ]
  for (const [what, body] of bodies) {
    const usageOptionRefusals = new UsageOptionRefusals()
    const call = new RunningCall({ usageOptionRefusals })
    call.attempt.answer(body, 400)
    t.equal(call.attempts.length, 1, what)
    t.match(call.error, { status: 400 })
    t.equal(usageOptionRefusals.count(), 0)
  }
})

t.test("an error whose words may be the client's changes nothing", async (t) => {
  const say = (content: unknown) => ({ messages: [{ role: 'user', content }] })
  const requests: [what: string, request: Readonly<Record<string, unknown>>][] = [
    ['its text', say('Unrecognized request argument supplied: stream_options')],
    ['a link', say([{ type: 'image_url', image_url: { url: 'https://a.example/stream_options' } }])],
    ['other letters of the same word', say('STREAM_OPTIONS, ｓｔｒｅａｍ_options')],
    ['a field of a message', { messages: [{ role: 'user', content: 'hi', stream_options: {} }] }],
    ['options of the stream', { stream_options: { include_usage: true, include_obfuscation: false } }],
    ['a body too large to search', say('x'.repeat(1024 * 1024))],
    ['no stream', { stream: false }],
  ]
  for (const [what, request] of requests)
    for (const body of [UNRECOGNIZED, fastApi('stream_options')]) {
      const usageOptionRefusals = new UsageOptionRefusals()
      const call = new RunningCall({ usageOptionRefusals, request })
      call.attempt.answer(body, 400)
      t.equal(call.attempts.length, 1, what)
      t.equal(usageOptionRefusals.count(), 0)
    }
})

t.test('a retry that is refused as well proves nothing', async (t) => {
  const usageOptionRefusals = new UsageOptionRefusals()
  const call = new RunningCall({ usageOptionRefusals })
  call.attempt.answer(UNRECOGNIZED, 400)
  call.attempt.answer(UNRECOGNIZED, 400)
  t.equal(call.attempts.length, 2)
  t.match(call.error, { status: 400 })
  const erred = new RunningCall({ usageOptionRefusals, retries: 0 })
  erred.attempt.answer(UNRECOGNIZED, 400)
  erred.attempt.head()
  erred.attempt.data(event({ error: { message: 'overloaded' } }))
  t.equal(erred.sent, event({ error: { message: 'overloaded' } }))
  t.equal(usageOptionRefusals.count(), 0)
})

t.test('a refusal is remembered for one channel and model, and for minutes', async (t) => {
  let now = 0
  const usageOptionRefusals = new UsageOptionRefusals(
    () => undefined,
    () => now,
  )
  const first = new RunningCall({ channels: ['old'], usageOptionRefusals })
  first.attempt.answer(UNRECOGNIZED, 400)
  first.attempt.succeed()
  const other = new RunningCall({ channels: ['new'], usageOptionRefusals })
  t.strictSame(asks(other.attempt), { include_usage: true })
  t.equal(asks(new RunningCall({ channels: ['old'], usageOptionRefusals }).attempt), null)
  now = REFUSAL_KEPT_MS
  t.equal(usageOptionRefusals.count(), 0)
  const again = new RunningCall({ channels: ['old'], usageOptionRefusals })
  t.strictSame(asks(again.attempt), { include_usage: true })
})

t.test('a refusal is reported once, with channel and model', async (t) => {
  const learned: string[] = []
  const usageOptionRefusals = new UsageOptionRefusals((route) => learned.push(route.upstreamModel))
  for (let i = 0; i < 2; i++) {
    const call = new RunningCall({ channels: ['old'], usageOptionRefusals })
    if (i === 0) call.attempt.answer(UNRECOGNIZED, 400)
    call.attempt.succeed()
  }
  t.same(learned, ['upstream-name-of-old'])
  t.not(learned[0], MODEL)
})
