/** Files that an upstream cannot fetch itself: fetched by the gateway, guarded, and handed over as base64. */
import type { ForwardDeps } from '../../pipelines/stages/forward.ts'
import { guardedFetch } from '../fetch/guarded-fetch.ts'
import type { FetchedFile } from '../protocols/dialect.ts'

const MAX_TIMEOUT_MS = 20_000

export const fetchFiles: ForwardDeps['fetchFiles'] = async (urls, deadlineMs) => {
  const timeoutMs = Math.min(deadlineMs, MAX_TIMEOUT_MS)
  const entries = urls.map(async (url): Promise<[string, FetchedFile]> => {
    const { bytes, mediaType } = await guardedFetch(url, { timeoutMs })
    return [url, { mediaType, base64: bytes.toString('base64') }]
  })
  return new Map(await Promise.all(entries))
}
