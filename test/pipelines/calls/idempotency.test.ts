/**
 * Requests with an Idempotency-Key: what claims a key, what is replayed, and what is stored of an answer. The records are in
 * memory; `calls.test.ts` has them in PostgreSQL.
 */
import { firstValueFrom, isObservable, Observable, of, Subject, toArray } from 'rxjs'
import t, { type Test } from 'tap'
import type { AuthenticatedCall, Caller } from '../../../pipelines/calls/authenticate.ts'
import { Claim, storeAnswer } from '../../../pipelines/calls/claim.ts'
import { decideClaim, idempotent, isRepeated } from '../../../pipelines/calls/idempotency.ts'
import { Answered, CallEnds } from '../../../pipelines/calls/pipeline.ts'
import { Failure } from '../../../schemas/failure.ts'
import { AnswerMemory, FREE_BYTES, MAX_KEPT_ANSWER_BYTES } from '../../../src/core/limits/answer-memory.ts'
import type { DataSink, GatewayRequest, Reply } from '../../../src/http/handler.ts'
import type {
  ClaimOutcome,
  IdempotencyClaim,
  StoredAnswer,
} from '../../../src/postgres/requests/idempotency.ts'
import { workHere } from '../../support/work-here.ts'

const MIB = 1024 * 1024
const CLAIMED: ClaimOutcome = { outcome: 'claimed' }
const HASH = Buffer.from('hash')
const RECORD: IdempotencyClaim = { scope: 'account:acc', key: 'k', requestId: 'req_2', requestHash: HASH }

/** Records that answer as `outcome` says, and note what happens to them. */
function startRecords() {
  const claims: IdempotencyClaim[] = []
  const stored: [answer: StoredAnswer | null, originalRequestId: string | undefined][] = []
  const told: string[] = []
  const state = { outcome: CLAIMED as ClaimOutcome | Promise<ClaimOutcome>, isAway: false }
  const write = async (what: string) => {
    if (state.isAway) throw new Error('away')
    told.push(what)
  }
  const answerMemory = new AnswerMemory()
  const deps = {
    records: {
      async claim(claim: IdempotencyClaim) {
        claims.push(claim)
        if (state.isAway) throw new Error('away')
        return state.outcome
      },
      isAnswered: async (scope: string, key: string) => scope === 'account:acc' && key === 'answered',
      async store(_: IdempotencyClaim, answer: StoredAnswer | null, originalRequestId?: string) {
        await write('stored')
        stored.push([answer, originalRequestId])
      },
      free: () => write('freed'),
    },
    ...{ answerMemory, maxSeconds: () => 180, workOnLongBody: workHere },
    onRecordLost: (error: unknown) => void told.push(`lost: ${(error as Error).message}`),
  }
  /** Returns how much more an answer of the account can take, in MiB. */
  const measureRoom = () => {
    let room = 0
    while (answerMemory.take('acc', MIB)) room += 1
    answerMemory.release('acc', room * MIB)
    return room
  }
  return { deps, claims, stored, told, state, measureRoom }
}

const makeRequest = (key: string | null, more: Partial<GatewayRequest> = {}): GatewayRequest =>
  ({
    ...{ requestId: 'req_2', method: 'POST', path: '/v1/x', query: '', body: Buffer.from('{}') },
    header: () => key ?? '',
    hasHeader: () => key !== null,
    ...more,
  }) as unknown as GatewayRequest

const makeCall = (request: GatewayRequest, more: Partial<AuthenticatedCall> = {}): AuthenticatedCall => ({
  ...{ request, ends: new CallEnds(), known: { account: { id: 'acc' } } as AuthenticatedCall['known'] },
  ...more,
})

type Deps = ReturnType<typeof startRecords>['deps']

/** Returns the call or the answer of the stage. */
async function run(deps: Deps, call: AuthenticatedCall): Promise<AuthenticatedCall | Answered> {
  const next = idempotent(deps)(call)
  return isObservable(next) ? firstValueFrom(next) : next
}

t.test('a request without a key passes unchanged', async (t) => {
  const { deps, claims } = startRecords()
  const call = makeCall(makeRequest(null))
  t.equal(await run(deps, call), call)
  t.same(claims, [])
})

t.test('a key is 1 to 200 printable characters', async (t) => {
  const { deps } = startRecords()
  for (const key of ['', 'a b', 'ä', 'x'.repeat(201)])
    t.throws(() => idempotent(deps)(makeCall(makeRequest(key))), {
      ...{ code: 'invalid_idempotency_key', message: /1 to 200/ },
    })
  t.ok(((await run(deps, makeCall(makeRequest('x'.repeat(200))))) as AuthenticatedCall).claim)
})

t.test('a key belongs to one request of its account', async (t) => {
  const { deps, claims } = startRecords()
  const readHash = async (request: Partial<GatewayRequest>, more: Partial<AuthenticatedCall> = {}) => {
    await run(deps, makeCall(makeRequest('k', request), more))
    return claims.at(-1)!.requestHash.toString('hex')
  }
  const usual = await readHash({})
  t.match(claims, [{ scope: 'account:acc', key: 'k', requestId: 'req_2', maxSeconds: 180 }])
  t.equal(await readHash({ requestId: 'req_3', body: Buffer.from('{ }') }), usual)
  t.equal(await readHash({ query: 'key=sk-other' }), usual, 'any key of the account may repeat the request')
  const meant = await readHash({ body: Buffer.from('a form') }, { meaning: { b: 1 } })
  t.equal(await readHash({ body: Buffer.from('the same form') }, { meaning: { b: 1 } }), meant)
  const intent = { path: '/v1/y', body: Buffer.from('{"a":1}') }
  const long = Buffer.from(JSON.stringify({ a: 'x'.repeat(100_000) }))
  const others = [
    await readHash({ method: 'PUT' }),
    await readHash({ path: '/v1/z' }),
    await readHash({ query: 'a=1' }),
    await readHash({ body: Buffer.from('{"a":1}') }),
    await readHash({}, { intent }),
    await readHash({ body: long }),
    await readHash({ path: '/v1/z' }, { meaning: { b: 1 } }),
    await readHash({}, { meaning: { b: 2 } }),
  ]
  t.equal(new Set([usual, meant, ...others]).size, 2 + others.length)
  t.equal(
    await readHash({ path: intent.path, body: intent.body }),
    others[4],
    'by the request as the client sent it',
  )
})

t.test('a key that is taken', async (t) => {
  const known = { requestHash: HASH, requestId: 'req_1' }
  const stored = {
    outcome: 'stored',
    ...known,
    status: 201,
    headers: [['a', 'b']],
    body: Buffer.from('x'),
  } as const
  t.equal(decideClaim(RECORD, CLAIMED), null)
  t.throws(() => decideClaim({ ...RECORD, requestHash: Buffer.from('else') }, stored), {
    ...{ code: 'idempotency_key_reuse', message: /different request/ },
  })
  t.throws(() => decideClaim(RECORD, { outcome: 'running', ...known }), { code: 'idempotency_in_flight' })
  t.throws(() => decideClaim(RECORD, { outcome: 'too_large', ...known }), {
    ...{ code: 'idempotency_response_not_cached', message: /billed/ },
  })
  t.strictSame(decideClaim(RECORD, stored), {
    ...{ type: 'full', status: 201, body: stored.body, requestId: 'req_1' },
    headers: [
      ['a', 'b'],
      ['idempotency-replayed', 'true'],
    ],
  })
})

t.test('without its record a call does not run', async (t) => {
  const { deps, state } = startRecords()
  state.isAway = true
  await t.rejects(run(deps, makeCall(makeRequest('k'))), {
    ...{ code: 'service_unavailable', internal: 'idempotency records: away' },
  })
})

t.test('a claim for a client that has left is freed', async (t) => {
  const { deps, state, told } = startRecords()
  const outcome = Promise.withResolvers<ClaimOutcome>()
  for (const isAway of [false, true]) {
    state.outcome = outcome.promise
    const claiming = idempotent(deps)(makeCall(makeRequest('k'))) as Observable<unknown>
    claiming.subscribe().unsubscribe()
    outcome.resolve(CLAIMED)
    await outcome.promise
    state.isAway = isAway
    await new Promise(setImmediate)
  }
  t.same(told, ['freed', 'lost: away'])
  state.isAway = false
  state.outcome = { outcome: 'running', requestHash: HASH, requestId: 'req_1' }
  const claiming = idempotent(deps)(makeCall(makeRequest('k'))) as Observable<unknown>
  claiming.subscribe({ error: t.fail }).unsubscribe()
  await new Promise(setImmediate)
  t.equal(told.length, 2, 'the claim of another request stays')
})

t.test('a stored answer', async (t) => {
  const startReplay = async (bytes: number) => {
    const records = startRecords()
    const call = makeCall(makeRequest('k'))
    await run(records.deps, call)
    const { requestHash } = records.claims[0]!
    const body = Buffer.alloc(bytes, 'x')
    records.state.outcome = {
      ...{ outcome: 'stored', requestHash, requestId: 'req_1', status: 200, headers: [], body },
    }
    return { ...records, body }
  }

  t.test(
    'is replayed in one piece, or in several if it is long, and holds its memory until the end',
    async (t) => {
      for (const bytes of [FREE_BYTES, FREE_BYTES + MIB]) {
        const { body, deps, measureRoom } = await startReplay(bytes)
        const ends = new CallEnds()
        const answered = (await run(deps, makeCall(makeRequest('k'), { ends }))) as Answered
        t.ok(answered instanceof Answered)
        t.equal(measureRoom(), bytes === FREE_BYTES ? 32 : 31)
        const [head, ...pieces] = await firstValueFrom(answered.replies.pipe(toArray()))
        if (bytes === FREE_BYTES) t.match(head, { type: 'full', body, requestId: 'req_1' })
        else {
          t.match(head, { type: 'head', status: 200, requestId: 'req_1', length: bytes })
          t.ok(
            Buffer.concat(
              pieces.map((piece) => (piece as Extract<Reply, { type: 'data' }>).bytes as Buffer),
            ).equals(body),
          )
        }
        ends.unsubscribe()
        t.equal(measureRoom(), 32)
      }
    },
  )

  t.test('is refused while many long answers are being sent', async (t) => {
    const { deps } = await startReplay(2 * MIB)
    deps.answerMemory.take('acc', 32 * MIB)
    await t.rejects(run(deps, makeCall(makeRequest('k'))), {
      ...{ code: 'service_unavailable', headers: [['retry-after', '1']], message: /Try again/ },
    })
  })
})

t.test('a repeated request has an answer, or a task', async (t) => {
  const { deps } = startRecords()
  const makeCaller = (key: string | null) => makeCall(makeRequest(key)) as Caller
  for (const [key, is] of [
    ['answered', true],
    ['new', false],
    [null, false],
  ] as const)
    t.equal(await isRepeated(deps.records, makeCaller(key)), is)
})

t.test('an answer', async (t) => {
  const head = (status = 200, more: object = {}): Reply =>
    ({ type: 'head', status, headers: [['a', 'b']], flow: null, ...more }) as Reply
  const data = (bytes: string | Buffer): Reply => ({ type: 'data', bytes })
  const full = (status: number, body = 'whole'): Reply => ({
    type: 'full',
    status,
    headers: [['a', 'b']],
    body,
  })

  function startClaim(t: Test, { isReplayable = true } = {}) {
    const records = startRecords()
    const claim = new Claim(records.deps, RECORD, { accountId: 'acc', isReplayable })
    const answer = async (...replies: Reply[]) => {
      const got = await firstValueFrom(of(...replies).pipe(storeAnswer(claim, 'req_1'), toArray()))
      t.same(got, replies, 'the client gets the same replies')
      return records.stored[0]
    }
    return { ...records, claim, answer }
  }

  t.test('is stored whole with its status and headers, under the request that did the work', async (t) => {
    const whole = { status: 200, headers: [['a', 'b']], body: Buffer.from('one two') }
    t.strictSame(await startClaim(t).answer(head(), data('one '), data('two')), [whole, 'req_1'])
    t.strictSame(await startClaim(t).answer(full(299)), [
      { ...whole, status: 299, body: Buffer.from('whole') },
      'req_1',
    ])
  })

  t.test('is stored only with a 2xx status; any other frees the key', async (t) => {
    for (const status of [199, 300, 400]) {
      const { answer, told } = startClaim(t)
      t.equal(await answer(full(status)), undefined)
      t.same(told, ['freed'], String(status))
    }
  })

  t.test('reaches its client after the record is written', async (t) => {
    const { claim, told } = startClaim(t)
    const got: string[] = []
    const replies = new Subject<Reply>()
    replies.pipe(storeAnswer(claim)).subscribe({
      next: ({ type }) => got.push(type),
      complete: () => got.push(`complete, ${told}`),
    })
    replies.next(full(200))
    replies.complete()
    t.same(got, [])
    await new Promise(setImmediate)
    t.same(got, ['full', 'complete, stored'])
  })

  t.test('that breaks off frees the key, unless it is charged', async (t) => {
    for (const isCharged of [false, true]) {
      const { claim, told, stored } = startClaim(t)
      const error = new Failure('upstream_error', 'It broke off.')
      const replies = new Observable<Reply>((subscriber) => {
        subscriber.next(head())
        subscriber.next(data('half'))
        if (isCharged) claim.charge(data(' and the end'))
        subscriber.error(error)
      })
      await t.rejects(firstValueFrom(replies.pipe(storeAnswer(claim), toArray())), error)
      t.same(told, [isCharged ? 'stored' : 'freed'])
      if (isCharged) t.equal(stored[0]![0]?.body.toString(), 'half and the end')
    }
    const refused = startClaim(t)
    refused.claim.charge(full(500))
    await refused.claim.release()
    t.same(refused.told, ['freed'], 'an error is never stored')
  })

  t.test('that its client took as complete is stored as it is', async (t) => {
    const { claim, measureRoom, stored, told } = startClaim(t)
    claim.gather(head())
    claim.gather(data('as far as it came'))
    await claim.keep()
    claim.gather(data(Buffer.alloc(2 * MIB)))
    t.equal(measureRoom(), 32, 'later data takes no memory')
    await Promise.all([claim.release(), claim.store()])
    t.same(told, ['stored'], 'only the first end counts')
    t.match(stored, [[{ body: Buffer.from('as far as it came') }, undefined]])
  })

  t.test('that is charged and then collected again is stored once', async (t) => {
    const { claim, stored, measureRoom } = startClaim(t)
    const body = 'x'.repeat(2 * MIB)
    claim.charge(full(200, body))
    t.equal(measureRoom(), 31)
    claim.gather(full(200, body))
    t.equal(measureRoom(), 31)
    await claim.store()
    t.equal(stored[0]![0]?.body.length, body.length)
    t.equal(measureRoom(), 32)
  })

  t.test('is collected even if its data bypasses the events', async (t) => {
    const { claim, stored } = startClaim(t)
    const sent: unknown[] = []
    let sink: DataSink | undefined
    const direct = (given: DataSink) => {
      sink = given
    }
    const passed = claim.gather(head(200, { direct })) as Extract<Reply, { type: 'head' }>
    passed.direct!({ data: (bytes) => void sent.push(bytes) } as DataSink)
    sink!.data(Buffer.from('past the events'))
    t.same(sent, [Buffer.from('past the events')])
    await claim.store()
    t.equal(stored[0]![0]?.body.toString(), 'past the events')
    t.notOk('direct' in startClaim(t).claim.gather(head()))
  })

  t.test('that is too large leaves a record without a body and takes no memory', async (t) => {
    const half = Buffer.alloc(MAX_KEPT_ANSWER_BYTES / 2)
    const kept = startClaim(t)
    t.equal((await kept.answer(head(), data(half), data(half)))?.[0]?.body.length, 2 * half.length)
    const large = startClaim(t)
    t.strictSame(await large.answer(head(), data(half), data(half), data('x'), data('y')), [null, 'req_1'])
    t.equal(large.measureRoom(), 32)
    const crowded = startClaim(t)
    crowded.deps.answerMemory.take('acc', 31 * MIB)
    crowded.claim.gather(head())
    for (const bytes of [Buffer.alloc(2 * MIB), half]) crowded.claim.gather(data(bytes))
    t.equal(crowded.measureRoom(), 1)
    crowded.deps.answerMemory.release('acc', 31 * MIB)
    crowded.claim.gather(data('the end'))
    await crowded.claim.store()
    t.same(crowded.stored, [[null, undefined]], 'an answer with a gap is not stored either')
    const secret = startClaim(t, { isReplayable: false })
    t.strictSame(
      await secret.answer(full(200)),
      [null, 'req_1'],
      'an answer that must not be kept leaves only its record',
    )
    const replaced = startClaim(t)
    replaced.claim.charge(full(200, 'x'.repeat(MAX_KEPT_ANSWER_BYTES + 1)))
    t.equal((await replaced.answer(full(200)))?.[0]?.body.toString(), 'whole')
  })

  t.test('reaches its client even if its record cannot be written', async (t) => {
    for (const reply of [full(200, 'x'.repeat(2 * MIB)), full(500)]) {
      const { answer, state, told, measureRoom } = startClaim(t)
      state.isAway = true
      await answer(reply)
      t.same(told, ['lost: away'])
      t.equal(measureRoom(), 32)
    }
  })

  t.test('is kept unless the call says otherwise; if the call ends earlier, the key is freed', async (t) => {
    for (const isReplayable of [undefined, false]) {
      const { deps, stored, told } = startRecords()
      const claimFor = async (ends: CallEnds) => {
        const more = isReplayable === undefined ? {} : { isReplayable }
        const call = makeCall(makeRequest('k'), { ends, ...more })
        const { claim, request } = (await run(deps, call)) as AuthenticatedCall
        t.equal(request, call.request)
        claim!.gather(full(200))
        return claim!
      }
      await (await claimFor(new CallEnds())).store()
      t.equal(stored[0]![0]?.body.toString(), isReplayable === undefined ? 'whole' : undefined)
      const ends = new CallEnds()
      await claimFor(ends)
      ends.unsubscribe()
      await new Promise(setImmediate)
      t.same(told, ['stored', 'freed'])
    }
  })
})
