/**
 * Fetches the files that a chat request names by URL and that its upstream cannot fetch: guarded, a few at a time, and
 * all ended together. They come back as base64.
 */
import { from, lastValueFrom, mergeMap } from 'rxjs'
import type { Forwarding } from '../../../pipelines/chat/forward/deps.ts'
import { Failure } from '../../../schemas/failure.ts'
import { DEFAULT_MAX_FILE_BYTES, type FetchedStream, guardedStream } from '../../fetch/guarded-fetch.ts'
import type { FetchedFile } from '../../protocols/dialect.ts'

export const MAX_FILES = 16
const MAX_TOTAL_BYTES = 64 * 1024 * 1024
const MAX_AT_ONCE = 4
const MAX_TIMEOUT_MS = 20_000
const BYTES_PER_MIB = 1024 * 1024

interface FileFetchOptions {
  /** Replaces the rule that allows only public addresses. */
  readonly isAllowed?: (address: string) => boolean
  readonly maxTotalBytes?: number
}

const tooMany = (count: number): Failure =>
  new Failure(
    'invalid_request',
    `The request names ${count} files by URL; at most ${MAX_FILES} are fetched for one request. Send fewer.`,
  )

const tooLarge = (maxBytes: number): Failure =>
  new Failure(
    'invalid_request',
    `The files that the request names by URL are larger than ${maxBytes / BYTES_PER_MIB} MiB together. Send fewer or smaller ones.`,
  )

/** Returns a fetcher of a request's files. It throws `Failure` as described at `Forwarding.fetchFiles`. */
export function makeFileFetcher(options: FileFetchOptions = {}): Forwarding['fetchFiles'] {
  const { isAllowed, maxTotalBytes = MAX_TOTAL_BYTES } = options
  return async (urls, deadlineMs, signal) => {
    const wanted = new Set(urls)
    if (wanted.size > MAX_FILES) throw tooMany(wanted.size)
    const ended = new AbortController()
    const limits = {
      maxBytes: DEFAULT_MAX_FILE_BYTES,
      timeoutMs: Math.min(deadlineMs, MAX_TIMEOUT_MS),
      signal: AbortSignal.any([signal, ended.signal]),
      ...(isAllowed && { isAllowed }),
    }
    let total = 0
    const take = async ({ pieces, mediaType }: FetchedStream): Promise<FetchedFile> => {
      const held: Buffer[] = []
      for await (const piece of pieces) {
        total += piece.length
        if (total > maxTotalBytes) throw tooLarge(maxTotalBytes)
        held.push(piece)
      }
      return { mediaType, base64: Buffer.concat(held).toString('base64') }
    }
    const files = new Map<string, FetchedFile>()
    const fetchOne = async (url: string) => files.set(url, await guardedStream(url, limits, take))
    try {
      await lastValueFrom(from(wanted).pipe(mergeMap(fetchOne, MAX_AT_ONCE)), { defaultValue: null })
      return files
    } finally {
      ended.abort()
    }
  }
}
