/**
 * The same submit intent is carried out once: its answer is kept and replayed. The claim is made in PostgreSQL, so it
 * holds across gateway processes. Source: specification, "Idempotency (all billed POST endpoints)".
 */
import { Buffer } from 'node:buffer'
import { concatMap, defer, of as just, type MonoTypeOperatorFunction, Observable } from 'rxjs'
import { Failure } from '../../schemas/failure.ts'
import { requestHash } from '../../src/core/json/canonical.ts'
import { withoutKey } from '../../src/core/keys/presented.ts'
import type { GatewayRequest, HeaderList, Reply } from '../../src/http/handler.ts'
import type { ClaimOutcome, IdempotencyClaim } from '../../src/postgres/requests/idempotency.ts'
import type { Database } from '../../src/postgres/types.ts'

/** An answer above this is not kept: replaying it is refused. */
export const MAX_KEPT_ANSWER_BYTES = 1024 * 1024
const KEY = /^[\x21-\x7e]{1,200}$/

type Records = Pick<Database, 'claimIdempotencyKey' | 'storeIdempotentAnswer' | 'freeIdempotencyKey'>

export interface IdempotencyDeps {
  readonly records: Records
  /** Told when a record could not be stored or freed: it frees itself after ten minutes. */
  readonly onRecordLost: (error: unknown) => void
}

/** Who asks, under which account. */
export interface Claimant {
  readonly request: GatewayRequest
  readonly accountId: string
  /** Of a request whose body was not kept whole. */
  readonly requestHash?: Buffer | undefined
}

/** @throws Failure `invalid_idempotency_key` */
function idempotencyKey({ header }: GatewayRequest): string {
  const key = header('idempotency-key')
  if (KEY.test(key)) return key
  throw new Failure(
    'invalid_idempotency_key',
    'The Idempotency-Key header must be 1 to 200 printable ASCII characters without spaces.',
  )
}

export interface IdempotentWork<T> {
  readonly claimantOf: (value: T) => Claimant
  /** Records what is refused here. */
  readonly refusalsOf: (value: T) => MonoTypeOperatorFunction<ClaimResult>
  /** Whether the answer may be kept at all; each that is not too large where this is left out. */
  readonly isReplayable?: (value: T) => boolean
  readonly work: (value: T) => Observable<Reply>
}

/** The claim that is this request's to carry out, or the answer that stands already. */
type ClaimResult = { readonly claim: IdempotencyClaim } | { readonly reply: Reply }

/** `work` is carried out unless its answer, or a reason to refuse it, is there already. */
export function idempotent<T>(
  deps: IdempotencyDeps,
  options: IdempotentWork<T>,
): (value: T) => Observable<Reply> {
  return (value) => {
    const { request, accountId, requestHash: given } = options.claimantOf(value)
    if (!request.hasHeader('idempotency-key')) return options.work(value)
    return defer(() => {
      const { method, path, query, body, requestId } = request
      // Any key of the account may ask again, wherever it stands.
      const hash = given ?? requestHash(method, path, withoutKey(query), body)
      return claimed(deps, { accountId, key: idempotencyKey(request), requestId, requestHash: hash })
    }).pipe(
      options.refusalsOf(value),
      concatMap((result) =>
        // Work that is refused before it begins gives the claim back as well.
        'claim' in result
          ? defer(() => options.work(value)).pipe(
              keeping(deps, result.claim, options.isReplayable?.(value) ?? true),
            )
          : just(result.reply),
      ),
    )
  }
}

/** A claim that is made for a client that has left meanwhile is given back. */
function claimed(
  { records, onRecordLost }: IdempotencyDeps,
  claim: IdempotencyClaim,
): Observable<ClaimResult> {
  return new Observable((subscriber) => {
    const answer = (outcome: ClaimOutcome) => {
      if (!subscriber.closed) {
        subscriber.next(resolveClaim(claim, outcome))
        subscriber.complete()
      } else if (outcome.outcome === 'claimed') records.freeIdempotencyKey(claim).catch(onRecordLost)
    }
    records
      .claimIdempotencyKey(claim)
      .then(answer, unavailable)
      .catch((error) => subscriber.error(error))
  })
}

/** Without the record nobody knows whether the call was carried out before. */
function unavailable(error: Error): never {
  throw new Failure(
    'service_unavailable',
    'The service cannot take calls with an Idempotency-Key at the moment. Try again in a minute.',
    { internal: `idempotency records: ${error.message}` },
  )
}

/** @throws Failure where neither the key can be had nor an answer be replayed */
function resolveClaim(claim: IdempotencyClaim, outcome: ClaimOutcome): ClaimResult {
  if (outcome.outcome === 'claimed') return { claim }
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
      return { reply: { type: 'full', status, headers, body, requestId } }
    }
  }
}

/**
 * Gathers the answer while it passes. A whole one is kept; an error, a cut and a client that leaves free the key. The
 * end is told once that is done: whoever has it can have the answer again, or try again.
 */
function keeping(
  { records, onRecordLost }: IdempotencyDeps,
  claim: IdempotencyClaim,
  isReplayable: boolean,
): MonoTypeOperatorFunction<Reply> {
  return (replies) =>
    new Observable((subscriber) => {
      const gathered = new GatheredAnswer(isReplayable ? MAX_KEPT_ANSWER_BYTES : 0)
      let isOver = false
      let inOnePiece: Reply | null = null
      const close = (recorded: Promise<void>, tellEnd: () => void) => {
        isOver = true
        recorded.catch(onRecordLost).finally(tellEnd)
      }
      const subscription = replies.subscribe({
        next(reply) {
          gathered.add(reply)
          if (reply.type === 'full') inOnePiece = reply
          else subscriber.next(reply.type === 'head' ? gathered.overhearing(reply) : reply)
        },
        error: (error) => close(records.freeIdempotencyKey(claim), () => subscriber.error(error)),
        complete: () =>
          close(
            gathered.isKeepable
              ? records.storeIdempotentAnswer(claim, gathered.answer())
              : records.freeIdempotencyKey(claim),
            () => {
              if (inOnePiece !== null) subscriber.next(inOnePiece)
              subscriber.complete()
            },
          ),
      })
      return () => {
        subscription.unsubscribe()
        if (!isOver) records.freeIdempotencyKey(claim).catch(onRecordLost)
      }
    })
}

class GatheredAnswer {
  #status = 0
  #headers: HeaderList = []
  #pieces: Buffer[] = []
  #length = 0
  readonly #maxBytes: number

  /** `maxBytes` of 0: only that there was an answer is kept. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(reply: Reply): void {
    if (reply.type === 'data') return this.#take(reply.bytes)
    this.#status = reply.status
    this.#headers = reply.headers
    if (reply.type === 'full') this.#take(reply.body)
  }

  /** The same head; data that goes past the events is gathered too. */
  overhearing(head: Extract<Reply, { type: 'head' }>): Reply {
    const { direct } = head
    if (direct === undefined) return head
    return {
      ...head,
      direct: (sink) =>
        direct({
          data: (bytes) => {
            this.#take(bytes)
            sink.data(bytes)
          },
        }),
    }
  }

  #take(bytes: string | Uint8Array): void {
    const piece = Buffer.from(bytes)
    this.#length += piece.length
    if (this.#length > this.#maxBytes) this.#pieces = []
    else this.#pieces.push(piece)
  }

  /** Only 2xx answers are kept. */
  get isKeepable(): boolean {
    return this.#status >= 200 && this.#status < 300
  }

  /** Null when it was too large. */
  answer(): { status: number; headers: HeaderList; body: Buffer } | null {
    if (this.#length > this.#maxBytes) return null
    return { status: this.#status, headers: this.#headers, body: Buffer.concat(this.#pieces) }
  }
}
