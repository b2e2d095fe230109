/** An Idempotency-Key that a call has claimed in PostgreSQL. */
import { Buffer } from 'node:buffer'
import type { HeaderList, Reply } from '../../src/http/handler.ts'
import type { IdempotencyClaim } from '../../src/postgres/requests/idempotency.ts'
import type { IdempotencyRecords } from '../../src/postgres/requests/repository.ts'
import type { BodyDeps } from '../../src/protocols/body-work.ts'

const BYTES_PER_MIB = 1024 * 1024
/** An answer above this is not kept: replaying it is refused. See docs/api-rules.md, "Idempotency". */
export const MAX_KEPT_ANSWER_BYTES = 8 * BYTES_PER_MIB
/** So much of each answer is held whatever others take. */
export const FREE_BYTES = BYTES_PER_MIB
const MAX_HELD_BYTES = 64 * BYTES_PER_MIB
const MAX_HELD_BYTES_OF_ACCOUNT = 32 * BYTES_PER_MIB

/** Memory for what answers have beyond `FREE_BYTES`, while they are gathered, stored or replayed. */
export class AnswerMemory {
  readonly #byAccount = new Map<string, number>()
  #bytes = 0

  /** Returns false where there is no room. */
  take(accountId: string, bytes: number): boolean {
    const held = (this.#byAccount.get(accountId) ?? 0) + bytes
    if (held > MAX_HELD_BYTES_OF_ACCOUNT || this.#bytes + bytes > MAX_HELD_BYTES) return false
    this.#byAccount.set(accountId, held)
    this.#bytes += bytes
    return true
  }

  release(accountId: string, bytes: number): void {
    this.#bytes -= bytes
    const held = this.#byAccount.get(accountId)! - bytes
    if (held > 0) this.#byAccount.set(accountId, held)
    else this.#byAccount.delete(accountId)
  }
}

/** Memory that one answer takes up. */
export class HeldAnswer {
  readonly #memory: AnswerMemory
  readonly #accountId: string
  #bytes = 0

  constructor(memory: AnswerMemory, accountId: string) {
    this.#memory = memory
    this.#accountId = accountId
  }

  /** Holds an answer of this length from here on; false where there is no room. */
  grow(length: number): boolean {
    const more = length - FREE_BYTES - this.#bytes
    if (more <= 0) return true
    if (!this.#memory.take(this.#accountId, more)) return false
    this.#bytes += more
    return true
  }

  release(): void {
    if (this.#bytes > 0) this.#memory.release(this.#accountId, this.#bytes)
    this.#bytes = 0
  }
}

type Records = Pick<
  IdempotencyRecords,
  'claimIdempotencyKey' | 'storeIdempotentAnswer' | 'freeIdempotencyKey'
>

export interface IdempotencyDeps extends BodyDeps {
  readonly records: Records
  readonly answerMemory: AnswerMemory
  /** Called when a record could not be stored or freed: it expires after ten minutes. */
  readonly onRecordLost: (error: unknown) => void
}

export interface StoredReply {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
}

/** The claim of an Idempotency-Key: the answer is stored under it, or the key is freed; the first of these wins. */
export class Claim {
  readonly #deps: IdempotencyDeps
  readonly #record: IdempotencyClaim
  readonly #gathered: GatheredAnswer
  #isCharged = false
  /** Resolves once the record is written; null before its end. */
  #ended: Promise<void> | null = null

  constructor(deps: IdempotencyDeps, record: IdempotencyClaim, isReplayable: boolean) {
    this.#deps = deps
    this.#record = record
    const held = new HeldAnswer(deps.answerMemory, record.accountId)
    this.#gathered = new GatheredAnswer(isReplayable ? MAX_KEPT_ANSWER_BYTES : 0, held)
  }

  /** Adds to the answer, and returns the reply in whose place the client gets the same. */
  gather(reply: Reply): Reply {
    this.#gathered.add(reply)
    return reply.type === 'head' ? this.#gathered.overhearing(reply) : reply
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
  free(): Promise<void> {
    return this.#end(this.#isCharged && this.#gathered.isKeepable)
  }

  #end(isStored: boolean, originalRequestId?: string): Promise<void> {
    if (this.#ended !== null) return this.#ended
    const { records, onRecordLost } = this.#deps
    const written = isStored
      ? records.storeIdempotentAnswer(this.#record, this.#gathered.answer(), originalRequestId)
      : records.freeIdempotencyKey(this.#record)
    this.#ended = written.catch(onRecordLost).then(() => this.#gathered.release())
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
    if (this.#isTooLarge) return
    const piece = Buffer.from(bytes)
    this.#length += piece.length
    this.#isTooLarge = this.#length > this.#maxBytes || !this.#held.grow(this.#length)
    if (this.#isTooLarge) this.release()
    else this.#pieces.push(piece)
  }

  /** Lets go of what was gathered. */
  release(): void {
    this.#pieces = []
    this.#held.release()
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
