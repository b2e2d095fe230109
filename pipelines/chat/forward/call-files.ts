/** The files of one chat call that its upstream cannot fetch: fetched once for all attempts, ended with the call. */
import type { FetchedFile } from '../../../src/protocols/dialect.ts'
import type { ForwardDeps } from './deps.ts'

export type CallFileMap = ReadonlyMap<string, FetchedFile>
export const NO_FILES: CallFileMap = new Map()

export class CallFiles {
  readonly #fetchFiles: ForwardDeps['fetchFiles']
  readonly #ended = new AbortController()
  #files: CallFileMap | null = null

  constructor(fetchFiles: ForwardDeps['fetchFiles']) {
    this.#fetchFiles = fetchFiles
  }

  /** Calls `done` with the files of `urls`, or `failed`, later; calls neither once the call has ended. */
  fetch(
    urls: readonly string[],
    deadlineMs: number,
    done: (files: CallFileMap) => void,
    failed: (error: unknown) => void,
  ): void {
    const { signal } = this.#ended
    const kept = this.#files
    const files =
      kept !== null && urls.every((url) => kept.has(url))
        ? Promise.resolve(kept)
        : this.#fetchFiles(urls, deadlineMs, signal)
    files
      .then((fetched) => {
        if (signal.aborted) return
        this.#files = fetched
        done(fetched)
      })
      .catch((error) => signal.aborted || failed(error))
  }

  /** Aborts running fetches, and releases the files fetched. */
  end(): void {
    this.#ended.abort()
    this.#files = null
  }
}
