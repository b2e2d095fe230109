/**
 * Keeps track of uploaded files until a task has them. They are stored before it is known whether there will be a task:
 * files that no task takes over are deleted, and the bytes of each account are limited.
 */
import { Failure } from '../../../schemas/failure.ts'
import type { FileRemover } from '../../../src/storage/store.ts'

/** The limit of one account, in each gateway process. */
const MAX_UPLOADING_BYTES = 256 * 1024 * 1024
const BYTES_PER_MIB = 1024 * 1024
const RETRY_SECONDS = '5'

const tooMuch = (maxBytes: number): Failure =>
  new Failure(
    'rate_limit_exceeded',
    `The files that this account is sending exceed ${maxBytes / BYTES_PER_MIB} MiB together. Wait until some of these requests are answered.`,
    { headers: [['retry-after', RETRY_SECONDS]] },
  )

interface UploadsOptions {
  readonly files: FileRemover
  readonly maxBytes?: number
}

export class Uploads {
  readonly #files: UploadsOptions['files']
  readonly #maxBytes: number
  readonly #bytesByAccount = new Map<string, number>()

  constructor({ files, maxBytes = MAX_UPLOADING_BYTES }: UploadsOptions) {
    this.#files = files
    this.#maxBytes = maxBytes
  }

  /** Begins the upload of one request. It must be ended with the request. */
  begin(accountId: string): Upload {
    return new Upload({
      change: (bytes) => this.#change(accountId, bytes),
      remove: (keys) => this.#files.delete(keys).catch(() => undefined),
    })
  }

  /** @throws Failure `rate_limit_exceeded` */
  #change(accountId: string, bytes: number): void {
    const total = (this.#bytesByAccount.get(accountId) ?? 0) + bytes
    if (bytes > 0 && total > this.#maxBytes) throw tooMuch(this.#maxBytes)
    if (total > 0) this.#bytesByAccount.set(accountId, total)
    else this.#bytesByAccount.delete(accountId)
  }
}

interface UploadQuota {
  readonly change: (bytes: number) => void
  /** Never rejects: a file that cannot be removed now is removed within a day, by its record. */
  readonly remove: (keys: readonly string[]) => Promise<unknown>
}

/** The files of one request. */
export class Upload {
  readonly #deps: UploadQuota
  readonly #keys: string[] = []
  #bytes = 0
  #isHandedOver = false
  #isDiscarded = false

  constructor(deps: UploadQuota) {
    this.#deps = deps
  }

  /** Counts bytes before they are stored. @throws Failure `rate_limit_exceeded` beyond the account's quota */
  count(bytes: number): void {
    this.#deps.change(bytes)
    this.#bytes += bytes
  }

  /** Notes a stored file. After a discard, the file is removed at once. */
  async noteStored(key: string): Promise<void> {
    this.#keys.push(key)
    if (this.#isDiscarded) await this.#deps.remove([key])
  }

  /** From here on a task may have the files. */
  handOver(): void {
    this.#isHandedOver = true
    this.#release()
  }

  /** Ends the upload: files that were not handed over are removed. */
  async end(): Promise<void> {
    if (!this.#isHandedOver) await this.discard()
  }

  /** Removes the files, which no task has. A second call does nothing. */
  async discard(): Promise<void> {
    this.#isDiscarded = true
    this.#release()
    const keys = this.#keys.splice(0)
    if (keys.length > 0) await this.#deps.remove(keys)
  }

  #release(): void {
    this.#deps.change(-this.#bytes)
    this.#bytes = 0
  }
}
