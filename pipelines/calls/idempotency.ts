/**
 * A request with an Idempotency-Key is carried out once, whatever repeats it: a call, a task, a payment or an operation. Its
 * answer is kept and replayed. The record is in PostgreSQL, so it holds across processes. See docs/api-rules.md,
 * "Idempotency".
 */
import { concatMap, from, map, Observable, of } from 'rxjs'
import { Failure } from '../../schemas/failure.ts'
import { IDEMPOTENCY_KEY_PATTERN } from '../../schemas/idempotency-key.ts'
import { hashMeaning } from '../../src/core/json/canonical.ts'
import { withoutKey } from '../../src/core/keys/presented.ts'
import { FREE_BYTES, HeldAnswer } from '../../src/core/limits/answer-memory.ts'
import type { FullReply, GatewayRequest, HeaderList, HeaderLookup, Reply } from '../../src/http/handler.ts'
import type { ClaimOutcome, IdempotencyClaim } from '../../src/postgres/requests/idempotency.ts'
import { workOnBody } from '../../src/protocols/body-work.ts'
import type { AuthenticatedCall, Caller } from './authenticate.ts'
import { Claim, type Idempotency } from './claim.ts'
import { Answered, type Stage } from './pipeline.ts'
import { cutPieces, paceReply } from './replies.ts'

/** A request and its Idempotency-Key. */
export interface KeyedRequest {
  readonly key: string
  readonly requestId: string
}

interface KeyHeader {
  readonly header: HeaderLookup
  readonly hasHeader: GatewayRequest['hasHeader']
  readonly requestId: string
}

/** Reads the Idempotency-Key; null without the header. @throws Failure `invalid_idempotency_key` */
export function readIdempotencyKey({ header, hasHeader, requestId }: KeyHeader): KeyedRequest | null {
  if (!hasHeader('idempotency-key')) return null
  const key = header('idempotency-key')
  if (IDEMPOTENCY_KEY_PATTERN.test(key)) return { key, requestId }
  throw new Failure(
    'invalid_idempotency_key',
    'There must be one Idempotency-Key header, of 1 to 200 printable ASCII characters without spaces.',
  )
}

/**
 * Claims the Idempotency-Key of the call, where it has one, or replies with the answer stored under the key.
 * @throws Failure `invalid_idempotency_key`, `idempotency_key_reuse`, `idempotency_in_flight`,
 *   `idempotency_response_not_cached`, `service_unavailable`
 */
export const idempotent =
  <C extends AuthenticatedCall>(deps: Idempotency): Stage<C, C> =>
  (call: C) => {
    const { request, known, meaning, isReplayable = true } = call
    const keyed = readIdempotencyKey(request)
    if (keyed === null) return call
    const { path, body } = call.intent ?? request
    const accountId = known.account.id
    const claim = (requestHash: Buffer) => {
      const scope = `account:${accountId}` as const
      const record: IdempotencyClaim = { ...keyed, scope, requestHash, maxSeconds: deps.maxSeconds() }
      return claimKey(deps, record).pipe(
        map((stored) => {
          if (stored !== null) {
            const held = new HeldAnswer(deps.answerMemory, accountId)
            call.ends.add(() => held.release())
            if (!held.grow(stored.body.length)) throw answersFull()
            return new Answered(call, replayAnswer(stored))
          }
          const claim = new Claim(deps, record, { accountId, isReplayable })
          call.ends.add(() => void claim.release())
          return { ...call, claim }
        }),
      )
    }
    // Any key of the account may repeat the request, in its header or its query.
    const input = { method: request.method, path, query: withoutKey(request.query) }
    const hash =
      meaning === undefined
        ? workOnBody(deps, accountId, 'hash', input, body)
        : hashMeaning(input.method, path, input.query, meaning)
    return hash instanceof Promise ? from(hash).pipe(concatMap(claim)) : claim(hash)
  }

export interface AnsweredKeys {
  /** Returns whether there is an answer under the key, or a task. */
  isAnswered(scope: string, key: string): Promise<boolean>
}

/** Returns whether an earlier request with the key of the call has an answer or a task. */
export async function isRepeated(records: AnsweredKeys, { request, known }: Caller): Promise<boolean> {
  const keyed = readIdempotencyKey(request)
  return keyed !== null && records.isAnswered(`account:${known.account.id}`, keyed.key)
}

const answersFull = (): Failure =>
  new Failure(
    'service_unavailable',
    'The service sends many long stored answers now. Try again in a moment.',
    {
      headers: [['retry-after', '1']],
    },
  )

/** A long answer goes no faster than its client reads, so that its memory counts until then. */
const replayAnswer = (stored: FullReply): Observable<Reply> =>
  stored.body.length <= FREE_BYTES
    ? of(stored)
    : paceReply(async () => {
        const body = stored.body as Buffer
        return { ...stored, length: body.length, pieces: cutPieces(body) }
      })

/** Emits the stored answer; null for a key that is claimed. A claim for a client that has left is freed. */
function claimKey(
  { records, onRecordLost }: Idempotency,
  record: IdempotencyClaim,
): Observable<FullReply | null> {
  return new Observable((subscriber) => {
    const decide = (outcome: ClaimOutcome) => {
      if (!subscriber.closed) {
        subscriber.next(decideClaim(record, outcome))
        subscriber.complete()
      } else if (outcome.outcome === 'claimed') records.free(record).catch(onRecordLost)
    }
    records
      .claim(record)
      .then(decide, throwUnavailable)
      .catch((error) => subscriber.error(error))
  })
}

/** Refuses the call: without the record it is unknown whether the call was executed before. */
function throwUnavailable(error: Error): never {
  throw new Failure(
    'service_unavailable',
    'The service cannot take calls with an Idempotency-Key at the moment. Try again in a minute.',
    { internal: `idempotency records: ${error.message}` },
  )
}

/** Returns null where the key is claimed. @throws Failure where the key is taken and its answer cannot be replayed */
export function decideClaim(claim: IdempotencyClaim, outcome: ClaimOutcome): FullReply | null {
  if (outcome.outcome === 'claimed') return null
  if (!outcome.requestHash.equals(claim.requestHash))
    throw new Failure('idempotency_key_reuse', 'This Idempotency-Key was used with a different request.')
  switch (outcome.outcome) {
    case 'running':
      throw new Failure('idempotency_in_flight', 'The call with this Idempotency-Key is still running.')
    case 'too_large':
      throw new Failure(
        'idempotency_response_not_cached',
        'The answer to the call with this Idempotency-Key was too large to keep. A fresh key makes a new call, which is billed.',
      )
    case 'stored': {
      const { status, body, requestId } = outcome
      const headers: HeaderList = [...outcome.headers, ['idempotency-replayed', 'true']]
      return { type: 'full', status, headers, body, requestId }
    }
  }
}
