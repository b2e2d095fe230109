/** The files that a conversation names by link, for upstreams that fetch none: the gateway fetches them. */
import type { ReadablePart } from '../../../schemas/chat/chat-completions-conversation.ts'
import type { Conversation, TurnPart } from '../../../schemas/chat/conversation.ts'
import { normalizeLink } from '../../../schemas/media/fields.ts'
import type { FetchedFile } from '../dialect.ts'
import { invalidField } from '../request/client-json.ts'
import { findFetchedType, type InlineFile, isDataUri } from './data-uri.ts'

/** The files of `linkedFiles`, by URL. */
export type FetchedFiles = ReadonlyMap<string, FetchedFile>

/** See docs/api-rules.md, "Links from clients". */
const MAX_URL_CHARS = 2048
export const isLink = (url: string): boolean => /^https?:\/\//i.test(url)

/** Place of a link in the request. */
export interface Place {
  readonly url: string
  readonly path: string
}

/** Upstreams and the gateway read the same host in a link. */
export const normalizeUrl = (url: string): string => (isLink(url) ? normalizeLink(url) : url)

type LinkedPart = Extract<ReadablePart, { type: 'image_url' | 'video_url' }>

export function readUrl(part: LinkedPart, path: string): Place {
  const named = part.type === 'image_url' ? part.image_url : part.video_url
  return typeof named === 'string'
    ? { url: normalizeUrl(named), path: `${path}.${part.type}` }
    : { url: normalizeUrl(named.url), path: `${path}.${part.type}.url` }
}

/**
 * Returns the http(s) URL of a part's file; null for a file inside the request.
 * @throws Failure `invalid_request` with a message that names the field
 */
export function findLink(part: ReadablePart, path: string): Place | null {
  if (part.type === 'file') {
    const url = part.file.file_data
    return isLink(url) ? { url: checkUrl(normalizeUrl(url), `${path}.file.file_data`), path } : null
  }
  if (part.type !== 'image_url' && part.type !== 'video_url') return null
  const place = readUrl(part, path)
  return isDataUri(place.url) ? null : { url: checkUrl(place.url, place.path), path: place.path }
}

/** Returns a link as it is used. @throws Failure `invalid_request` that names the field */
export const readLink = (url: string, path: string): string => checkUrl(normalizeUrl(url), path)

function checkUrl(url: string, path: string): string {
  if (url.length > MAX_URL_CHARS) throw invalidField(path, `it is longer than ${MAX_URL_CHARS} characters`)
  if (!isLink(url)) throw invalidField(path, 'it must be a data URI or begin with http:// or https://')
  return url
}

/** Returns the http(s) URLs of files, each once. */
export function listLinkedFiles({ turns }: Conversation): readonly string[] {
  const urls = new Set<string>()
  const add = (part: TurnPart): void => {
    if (part.type === 'tool_result') part.content.forEach(add)
    else if ('source' in part && part.source.type === 'link') urls.add(part.source.url)
  }
  for (const { parts } of turns) parts.forEach(add)
  return [...urls]
}

/**
 * Returns a fetched file with its type.
 * @throws Failure `invalid_request` that names the field, for a file without a type
 */
export function toTypedFile(file: FetchedFile, { url, path }: Place): InlineFile {
  const mediaType = findFetchedType(file, url)
  if (mediaType === null)
    throw invalidField(path, 'the server of this URL does not tell the type of the file')
  return { mediaType, base64: file.base64 }
}
