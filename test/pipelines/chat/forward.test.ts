/** A forwarded call settles exactly once, however it ends. */
import { setImmediate, setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import type { StoredReply } from '../../../pipelines/calls/claim.ts'
import { idempotent } from '../../../pipelines/calls/idempotency.ts'
import { CallEnds, calls } from '../../../pipelines/calls/pipeline.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { forward } from '../../../pipelines/chat/forward/forward.ts'
import { MAX_WHOLE_RESPONSE_BYTES } from '../../../pipelines/chat/forward/stream-answer.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import { DEFAULT_CHAT_SECONDS } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { AnswerMemory } from '../../../src/core/limits/answer-memory.ts'
import { MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'
import { OutputRates, UNMEASURED_TOKENS_PER_SECOND } from '../../../src/core/routing/output-rates.ts'
import { WalletView } from '../../../src/credentials/wallet.ts'
import { everyRun } from '../../support/every-run.ts'
import { workHere } from '../../support/work-here.ts'
import {
  clientCall,
  DONE,
  ESTIMATE,
  event,
  FINISH,
  type ForwardOptions,
  RunningCall,
  type ScriptedUpstream,
  usageChunk,
  word,
} from './forward-support.ts'

t.test('an abandoned call is read on', async (t) => {
  // * `after_client_leaves: read_on`: a call whose client leaves is read to its end, and costs what reading it would have.
  // Where its upstream does not say, hidden reasoning is estimated by time. Until then it keeps its slot and its hold.
  const REASONING = {
    after_client_leaves: 'read_on',
    capabilities: { reasoning: true },
    max_output_tokens: 100_000,
  }
  const REPORTED = { status: 'interrupted', input_tokens: 900, output_tokens: 4000, usage_source: 'upstream' }
  /** Tokens for each millisecond, of a model that was measured. */
  const PER_MS = 2

  const measured = (): OutputRates => {
    const rates = new OutputRates()
    rates.measure('model-a', PER_MS * 1000, 1000)
    return rates
  }

  const running = (options: ForwardOptions = {}) =>
    new RunningCall({
      modelFields: REASONING,
      lateUsage: new LateUsage(),
      outputRates: measured(),
      ...options,
    })

  const thinking = event({
    type: 'message_start',
    message: { id: 'msg_1', model: 'm', usage: { input_tokens: 900, output_tokens: 1 } },
  })
  const WAYS: Readonly<Record<string, { options: ForwardOptions; begun: string; rest: readonly string[] }>> =
    {
      'chat-completions': {
        options: {},
        begun: event({ choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }),
        rest: [word('hello'), FINISH, usageChunk(900, 4000), DONE],
      },
      messages: {
        options: { client: clientCall('messages', 'hi', true), upstream: 'messages' },
        begun: thinking,
        rest: [
          event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
          event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } }),
          event({ type: 'content_block_stop', index: 0 }),
          event({
            type: 'message_delta',
            delta: { stop_reason: 'end_turn' },
            usage: { output_tokens: 4000 },
          }),
          event({ type: 'message_stop' }),
        ],
      },
      responses: {
        options: { client: clientCall('responses', 'hi', true), upstream: 'responses' },
        begun: event({ type: 'response.created', response: { id: 'resp_1', usage: null } }),
        rest: [
          event({ type: 'response.output_text.delta', delta: 'hello' }),
          event({
            type: 'response.completed',
            response: { usage: { input_tokens: 900, output_tokens: 4000 } },
          }),
        ],
      },
      'generate-content': {
        options: { client: clientCall('generate-content', 'hi', true), upstream: 'generate-content' },
        begun: event({ candidates: [{ content: { parts: [{ text: 'a' }] } }] }),
        rest: [
          event({
            candidates: [{ content: { parts: [{ text: 'hello' }] }, finishReason: 'STOP' }],
            usageMetadata: { promptTokenCount: 900, candidatesTokenCount: 4000, totalTokenCount: 4900 },
          }),
        ],
      },
    }

  for (const [name, { options, begun, rest }] of Object.entries(WAYS))
    t.test(`${name}, left at its beginning`, async (t) => {
      const call = running(options)
      call.attempt.head()
      call.attempt.data(begun)
      const { sent } = call
      call.abort()
      t.equal(call.settlements.length, 0, 'it is not settled')
      t.equal(call.attempt.isLeft, false, 'its upstream goes on')
      t.equal(call.view.inFlight, ESTIMATE, 'what it may cost stays reserved')
      for (const text of rest) call.attempt.data(text)
      call.attempt.end()
      t.match(call.settlement, REPORTED)
      t.equal(call.sent, sent, 'nothing more goes out')
      t.equal(call.view.inFlight, 0n)

      const early = running(options)
      early.abort()
      early.attempt.head()
      for (const text of [begun, ...rest]) early.attempt.data(text)
      early.attempt.end()
      t.match(early.settlement, REPORTED, 'and so is one that was left before any answer')

      const aborted = running({ ...options, modelFields: { ...REASONING, after_client_leaves: 'abort' } })
      aborted.attempt.head()
      aborted.attempt.data(begun)
      aborted.abort()
      t.equal(aborted.attempt.isLeft, true, 'where the setting is abort it ends at once')
      t.ok(aborted.settlement.output_tokens <= 1)
    })

  t.test('a whole call is read on as well', async (t) => {
    const call = running({ request: { stream: false } })
    call.abort()
    t.equal(call.attempt.isLeft, false)
    call.attempt.answer({
      choices: [{ index: 0, message: { content: 'hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 900, completion_tokens: 4000 },
    })
    t.match(call.settlement, REPORTED)
  })

  t.test('without a report, what is hidden is estimated by time and the measured rate', async (t) => {
    for (const stream of [true, false]) {
      const lateUsage = new LateUsage({ readOnMs: 60 })
      const begun = performance.now()
      const call = running({ lateUsage, request: { stream } })
      call.attempt.head(200, stream ? {} : { 'content-type': 'application/json' })
      if (stream) call.attempt.data(word('hello'))
      call.abort()
      while (call.settlements.length === 0) await setTimeout(5)
      const most = PER_MS * (performance.now() - begun)
      const { output_tokens, reasoning_tokens, ...row } = call.settlement
      t.match(row, { status: 'interrupted', usage_source: 'estimate' })
      t.ok(output_tokens >= PER_MS * 60 && output_tokens <= most + 1, `${output_tokens} of ${most}`)
      t.equal(reasoning_tokens, output_tokens - (stream ? 2 : 0), 'what was said is no reasoning')
      t.equal(call.attempt.isLeft, true)
    }
  })

  t.test("the call's own limit bounds it", async (t) => {
    const lateUsage = new LateUsage({ readOnMs: 60 })
    const hidden = running({ lateUsage, request: { max_tokens: 7 } })
    hidden.attempt.head()
    hidden.abort()
    while (hidden.settlements.length === 0) await setTimeout(5)
    t.equal(hidden.settlement.output_tokens, 7)

    const said = running({ request: { max_tokens: 7 } })
    said.attempt.head()
    said.abort()
    for (let i = 0; i < 7; i++) said.attempt.data(word('four'))
    t.equal(said.attempt.isLeft, true, 'no more is read than it may say')
    t.match(said.settlement, { output_tokens: 7 })
  })

  t.test(
    'a model that hides nothing costs what it said, and one that was not measured a usual rate',
    async (t) => {
      const plain = running({
        lateUsage: new LateUsage({ readOnMs: 1 }),
        modelFields: { after_client_leaves: 'read_on' },
      })
      plain.attempt.head()
      plain.attempt.data(word('hello'))
      plain.abort()
      while (plain.settlements.length === 0) await setTimeout(1)
      t.match(plain.settlement, { output_tokens: 2, reasoning_tokens: 0 })
      t.equal(new OutputRates().tokensIn('model-a', 2000), 2 * UNMEASURED_TOKENS_PER_SECOND)
    },
  )

  t.test(
    'an abandoned call that its upstream refuses costs nothing, and is not tried elsewhere',
    async (t) => {
      const call = running({ channels: ['first', 'second'] })
      call.abort()
      call.attempt.refuse(500)
      t.equal(call.attempts.length, 1)
      t.match(call.settlement, { status: 'error', cost: '0' })
    },
  )

  t.test('a process that ends settles it by what is known', async (t) => {
    const lateUsage = new LateUsage()
    const call = running({ lateUsage })
    call.attempt.head()
    call.attempt.data(word('hello'))
    call.abort()
    lateUsage.close()
    t.match(call.settlement, { status: 'interrupted', usage_source: 'estimate' })
  })

  t.test('what a call holds is given back once it is settled, not when its client leaves', async (t) => {
    const ends = new CallEnds()
    let runs = 0
    ends.add(() => runs++)
    ends.hold()
    ends.unsubscribe()
    t.equal(runs, 0)
    ends.add(() => runs++)
    ends.release()
    t.equal(runs, 2)
    ends.add(() => runs++)
    t.equal(runs, 3, 'at once where it is over')
    ends.unsubscribe()
    t.equal(runs, 3)
  })
})

t.test('forward settles once whatever happens', async (t) => {
  // However upstream, journal and client end a call: one settlement, no reservation left, no second head.
  const SEED = 9
  const RUNS = 1000
  const WHOLE = JSON.stringify({
    choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  })

  /** What holds of every call that is over. */
  function checkOver(call: RunningCall): void {
    const { settlements, attempts, replies, view, inFlight } = call
    const fault = (what: string): never => {
      throw new Error(`${what}; replies ${replies.map(({ type }) => type)}, ${JSON.stringify(settlements)}`)
    }
    if (settlements.length !== 1) fault('not settled once')
    if (view.inFlight !== 0n) fault('a reservation is left')
    if (view.unbooked !== BigInt(settlements[0]!.cost)) fault('the view does not know the cost')
    if (inFlight !== 0) fault('still counted as in flight')
    if (attempts.some(({ isLeft }) => !isLeft)) fault('an upstream call goes on')
    if (settlements[0]!.attempts_count !== attempts.length) fault('attempts miscounted')
    if (!/^(full|head(,data)*)?$/.test(replies.map(({ type }) => type).join(',')))
      fault('replies out of order')
    if (call.error !== null && settlements[0]!.status === 'success') fault('a success that ended in an error')
  }

  const CAP = { accountId: 'key_a', balance: 10n * ESTIMATE, held: 0n, used: 0n, version: 1n }

  /** The key's cap gives back the estimate and knows the cost, as the wallet does, and so does PostgreSQL. */
  function checkCap(cap: WalletView | null, { settlement, leftReserved }: RunningCall): void {
    const cost = BigInt(settlement.cost)
    const told = cap === null ? [] : [cost]
    if (leftReserved.join() !== told.join()) throw new Error(`told to stay reserved: ${leftReserved}`)
    if (cap !== null && (cap.inFlight !== 0n || cap.unbooked !== cost))
      throw new Error(`of the cap ${cap.inFlight} are in flight and ${cap.unbooked} unbooked, of ${cost}`)
  }

  type Step = readonly [name: string, run: (attempt: ScriptedUpstream, call: RunningCall) => void]
  const STEPS: readonly Step[] = [
    ['head', (attempt) => attempt.head()],
    ['json head', (attempt) => attempt.head(200, { 'content-type': 'application/json' })],
    ['compressed head', (attempt) => attempt.head(200, { 'content-encoding': 'gzip' })],
    ['500', (attempt) => attempt.head(500)],
    ['400', (attempt) => attempt.head(400)],
    ['word', (attempt) => attempt.data(word('hello'))],
    ['half', (attempt) => attempt.data('data: {"choices":[{"delta":{"con')],
    ['comment', (attempt) => attempt.data(': waiting\n\n')],
    ['error event', (attempt) => attempt.data(event({ error: { message: 'overloaded' } }))],
    ['no option', (attempt) => attempt.data('{"error":{"message":"stream_options is not known"}}')],
    ['usage', (attempt) => attempt.data(usageChunk(3, 4))],
    ['finish', (attempt) => attempt.data(FINISH)],
    ['done', (attempt) => attempt.data(DONE)],
    ['end', (attempt) => attempt.end()],
    ['reset', (attempt) => attempt.fail('reset')],
    ['stale', (attempt) => attempt.fail('reset', { reused: true })],
    ['deadline', (attempt) => attempt.fail('deadline')],
    ['abort', (_, call) => call.abort()],
  ]

  t.test('any order of what an upstream can do, with the client leaving at any point', async (t) => {
    const script = fc.record({
      steps: fc.array(fc.constantFrom(...STEPS), { maxLength: 12 }),
      channels: fc.constantFrom(['only'], ['first', 'second'], ['first', 'second', 'third', 'fourth']),
      retries: fc.constantFrom(0, 1, 2),
      stream: fc.boolean(),
      wantsUsage: fc.boolean(),
      leavesAtReply: fc.constantFrom(-1, -1, 0, 1, 2),
      isCapped: fc.boolean(),
      isReadOn: fc.boolean(),
      modelFields: fc.constantFrom({}, { after_client_leaves: 'read_on', capabilities: { reasoning: true } }),
    })
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [script],
      ({ steps, stream, wantsUsage, leavesAtReply, isCapped, isReadOn, ...setting }) => {
        const cap = isCapped ? new WalletView(CAP) : null
        const lateUsage = new LateUsage()
        if (!isReadOn) lateUsage.close()
        const call = new RunningCall({
          ...setting,
          lateUsage,
          ...(cap !== null && { cap }),
          request: { stream, ...(wantsUsage ? { stream_options: { include_usage: true } } : {}) },
          onReply: (_, running) => running.replies.length === leavesAtReply && running.abort(),
        })
        for (const [, run] of steps) run(call.attempt, call)
        call.abort()
        lateUsage.close()
        checkOver(call)
        const { status, cost } = call.settlement
        checkCap(cap, call)
        // Of a call whose time ran out behind the head the upstream has read the prompt.
        if (call.error !== null && call.sent === '' && cost !== '0' && status !== 'interrupted')
          throw new Error('a call without a byte of answer is charged')
        const hasWhole = call.replies.some(({ type }) => type === 'full')
        if (status === 'success' && !call.isComplete && !hasWhole && !call.sent.endsWith(DONE))
          throw new Error('a success that never ended')
      },
    )
  })

  t.test('an answer and the last event of a stream are sent once the journal has their cost', async (t) => {
    for (const stream of [false, true])
      for (const leaves of [false, true]) {
        const waiting: (() => void)[] = []
        const call = new RunningCall({ request: { stream }, onSettle: (written) => waiting.push(written) })
        call.attempt.head(200, stream ? {} : { 'content-type': 'application/json' })
        call.attempt.data(stream ? word('hi') + FINISH + usageChunk(1, 1) + DONE : WHOLE)
        call.attempt.end()
        t.match(call.settlement, { status: 'success', output_tokens: 1 })
        t.equal(call.isComplete, false)
        t.equal(call.replies.length, stream ? 1 : 0)
        if (leaves) call.abort()
        for (const written of waiting) written()
        t.equal(call.isComplete, !leaves)
        t.equal(call.replies.length, leaves ? Number(stream) : 1 + Number(stream))
        t.equal(call.settlements.length, 1)
      }
  })

  /** Runs the call under an Idempotency-Key, and notes what becomes of its record. */
  const withKey =
    (records: (StoredReply | 'freed' | null)[]): NonNullable<ForwardOptions['answer']> =>
    (deps, admitted) => {
      const header = (name: string) => (name === 'idempotency-key' ? 'intent' : '')
      const handler = calls((call) => ({ ...admitted, ...call }))
        .then(
          idempotent<AdmittedCall>({
            records: {
              claim: async () => ({ outcome: 'claimed' }),
              isAnswered: async () => false,
              store: async (_, answer) => void records.push(answer),
              free: async () => void records.push('freed'),
            },
            answerMemory: new AnswerMemory(),
            maxSeconds: () => DEFAULT_CHAT_SECONDS,
            workOnLongBody: workHere,
            onRecordLost: (error) => t.fail(String(error)),
          }),
        )
        .then(forward(deps))
        .toHandler()
      return handler({ ...admitted.request, header, hasHeader: (name) => header(name) !== '' })
    }

  t.test('a charged answer is kept under its Idempotency-Key, also where its client gets none', async (t) => {
    for (const stream of [false, true])
      for (const end of ['left', 'not stored', 'written'] as const) {
        const records: (StoredReply | 'freed' | null)[] = []
        const waiting: ((error?: Error) => void)[] = []
        const onSettle = (written: () => void) => void waiting.push(written)
        const call = new RunningCall({ request: { stream }, onSettle, answer: withKey(records) })
        await setImmediate()
        call.attempt.head(200, stream ? {} : { 'content-type': 'application/json' })
        call.attempt.data(stream ? word('hi') + FINISH + usageChunk(1, 1) + DONE : WHOLE)
        call.attempt.end()
        t.match(call.settlement, { status: 'success' })
        t.same(records, [])
        if (end === 'left') call.abort()
        waiting[0]!(end === 'not stored' ? new Error('no leader') : undefined)
        await setImmediate()
        t.match(call.error, end === 'not stored' ? { status: 503 } : null)
        t.equal(call.isComplete, end === 'written')
        const [kept] = records as [StoredReply]
        t.match(kept, { status: 200, headers: [['content-type', /^(text|application)/]] })
        t.equal(String(kept.body), stream ? word('hi') + FINISH + DONE : WHOLE)
        t.equal(records.length, 1)
      }
    const records: (StoredReply | 'freed' | null)[] = []
    const left = new RunningCall({ answer: withKey(records) })
    await setImmediate()
    left.attempt.head()
    left.attempt.data(word('hi'))
    left.abort()
    t.same(records, ['freed'], 'one that its client has left before its end may be tried again')
  })

  t.test('an upstream that goes on after its attempt is over is not heard', async (t) => {
    const call = new RunningCall({ channels: ['first', 'second'] })
    const first = call.attempt
    first.head()
    first.data(event({ error: { message: 'no' } }))
    t.equal(call.attempts.length, 2)
    first.data(word('late'))
    first.end()
    first.fail('reset')
    const second = call.attempt
    second.stream(word('early') + FINISH + DONE)
    second.data(word('later still'))
    second.end()
    second.fail('reset')
    t.equal(call.sent, word('early') + FINISH + DONE)
    checkOver(call)
    t.match(call.settlement, { status: 'success', channel_id: 'second', attempts_count: 2 })
    t.match(call.settlement.attempts, [
      { seq: 1, error_code: 'upstream_error' },
      { seq: 2, error_code: null },
    ])
  })

  t.test('the client leaves inside the delivery of the first byte', async (t) => {
    const call = new RunningCall({ onReply: (reply, running) => reply.type === 'data' && running.abort() })
    call.attempt.head()
    call.attempt.data(word('twelve chars'))
    checkOver(call)
    t.match(call.settlement, { status: 'interrupted', output_tokens: 3, error_code: null })
  })

  t.test('the client leaves while the connection to the upstream is still being made', async (t) => {
    const call = new RunningCall()
    call.attempt.isSent = false
    call.abort()
    checkOver(call)
    t.match(call.settlement, { status: 'interrupted', cost: '0', usage_source: 'none', attempts_count: 1 })

    const sent = new RunningCall()
    sent.abort()
    t.match(
      sent.settlement,
      { status: 'interrupted', usage_source: 'estimate' },
      'behind that it owes the prompt',
    )
    t.not(sent.settlement.cost, '0')

    const again = new RunningCall({ channels: ['first', 'second'] })
    again.attempt.fail('reset')
    again.attempt.isSent = false
    again.abort()
    t.match(again.settlement, { cost: '0', attempts_count: 2 }, 'an attempt that failed before owes nothing')
  })

  t.test('a journal that cannot be written refuses the call', async (t) => {
    const later: ((error: Error | null) => void)[] = []
    const admit: ForwardOptions['admit'] = (_, written) => {
      later.push(written)
      return { requestId: 'req_test' }
    }
    const refused = new RunningCall({ admit })
    t.equal(refused.attempts.length, 0, 'nothing goes upstream before it is written')
    later[0]!(new Error('disk full'))
    t.match(refused.error, { code: 'service_unavailable', status: 503, internal: 'journal: disk full' })
    t.notMatch(String(refused.error), /disk/)
    t.match(refused.settlement, { status: 'error', cost: '0', attempts_count: 0 })
    checkOver(refused)

    const left = new RunningCall({ admit })
    left.abort()
    later[1]!(null)
    t.equal(left.attempts.length, 0, 'a client that left before is not served')
    checkOver(left)
    t.match(left.settlement, { status: 'interrupted', cost: '0', usage_source: 'none' })
  })

  t.test('a fault of the gateway itself ends the call as one', async (t) => {
    const faulty: readonly ForwardOptions[] = [
      {
        admit: () => {
          throw new Error('bug in admit')
        },
      },
      {
        callUpstream: () => {
          throw new Error('bug in callUpstream')
        },
      },
    ]
    for (const options of faulty) {
      const call = new RunningCall(options)
      t.ok(call.error instanceof Error && !(call.error instanceof Failure), 'shown as internal_error')
      t.equal(call.view.inFlight, 0n)
      t.equal(call.inFlight, 0)
      t.equal(call.settlement.cost, '0')
    }
    const reasonless = new RunningCall()
    reasonless.attempt.failWith(undefined as never)
    t.type(reasonless.error, TypeError)
    t.match(reasonless.settlement, { status: 'error', error_code: 'internal_error', cost: '0' })
    checkOver(reasonless)
    const headless = new RunningCall()
    headless.attempt.data(word('before any head'))
    t.type(headless.error, TypeError)
    t.match(headless.settlement, { status: 'error', error_code: 'internal_error', cost: '0' })
    checkOver(headless)
    const mute = new RunningCall()
    mute.attempt.end()
    t.type(mute.error, TypeError)
    checkOver(mute)
  })

  t.test('an answer in one piece that is too large is given up, and no other asked for it', async (t) => {
    const call = new RunningCall({ channels: ['first', 'second'], request: { stream: false } })
    const piece = Buffer.alloc(8 * 1024 * 1024, 0x20)
    call.attempt.head(200, { 'content-type': 'application/json' })
    for (let sent = 0; sent <= MAX_WHOLE_RESPONSE_BYTES; sent += piece.length) call.attempt.data(piece)
    t.match(call.error, { status: 502, message: /too large/ })
    t.equal(call.attempts.length, 1)
    checkOver(call)
    t.match(call.settlement, { status: 'error', usage_source: 'estimate' })
    t.equal(
      call.settlement.output_tokens,
      MAX_CONTEXT_TOKENS,
      'charged by its bytes up to what a call can use',
    )
  })

  t.test('an error body without an end is cut off', async (t) => {
    const call = new RunningCall()
    call.attempt.head(500, { 'content-type': 'text/html' })
    for (let i = 0; i < 5; i++) call.attempt.data(Buffer.alloc(20_000, '<p>a</p>'))
    t.match(call.error, { status: 500, message: 'The upstream answered with status 500.' })
    checkOver(call)
  })
})
