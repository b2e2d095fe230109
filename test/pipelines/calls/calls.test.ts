/** What all calls share: refusals, answers that are kept, and upstreams and customers that harm nobody else. */

import { deepStrictEqual } from 'node:assert'
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { firstValueFrom, Observable, of, throwError } from 'rxjs'
import t from 'tap'
import type { AuthenticatedCall } from '../../../pipelines/calls/authenticate.ts'
import { makeErrorReply } from '../../../pipelines/calls/errors.ts'
import { idempotent } from '../../../pipelines/calls/idempotency.ts'
import { Answered, answer, type Call, calls } from '../../../pipelines/calls/pipeline.ts'
import { UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { parseCredits } from '../../../schemas/money.ts'
import { AnswerMemory } from '../../../src/core/limits/answer-memory.ts'
import { MAX_REPORTED_TOKENS } from '../../../src/core/pricing/usage.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { RetryBudget } from '../../../src/core/routing/retry-budget.ts'
import { UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import type { GatewayRequest, Reply } from '../../../src/http/handler.ts'
import type { IdempotencyScope } from '../../../src/postgres/requests/idempotency.ts'
import { WORDS } from '../../end-to-end/money/upstream-answers.ts'
import { serve } from '../../src/http/support.ts'
import { newAccount, startDatabase } from '../../src/postgres/support.ts'
import { everyRun } from '../../support/every-run.ts'
import { workHere } from '../../support/work-here.ts'
import { clientCall, RunningCall, type ScriptedUpstream } from '../chat/forward-support.ts'

t.test('work found again answers for its request', async (t) => {
  // Work that an earlier request with the same Idempotency-Key has begun is answered under the id that its row has.
  const HEADERS = [['x-ratelimit-limit', '5']] as const
  const request = { requestId: 'req_second', path: '/v1/images/generations' } as GatewayRequest

  const answered = (replies: Observable<Reply>, originalRequestId?: string): Promise<Reply> => {
    const more = originalRequestId === undefined ? {} : { originalRequestId }
    const handle = calls<never>(
      (call) => new Answered({ ...call, replyHeaders: HEADERS, ...more }, replies),
    ).toHandler()
    return firstValueFrom(handle(request)).catch(
      makeErrorReply(request.path, request.requestId, { onUnforeseen: t.error, onInternal: () => undefined }),
    )
  }

  t.test('answers, heads and errors have the id of the first request', async (t) => {
    const full = { type: 'full', status: 200, headers: [], body: '{}' } as const
    const head = { type: 'head', status: 200, headers: [], flow: null } as const
    t.match(await answered(of(full), 'req_first'), { ...full, requestId: 'req_first', headers: HEADERS })
    t.match(await answered(of(head), 'req_first'), { ...head, requestId: 'req_first', headers: HEADERS })
    const failure = throwError(() => new Failure('upstream_error', 'It was not made.'))
    const failed = await answered(failure, 'req_first')
    t.match(failed, { status: 502, requestId: 'req_first', headers: [['content-type'], HEADERS[0]] })
    const limited = await answered(
      throwError(() => new UpstreamRefusal(429, 'Too many.', [])),
      'req_first',
    )
    const own = { status: 429, requestId: 'req_first', headers: { length: 1 } }
    t.match(limited, own, "an upstream's own limit has no headers of ours")
  })

  t.test('everything else has its own', async (t) => {
    const full = { type: 'full', status: 200, headers: [], body: '{}' } as const
    t.notOk('requestId' in (await answered(of(full))))
    t.notOk('requestId' in (await answered(throwError(() => new Failure('upstream_error', 'No.')))))
  })
})

t.test('long answers are kept', async (t) => {
  // Answers up to 8 MiB are kept and replayed byte for byte, within a bound of memory.
  const MIB = 1024 * 1024
  const MAX_BYTES = 8 * MIB
  const MOST_OF_ACCOUNT = 32 * MIB
  const MOST = 64 * MIB

  t.test('long answers in PostgreSQL', async (t) => {
    const { database } = await startDatabase(t)
    const memory = new AnswerMemory()
    let body = Buffer.alloc(0)
    const replies = (): Observable<Reply> =>
      new Observable((subscriber) => {
        subscriber.next({ type: 'head', status: 200, headers: [['content-type', 'x/y']], flow: null })
        for (let at = 0; at < body.length; at += 100_000)
          subscriber.next({ type: 'data', bytes: body.subarray(at, at + 100_000) })
        subscriber.complete()
      })
    const deps = {
      records: database.idempotency,
      answerMemory: memory,
      maxSeconds: () => 180,
      workOnLongBody: workHere,
      onRecordLost: (error: unknown) => t.fail(String(error)),
    }
    const known = { account: { id: 'acc_a' } } as AuthenticatedCall['known']
    const authenticated = (call: Call) => ({ ...call, known })
    const { port } = await serve(t, {
      'POST /stream': calls(authenticated)
        .then(idempotent<AuthenticatedCall>(deps))
        .then(answer(replies))
        .toHandler(),
      'POST /whole': calls(authenticated)
        .then(idempotent<AuthenticatedCall>(deps))
        .then(
          answer(() => of<Reply>({ type: 'full', status: 200, headers: [['content-type', 'x/y']], body })),
        )
        .toHandler(),
    })
    const ask = async (path: string, key: string) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        body: '{}',
        headers: { 'idempotency-key': key },
      })
      return { response, bytes: Buffer.from(await response.arrayBuffer()) }
    }

    for (const path of ['/stream', '/whole'])
      await t.test(`${path}: up to 8 MiB, and not a byte more`, async (t) => {
        for (const length of [MIB, MIB + 1, MAX_BYTES]) {
          body = randomBytes(length)
          const key = `${path} ${length}`.replace(/\W/g, '-')
          t.ok((await ask(path, key)).bytes.equals(body))
          const { response, bytes } = await ask(path, key)
          t.equal(response.headers.get('idempotency-replayed'), 'true')
          t.equal(response.headers.get('content-type'), 'x/y')
          t.ok(bytes.equals(body), `${length} bytes`)
        }
        body = randomBytes(MAX_BYTES + 1)
        const key = `${path}-more`.slice(1)
        t.ok((await ask(path, key)).bytes.equals(body), 'the client has it all the same')
        t.equal((await ask(path, key)).response.status, 409)
      })
  })

  t.test('what is held is bounded, for each account and for all', async (t) => {
    const held = new AnswerMemory()
    t.ok(held.take('acc_a', MOST_OF_ACCOUNT))
    t.notOk(held.take('acc_a', 1))
    t.ok(held.take('acc_b', MOST - MOST_OF_ACCOUNT))
    t.notOk(held.take('acc_c', 1))
    held.release('acc_a', MOST_OF_ACCOUNT)
    t.ok(held.take('acc_a', MOST_OF_ACCOUNT))
  })
})

t.test('upstreams and customers harm nobody else', async (t) => {
  // Whatever one customer sends, and whatever upstreams answer to it, a call of another account through the same gateway
  // process goes out, comes back and is charged as before; and no call ever raises a balance.
  const SEED = 20261123
  const RUNS = 400
  /** 100 tokens of prompt at 1 credit, 40 of output at 2. */
  const USUAL_COST = parseCredits('180').toString()

  const PAIRS: readonly (readonly [client: ChatProtocol, upstream: ChatProtocol])[] = [
    ['chat-completions', 'chat-completions'],
    ['messages', 'messages'],
    ['generate-content', 'generate-content'],
    ['responses', 'responses'],
    ['chat-completions', 'messages'],
    ['chat-completions', 'generate-content'],
  ]

  /** What one process remembers between calls. */
  const memory = () => ({
    health: new ChannelHealth(),
    retryBudget: new RetryBudget(),
    storeResponse: async () => {},
    usageOptionRefusals: new UsageOptionRefusals(),
  })
  type Memory = ReturnType<typeof memory>
  type Pair = (typeof PAIRS)[number]

  /** An ordinary upstream: of chat-completions it reports usage if that is asked for, and else does not. */
  function answerWell(attempt: ScriptedUpstream, protocol: ChatProtocol, stream: boolean): void {
    const { whole, usage, opening, said, report, ending } = WORDS[protocol]
    if (!stream) {
      attempt.head(200, { 'content-type': 'application/json' })
      attempt.data(JSON.stringify(whole(usage(40))))
    } else {
      const isAsked = protocol !== 'chat-completions' || attempt.request.body.includes('"include_usage":true')
      attempt.head()
      for (const event of [opening, said, isAsked ? report(40) : '', ending]) attempt.data(event)
    }
    attempt.end()
  }

  /** What the other account sees, sends and pays. */
  function otherCall(shared: Memory, [client, upstream]: Pair, stream: boolean) {
    const call = new RunningCall({ ...shared, client: clientCall(client, 'hi', stream), upstream })
    const sent = String(call.attempt.request.body)
    answerWell(call.attempt, upstream, stream)
    const { status, cost, input_tokens, output_tokens, cached_tokens, usage_source } = call.settlement
    const text = call.sent.replaceAll(/"(created|id)":[^,]+/g, '')
    return { sent, text, status, cost, input_tokens, output_tokens, cached_tokens, usage_source }
  }

  /** Words that a gateway may take for more than words, wherever they stand. */
  const SLY = [
    ...['stream_options', "Unknown parameter: 'stream_options'", '{"error":{"param":"stream_options"}}'],
    ...['data: [DONE]\n\n', 'event: error\n', '"usage":{"prompt_tokens":-1}', '\u0000', '\ud83d', '{"', '[['],
    ...['include_usage', 'error', 'usage', '', 'Grüße 🙂'],
  ]
  const text = fc.oneof(fc.constantFrom(...SLY), fc.string({ maxLength: 12 }))

  /** Counts that no upstream should report. */
  const COUNTS = [
    '-1',
    '-40',
    '0',
    '1',
    '1e9',
    '1e308',
    '1e999',
    '0.5',
    '-0',
    '99999999999999999999',
    '"40"',
    'null',
    '{}',
    '[]',
    'true',
  ]
  const count = fc.constantFrom(...COUNTS)

  /** Pieces of a good answer, with counts and texts put in their places, and pieces that are none. */
  function piece(protocol: ChatProtocol): fc.Arbitrary<string> {
    const { whole, usage, opening, said, report, interim, ending, error } = WORDS[protocol]
    const good = [
      ...[opening, said, report(40), report(5), interim, ending, `data: ${JSON.stringify(error)}\n\n`],
      ...[JSON.stringify(whole(usage(40))), JSON.stringify(whole(null)), JSON.stringify(error)],
    ]
    const counted = fc
      .tuple(fc.constantFrom(...good), count)
      .map(([event, value]) => event.replaceAll(/(?<=Tokens?(?:Count)?"|tokens"):-?\d+/gi, () => `:${value}`))
    const worded = fc
      .tuple(fc.constantFrom(...good), text)
      .map(([event, words]) => event.replace('Grüße from here.', JSON.stringify(words).slice(1, -1)))
    const cut = fc.tuple(fc.constantFrom(...good), fc.nat(60)).map(([event, at]) => event.slice(0, at))
    return fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...good) },
      { weight: 4, arbitrary: counted },
      { weight: 2, arbitrary: worded },
      { weight: 1, arbitrary: cut },
      { weight: 1, arbitrary: text },
      {
        weight: 1,
        arbitrary: fc.constantFrom('data: {}\n\n', ': ping\n\n', '<html>', '{}', '[', '\r\n\r\n'),
      },
    )
  }

  interface Attack {
    readonly pair: Pair
    readonly stream: boolean
    readonly words: string
    readonly status: number
    readonly type: string
    readonly pieces: readonly string[]
    readonly end: 'end' | 'reset' | 'deadline' | 'abort'
  }

  const anyAttack: fc.Arbitrary<Attack> = fc.constantFrom(...PAIRS).chain((pair) =>
    fc.record({
      pair: fc.constant(pair),
      stream: fc.boolean(),
      words: text,
      status: fc.constantFrom(200, 200, 200, 200, 204, 302, 400, 422, 429, 500),
      type: fc.constantFrom('text/event-stream', 'text/event-stream', 'application/json', 'text/html', ''),
      pieces: fc.array(piece(pair[1]), { maxLength: 6 }),
      end: fc.constantFrom('end', 'end', 'end', 'reset', 'deadline', 'abort'),
    }),
  )

  /** The customer's own words come back as a refusal, and the retry is answered well. */
  const quotedAttack: fc.Arbitrary<Attack> = fc
    .tuple(fc.constantFrom(...PAIRS), fc.constantFrom(...SLY), fc.constantFrom(400, 422))
    .map(([pair, words, status]) => {
      const { opening, said, ending } = WORDS[pair[1]]
      return {
        pair,
        stream: true,
        words,
        status,
        type: 'text/event-stream',
        pieces: [opening, said, ending],
        end: 'end',
      }
    })

  const attack = fc.oneof({ weight: 4, arbitrary: anyAttack }, { weight: 1, arbitrary: quotedAttack })

  /** An upstream's refusal quotes what the customer sent, as many do. */
  const refusal = (words: string): string =>
    JSON.stringify({
      error: { message: words, param: words.includes('stream_options') ? 'stream_options' : null },
    })

  function execute(shared: Memory, { pair: [client, upstream], stream, words, ...answer }: Attack): void {
    const call = new RunningCall({ ...shared, client: clientCall(client, words, stream), upstream })
    const before = call.view.balance
    for (let tried = 0; tried < call.attempts.length; tried++) {
      const { attempt } = call
      // A retry is answered: that is where a gateway might learn from what it was refused.
      const status = tried === 0 ? answer.status : 200
      attempt.head(status, { 'content-type': answer.type })
      for (const bytes of status >= 400 ? [refusal(words)] : answer.pieces) attempt.data(bytes)
      if (answer.end === 'end') attempt.end()
      else if (answer.end === 'abort') call.abort()
      else attempt.fail(answer.end, { headReceived: true })
    }
    const { settlement } = call
    const tokens = [settlement.input_tokens, settlement.output_tokens, settlement.cached_tokens]
    for (const token of tokens)
      if (!Number.isSafeInteger(token) || token < 0 || token > 2 * MAX_REPORTED_TOKENS)
        throw new Error(`${token} tokens`)
    if (BigInt(settlement.cost) < 0n || call.view.balance > before)
      throw new Error(`the call cost ${settlement.cost}: a balance of ${before} became ${call.view.balance}`)
    deepStrictEqual(call.view.inFlight, 0n, 'nothing stays reserved')
    deepStrictEqual(call.inFlight, 0)
  }

  t.test('what one account does leaves what another pays as it was, and raises no balance', async (t) => {
    const usual = new Map(
      PAIRS.flatMap((pair) =>
        [false, true].map((stream) => [`${pair} ${stream}`, otherCall(memory(), pair, stream)] as const),
      ),
    )
    for (const [name, { status, cost, usage_source }] of usual)
      t.same(
        { status, cost, usage_source },
        { status: 'success', cost: USUAL_COST, usage_source: 'upstream' },
        name,
      )

    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [fc.array(attack, { minLength: 1, maxLength: 4 })],
      (attacks) => {
        const shared = memory()
        for (const each of attacks) execute(shared, each)
        for (const { pair, stream } of attacks)
          deepStrictEqual(otherCall(shared, pair, stream), usual.get(`${pair} ${stream}`))
      },
    )
  })
})

t.test('idempotency in postgres', async (t) => {
  t.test('a key belongs to one request at a time, and its answer to seven days', async (t) => {
    const { database, sql } = await startDatabase(t)
    const claim = (requestId: string, key = 'k', scope: IdempotencyScope = 'account:a') => ({
      scope,
      key,
      requestId,
      requestHash: Buffer.from('hash of what is asked'),
    })
    const answer = {
      status: 200,
      headers: [['content-type', 'x/y']] as const,
      body: Buffer.from([0, 255, 10]),
    }

    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => database.idempotency.claim(claim(`req_${i}`))),
    )
    const won = outcomes.flatMap(({ outcome }, i) => (outcome === 'claimed' ? [i] : []))
    t.equal(won.length, 1, 'one of twenty at once has it')
    t.equal(outcomes.filter(({ outcome }) => outcome === 'running').length, 19)
    t.match(
      await database.idempotency.claim(claim('req_x', 'k', 'account:b')),
      { outcome: 'claimed' },
      'by account',
    )

    await database.idempotency.store(claim('req_other'), answer)
    t.match(await database.idempotency.claim(claim('req_y')), { outcome: 'running' }, 'only its owner stores')
    await database.idempotency.store(claim(`req_${won[0]}`), answer)
    t.match(await database.idempotency.claim(claim('req_z')), {
      outcome: 'stored',
      requestId: `req_${won[0]}`,
      status: 200,
      headers: [['content-type', 'x/y']],
      body: answer.body,
    })

    await database.idempotency.claim(claim('req_1', 'freed'))
    await database.idempotency.free(claim('req_1', 'freed'))
    t.match(await database.idempotency.claim(claim('req_2', 'freed')), { outcome: 'claimed' })
    await database.idempotency.free(claim('req_1', 'freed'))
    t.match(
      await database.idempotency.claim(claim('req_3', 'freed')),
      { outcome: 'running' },
      'a late free is none',
    )
    await sql`UPDATE idempotency_records SET frees_at = now() WHERE key = 'freed'`
    t.match(
      await database.idempotency.claim(claim('req_4', 'freed')),
      { outcome: 'claimed' },
      'after ten minutes',
    )
    await database.idempotency.claim(claim('req_7', 'found again'))
    await database.idempotency.store(claim('req_7', 'found again'), answer, 'req_first')
    t.match(await database.idempotency.claim(claim('req_8', 'found again')), {
      outcome: 'stored',
      requestId: 'req_first',
    })
    await database.idempotency.store(claim('req_4', 'freed'), null)
    t.match(await database.idempotency.claim(claim('req_5', 'freed')), { outcome: 'too_large' })

    await database.idempotency.claim({ ...claim('req_9', 'takes an hour'), maxSeconds: 3600 })
    const held = await sql<{ seconds: number }[]>`
      SELECT extract(epoch FROM frees_at - expires_at + interval '7 days')::int AS seconds
      FROM idempotency_records WHERE key IN ('takes an hour', 'k') AND scope IN ('account:a', 'account:b') AND frees_at IS NOT NULL
      ORDER BY seconds`
    t.same(
      held.map(({ seconds }) => seconds),
      [600, 4020],
      'longer than the call may take',
    )
    await sql`DELETE FROM idempotency_records WHERE key = 'takes an hour'`

    await sql`UPDATE idempotency_records SET expires_at = now() WHERE key = 'k'`
    t.match(await database.idempotency.claim(claim('req_6')), { outcome: 'claimed' }, 'after seven days')
    await sql`UPDATE idempotency_records SET expires_at = now()`
    t.equal(await database.idempotency.purge(), 4)
    t.equal(await database.idempotency.purge(), 0)
    await t.test(
      'an act keeps its answer with what it does: who repeats it meanwhile waits for its end',
      async (t) => {
        const repeat = () =>
          database.transactAs('user:a', async ({ idempotency }) => {
            const { outcome } = await idempotency.claim(claim('req_act', 'act', 'actor:user:a'))
            if (outcome === 'claimed')
              await idempotency.store(claim('req_act', 'act', 'actor:user:a'), answer)
            return outcome
          })
        const undone = database.transactAs('user:a', async ({ idempotency }) => {
          await idempotency.claim(claim('req_undone', 'act', 'actor:user:a'))
          throw new Error('undone')
        })
        await t.rejects(undone, { message: 'undone' })
        t.same((await Promise.all([repeat(), repeat(), repeat()])).sort(), ['claimed', 'stored', 'stored'])
      },
    )

    await t.test('a payment keeps its key for ever', async (t) => {
      const accountId = await newAccount(database)
      const idempotency = claim('req_pay', 'pay', 'payments:user:a')
      const pay = () =>
        database.payments.create({
          ...{ accountId, kind: 'checkout', credits: 1n, amount: 1n, currency: 'usd' },
          idempotency,
        })
      const { id } = await pay()
      await database.idempotency.purge()
      t.equal((await pay()).id, id)
      t.match(
        await sql`SELECT subject, expires_at = 'infinity' AS stays FROM idempotency_records WHERE key = 'pay'`,
        [{ subject: id, stays: true }],
      )
    })
  })
})
