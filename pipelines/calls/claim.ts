/** An Idempotency-Key that a call has claimed in PostgreSQL. */
import { Buffer } from 'node:buffer'
import { type MonoTypeOperatorFunction, Observable } from 'rxjs'
import { type AnswerMemory, HeldAnswer, MAX_KEPT_ANSWER_BYTES } from '../../src/core/limits/answer-memory.ts'
import type { HeaderList, Reply } from '../../src/http/handler.ts'
import type { IdempotencyClaim } from '../../src/postgres/requests/idempotency.ts'
import type { IdempotencyRecords } from '../../src/postgres/requests/repository.ts'
import type { LongBodyWork } from '../../src/protocols/body-work.ts'

/** Where the answers of requests with an Idempotency-Key are kept. */
export interface Idempotency extends LongBodyWork {
  readonly records: Omit<IdempotencyRecords, 'purge'>
  readonly answerMemory: AnswerMemory
  /** Returns the longest time that a call may take. */
  readonly maxSeconds: () => number
  /** Called when a record could not be stored or freed: it frees itself in time. */
  readonly onRecordLost: (error: unknown) => void
}

export interface StoredReply {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
}

interface ClaimOptions {
  /** Whose memory the answer takes. */
  readonly accountId: string
  readonly isReplayable: boolean
}

/** The claim of an Idempotency-Key: the answer is stored under it, or the key is freed; the first of these wins. */
export class Claim {
  readonly #deps: Idempotency
  readonly record: IdempotencyClaim
  readonly #gathered: GatheredAnswer
  #isCharged = false
  /** Resolves once the record is written; null before its end. */
  #ended: Promise<void> | null = null

  constructor(deps: Idempotency, record: IdempotencyClaim, { accountId, isReplayable }: ClaimOptions) {
    this.#deps = deps
    this.record = record
    const held = new HeldAnswer(deps.answerMemory, accountId)
    this.#gathered = new GatheredAnswer(isReplayable ? MAX_KEPT_ANSWER_BYTES : 0, held)
  }

  /** Adds to the answer, and returns the reply in whose place the client gets the same. */
  gather(reply: Reply): Reply {
    this.#gathered.add(reply)
    return reply.type === 'head' ? this.#gathered.overhear(reply) : reply
  }

  /**
   * Notes that the answer is complete and charged: from here on it is stored however the call ends, since a retry would
   * be charged again. `last` is what the client does not have yet: an answer in one piece, or the end of a stream.
   */
  charge(last?: Reply): void {
    if (last !== undefined) this.#gathered.add(last)
    this.#isCharged = true
  }

  /** Stores the answer as it is by now, which the client took for the whole. Never rejects. */
  keep(): Promise<void> {
    this.charge()
    return this.store()
  }

  /**
   * Stores the answer, or frees the key where it is none to keep. `originalRequestId` is of the request that did the work,
   * where that is another one. Never rejects.
   */
  store(originalRequestId?: string): Promise<void> {
    return this.#end(this.#gathered.isKeepable, originalRequestId)
  }

  /** Lets the next request with the key run; stores an answer that is charged. Never rejects. */
  release(): Promise<void> {
    return this.#end(this.#isCharged && this.#gathered.isKeepable)
  }

  #end(isStored: boolean, originalRequestId?: string): Promise<void> {
    if (this.#ended !== null) return this.#ended
    const { records, onRecordLost } = this.#deps
    const written = isStored
      ? records.store(this.record, this.#gathered.answer(), originalRequestId)
      : records.free(this.record)
    this.#ended = written.catch(onRecordLost).then(() => this.#gathered.close())
    return this.#ended
  }
}

class GatheredAnswer {
  #status = 0
  #headers: HeaderList = []
  #pieces: Buffer[] = []
  #length = 0
  readonly #maxBytes: number
  readonly #held: HeldAnswer
  #isTooLarge = false
  #isClosed = false

  /** @param maxBytes 0 stores only the fact that there was an answer */
  constructor(maxBytes: number, held: HeldAnswer) {
    this.#maxBytes = maxBytes
    this.#held = held
  }

  add(reply: Reply): void {
    if (reply.type === 'data') return this.#take(reply.bytes)
    this.#status = reply.status
    this.#headers = reply.headers
    if (reply.type === 'head') return
    // One that is charged comes twice: then, and when its settlement is safe.
    this.release()
    this.#length = 0
    this.#isTooLarge = false
    this.#take(reply.body)
  }

  /** Returns the same head with a sink that also gathers data sent past the events. */
  overhear(head: Extract<Reply, { type: 'head' }>): Reply {
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
    if (this.#isTooLarge || this.#isClosed) return
    const piece = Buffer.from(bytes)
    this.#length += piece.length
    this.#isTooLarge = this.#length > this.#maxBytes || !this.#held.grow(this.#length)
    if (this.#isTooLarge) this.release()
    else this.#pieces.push(piece)
  }

  /** Drops what was gathered. */
  release(): void {
    this.#pieces = []
    this.#held.release()
  }

  /** Releases what was gathered, for good: the end of a stream passes after its answer was stored. */
  close(): void {
    this.#isClosed = true
    this.release()
  }

  /** Only 2xx answers are kept. */
  get isKeepable(): boolean {
    return this.#status >= 200 && this.#status < 300
  }

  /** Returns the gathered answer, or null when it was too large. */
  answer(): StoredReply | null {
    if (this.#isTooLarge) return null
    return { status: this.#status, headers: this.#headers, body: Buffer.concat(this.#pieces) }
  }
}

/**
 * Gathers the answer while it passes, and stores a whole one under the claim; an error frees the key, unless the answer
 * is charged by then. The client gets the end after that: then it can have the answer again, or try again.
 */
export const storeAnswer =
  (claim: Claim, originalRequestId?: string): MonoTypeOperatorFunction<Reply> =>
  (replies) =>
    new Observable((subscriber) => {
      let inOnePiece: Reply | null = null
      return replies.subscribe({
        next(reply) {
          const gathered = claim.gather(reply)
          if (reply.type === 'full') inOnePiece = reply
          else subscriber.next(gathered)
        },
        error: (error) => void claim.release().then(() => subscriber.error(error)),
        async complete() {
          await claim.store(originalRequestId)
          if (inOnePiece !== null) subscriber.next(inOnePiece)
          subscriber.complete()
        },
      })
    })
