/** However upstream, journal and client end a call: one settlement, no reservation left, no second head. */
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import type { StoredReply } from '../../../pipelines/calls/claim.ts'
import { idempotent } from '../../../pipelines/calls/idempotency.ts'
import { calls } from '../../../pipelines/calls/pipeline.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { forward } from '../../../pipelines/chat/forward/forward.ts'
import { MAX_WHOLE_RESPONSE_BYTES } from '../../../pipelines/chat/forward/stream-answer.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import { Failure } from '../../../schemas/failure.ts'
import { AnswerMemory } from '../../../src/core/limits/answer-memory.ts'
import { MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'
import { WalletView } from '../../../src/core/pricing/wallet.ts'
import { everyRun } from '../../support/every-run.ts'
import { workHere } from '../../support/work-here.ts'
import {
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
  if (!/^(full|head(,data)*)?$/.test(replies.map(({ type }) => type).join(','))) fault('replies out of order')
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
  t.equal(call.settlement.output_tokens, MAX_CONTEXT_TOKENS, 'charged by its bytes up to what a call can use')
})

t.test('an error body without an end is cut off', async (t) => {
  const call = new RunningCall()
  call.attempt.head(500, { 'content-type': 'text/html' })
  for (let i = 0; i < 5; i++) call.attempt.data(Buffer.alloc(20_000, '<p>a</p>'))
  t.match(call.error, { status: 500, message: 'The upstream answered with status 500.' })
  checkOver(call)
})
