/**
 * `GET /files/{key}`: a file of the object store, for a client with a signed link. Files of a folder are sent from here;
 * for a bucket, the client is redirected to it.
 * See docs/api-rules.md, "Files and link lifetimes".
 */
import { createHash } from 'node:crypto'
import { from, type Observable, of } from 'rxjs'
import { Failure } from '../../../schemas/failure.ts'
import { checkLink, isObjectKey } from '../../../src/core/media/file-link.ts'
import type { GatewayRequest, Handler, HeaderList, Reply } from '../../../src/http/handler.ts'
import type { FileLinks, FileReader, StoredObject } from '../../../src/storage/store.ts'
import type { Call, Stage } from '../../calls/pipeline.ts'
import { type Asked, answer, calls, type Found, find, readParams } from '../../calls/pipeline.ts'
import { paceReply } from '../../calls/replies.ts'
import { throwUnreadable } from './unreadable.ts'

interface LinkedStore extends FileReader, FileLinks {
  /** True if links lead to the bucket, which sends the files itself. */
  readonly servesLinks: boolean
  head(key: string): Promise<StoredObject | null>
}

export interface LinkedFiles {
  readonly files: LinkedStore
  /** The key that signs the links, see `linkKey`. */
  readonly fileLinkKey: Uint8Array
  /** Epoch milliseconds. */
  readonly now?: () => number
}

/** The life of a bucket's own link: long enough to start a download and to resume it after a pause. */
const REDIRECT_MS = 60 * 60 * 1000
/** Clients may cache a file for this long: the file of a link never changes. */
const MAX_AGE_SECONDS = 24 * 60 * 60
const MS_PER_SECOND = 1000
const TAG_CHARS = 22
/** Precedes the name of a source file; a saved file gets only the name. */
const HASH_OF_CONTENT = /^[0-9a-f]{64}-(?=.)/

/** Returns the key in the path after a check of its link. */
function checkLinkedKey(
  { params: { key }, query }: GatewayRequest,
  linkKey: Uint8Array,
  now: number,
): string {
  const decision = isObjectKey(key) ? checkLink(linkKey, key, new URLSearchParams(query), now) : 'invalid'
  if (decision === 'valid') return key
  const why =
    decision === 'expired'
      ? 'The link has expired. Ask again where it came from to get a fresh one.'
      : 'The link is not valid. Use it exactly as it was handed out.'
  throw new Failure('permission_denied', why)
}

const gone = (): Failure => new Failure('not_found', 'The file is not there any more.')

const makeTag = (key: string, { bytes }: StoredObject): string =>
  `"${createHash('sha256').update(`${key}\n${bytes}`).digest('base64url').slice(0, TAG_CHARS)}"`

/** Whatever a browser might execute is downloaded instead of shown. */
const isShown = (mediaType: string): boolean => /^(?:image\/(?!svg)|video\/|audio\/)/.test(mediaType)

function makeHeaders(
  key: string,
  { mediaType }: StoredObject,
  tag: string,
  expires: string | null,
  now: number,
) {
  const leftSeconds = expires === null ? MAX_AGE_SECONDS : Math.floor(Number(expires) - now / MS_PER_SECOND)
  const name = key.slice(key.lastIndexOf('/') + 1).replace(HASH_OF_CONTENT, '')
  return [
    ['content-type', mediaType],
    ['content-disposition', `${isShown(mediaType) ? 'inline' : 'attachment'}; filename="${name}"`],
    ['etag', tag],
    ['accept-ranges', 'bytes'],
    ['cache-control', `private, max-age=${Math.min(MAX_AGE_SECONDS, leftSeconds)}`],
    ['content-security-policy', "default-src 'none'; sandbox"],
  ] as const
}

const makeEmptyReply = (status: number, headers: HeaderList): Reply => ({
  type: 'full',
  status,
  headers,
  body: '',
})

/** Returns the requested span; null for the whole file, also if the client has part of another version. */
function readSpan({ header }: GatewayRequest, { bytes }: StoredObject, tag: string): ByteSpan | null {
  const condition = header('if-range')
  if (condition !== '' && condition !== tag) return null
  const span = readRange(header('range'), bytes)
  if (span !== 'unsatisfiable') return span
  throw new Failure('invalid_request', `The file has ${bytes} bytes: there is no such part of it.`, {
    status: 416,
    headers: [['content-range', `bytes */${bytes}`]],
  })
}

const isKnown = ({ header }: GatewayRequest, tag: string): boolean =>
  header('if-none-match')
    .split(',')
    .some((known) => ['*', tag, `W/${tag}`].includes(known.trim()))

function send(
  store: LinkedStore,
  request: GatewayRequest,
  key: string,
  found: StoredObject,
  now: number,
): Observable<Reply> {
  const tag = makeTag(key, found)
  const headers = makeHeaders(key, found, tag, new URLSearchParams(request.query).get('expires'), now)
  if (isKnown(request, tag)) return of(makeEmptyReply(304, headers))
  if (request.method === 'HEAD')
    return of(makeEmptyReply(200, [...headers, ['content-length', String(found.bytes)]]))
  const span = readSpan(request, found, tag)
  if (found.bytes === 0) return of(makeEmptyReply(200, headers))
  return paceReply(async () => {
    const body = await store.get(key, span ?? undefined).catch(throwUnreadable)
    if (body === null) throw gone()
    if (span === null) return { headers, length: found.bytes, pieces: body.stream }
    const range = ['content-range', `bytes ${span.first}-${span.last}/${found.bytes}`] as const
    const length = span.last - span.first + 1
    return { status: 206, headers: [...headers, range], length, pieces: body.stream }
  })
}

async function redirectTo(store: LinkedStore, key: string, now: number): Promise<Reply> {
  const location = await store.makeLink(key, now + REDIRECT_MS)
  return makeEmptyReply(302, [
    ['location', location],
    ['cache-control', 'no-store'],
  ])
}

interface FileLink {
  readonly key: string
  /** Epoch milliseconds of the request. */
  readonly at: number
}

type LinkCall = Call & Asked<FileLink>
type FileCall = LinkCall & Found<StoredObject>

/** Serves a file. The link is the permission: no key is needed. */
export const files = (deps: LinkedFiles): Handler =>
  calls(checkFileLink(deps)).then(findFile(deps)).then(answerWithFile(deps)).toHandler()

/** Adds the key of the linked file. @throws Failure `permission_denied` */
const checkFileLink = ({ fileLinkKey, now = Date.now }: LinkedFiles): Stage<Call, LinkCall> =>
  readParams(({ request }) => {
    const at = now()
    return { key: checkLinkedKey(request, fileLinkKey, at), at }
  })

/** Adds the stored file. @throws Failure `not_found` */
const findFile = ({ files: store }: LinkedFiles): Stage<LinkCall, FileCall> =>
  find(async ({ params: { key } }) => {
    const found = await store.head(key).catch(throwUnreadable)
    if (found === null) throw gone()
    return found
  })

/** Answers with the file, or with a redirect to it. */
const answerWithFile = ({ files: store }: LinkedFiles): Stage<FileCall, never> =>
  answer(({ request, params: { key, at }, found }) =>
    store.servesLinks ? from(redirectTo(store, key, at)) : send(store, request, key, found, at),
  )

interface ByteSpan {
  /** Both inclusive. */
  readonly first: number
  readonly last: number
}

const ONE_RANGE = /^bytes=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i

/**
 * Reads the part of a file that a client requests in its `range` header (RFC 9110, section 14). Returns
 * null for the whole file, also for several parts and for an unknown form; `unsatisfiable` if the file has no such part.
 */
function readRange(header: string, size: number): ByteSpan | 'unsatisfiable' | null {
  const [, from = '', to = ''] = ONE_RANGE.exec(header) ?? []
  if (from === '' && to === '') return null
  if (from === '') {
    const length = Math.min(Number(to), size)
    return length === 0 ? 'unsatisfiable' : { first: size - length, last: size - 1 }
  }
  const first = Number(from)
  if (to !== '' && Number(to) < first) return null
  if (first >= size) return 'unsatisfiable'
  return { first, last: to === '' ? size - 1 : Math.min(Number(to), size - 1) }
}
