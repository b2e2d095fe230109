/** An Idempotency-Key that a call has claimed in PostgreSQL. */
import type { Buffer } from 'node:buffer'
import type { HeaderList } from '../../src/http/handler.ts'
import type { IdempotencyClaim } from '../../src/postgres/requests/idempotency.ts'
import type { IdempotencyRecords } from '../../src/postgres/requests/repository.ts'

type Records = Pick<
  IdempotencyRecords,
  'claimIdempotencyKey' | 'storeIdempotentAnswer' | 'freeIdempotencyKey'
>

export interface IdempotencyDeps {
  readonly records: Records
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
  readonly isReplayable: boolean
  readonly #deps: IdempotencyDeps
  readonly #record: IdempotencyClaim
  #isOver = false

  constructor(deps: IdempotencyDeps, record: IdempotencyClaim, isReplayable: boolean) {
    this.#deps = deps
    this.#record = record
    this.isReplayable = isReplayable
  }

  /** Stores the answer; null: one that is too large to replay. Never rejects. */
  store(answer: StoredReply | null): Promise<void> {
    return this.#end((records) => records.storeIdempotentAnswer(this.#record, answer))
  }

  /** Lets the next request with the key run. Never rejects. */
  free(): Promise<void> {
    return this.#end((records) => records.freeIdempotencyKey(this.#record))
  }

  async #end(write: (records: Records) => Promise<void>): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    await write(this.#deps.records).catch(this.#deps.onRecordLost)
  }
}
