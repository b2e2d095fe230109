/**
 * Fetches a file that a caller named. The name is resolved, the address checked, and the connection goes to that very
 * address; redirects are checked again; size and time are capped. See docs/api-rules.md, "Links from clients".
 */
import { type LookupAddress, type LookupAllOptions, lookup as resolve } from 'node:dns'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { Failure } from '../../schemas/failure.ts'
import { type LinkFault, readWebLink } from '../../schemas/web-link.ts'
import { decodeBody, isDecodingError, isKnownCoding, splitCodings } from './content-coding.ts'
import { isPublicAddress } from './public-address.ts'

/** An import from an ES module also loads Node's WebSocket: 7 MB of memory. */
const { request: requestHttp } = process.getBuiltinModule('node:http')

export const MAX_REDIRECTS = 3
const MAX_URL_CHARS = 2048
/** Of links that no client gives: signed ones are long. */
export const MAX_SIGNED_URL_CHARS = 8192
export const DEFAULT_MAX_FILE_BYTES = 20 * 1024 * 1024
const DEFAULT_FETCH_TIMEOUT_MS = 20_000

export interface FetchLimits {
  readonly maxBytes?: number
  readonly timeoutMs?: number
  /** Of the URL, and of what it redirects to. */
  readonly maxUrlChars?: number
  /** Which addresses may be fetched from, in place of the public ones: a channel's own host, or a test's server. */
  readonly isAllowed?: (address: string) => boolean
  /** Name and port, as in a URL: files there may be fetched at whatever address that is. */
  readonly allowedHost?: string | null
  /** Sent only to `allowedHost`, and by the protocol of the first URL: never after a redirect elsewhere. */
  readonly headers?: ReadonlyArray<readonly [string, string]>
  readonly signal?: AbortSignal
}

/** A file while it is fetched. */
export interface FetchedStream {
  /** Fails with a public `Failure` when it is too large or late. Read it once. */
  readonly pieces: AsyncGenerator<Buffer, void>
  /** As the server says, without parameters; empty when it does not. */
  readonly mediaType: string
}

interface FetchedBytes {
  readonly bytes: Buffer
  /** Without parameters; empty when the server named none. */
  readonly mediaType: string
}

const MAX_SHOWN_CHARS = 200
/** The same for every address: two messages would reveal which names and hosts an inner network has. */
const UNREACHABLE = 'its server cannot be reached at a public address'
const NOT_PUBLIC = 'the address is not public'

/** A link as messages and logs may have it: what is behind its path may be all that keeps strangers from the file. */
export const hideQuery = (url: URL | string): string =>
  String(url)
    .replace(/[?#].*$/s, '')
    .slice(0, MAX_SHOWN_CHARS)

/** A link that leads to no file that can be fetched. */
export class LinkFailure extends Failure {
  /** The link as messages may have it. */
  readonly link: string
  /** The reason, which ends a sentence. */
  readonly reason: string

  constructor(url: URL | string, reason: string, internal?: string | undefined) {
    const link = hideQuery(url)
    super('invalid_request', `The file at ${link} cannot be fetched: ${reason}.`, { internal })
    this.link = link
    this.reason = reason
  }
}

/** The same for every address that is not fetched from, whether it is not public or does not answer. */
export const unreachable = (url: URL | string, internal: string = NOT_PUBLIC): LinkFailure =>
  new LinkFailure(url, UNREACHABLE, internal)

const LINK_FAULTS: Readonly<Record<LinkFault, string>> = {
  invalid: 'it is not a valid URL',
  not_web: 'it is neither http nor https',
  credentials: 'a URL with credentials is not accepted',
  ambiguous: 'a URL with a backslash, a control character or a host that reads in two ways is not accepted',
}

/** @throws Failure `invalid_request` for anything but a plain http(s) URL of at most 2,048 (or `maxChars`) characters */
export function checkUrl(text: string, maxChars = MAX_URL_CHARS): URL {
  if (text.length > maxChars) throw new LinkFailure(text, `the URL is longer than ${maxChars} characters`)
  const read = readWebLink(text)
  if (read instanceof URL) return read
  // Credentials are not repeated.
  const shown = read === 'credentials' || read === 'ambiguous' ? URL.parse(text)!.origin : text
  throw new LinkFailure(shown, LINK_FAULTS[read])
}

/** As `lookup` of `node:dns`, for all addresses. */
export type LookUp = (
  hostname: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Resolves and checks in one: what is connected to is what was checked. */
export const guardedLookup =
  (isAllowed: (address: string) => boolean, lookUp: LookUp = resolve): LookupFunction =>
  (hostname, options, done) => {
    lookUp(hostname, { ...options, all: true, family: 0 }, (error, addresses) => {
      if (error) return done(error, [])
      const found = addresses.filter(({ address }) => isAllowed(address))
      // One refused address among several refuses the name: a second look-up may give that one.
      if (found.length < addresses.length || found.length === 0)
        return done(Object.assign(new Error(NOT_PUBLIC), { code: 'NOT_PUBLIC' }), [])
      if (options.all) done(null, found)
      else done(null, found[0]!.address, found[0]!.family)
    })
  }

/** Returns the name or address of a URL, IPv6 without brackets. */
export const readHost = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

/** Returns whether a URL itself has an address that is not allowed: no look-up would refuse it. */
export function hasRefusedAddress(url: URL, isAllowed: (address: string) => boolean): boolean {
  const host = readHost(url)
  return isIP(host) !== 0 && !isAllowed(host)
}

/** Sends a request on a separate connection. Resolves with the answer once its head has arrived. */
export const send = (url: URL, options: RequestOptions, body?: string): Promise<IncomingMessage> =>
  new Promise((done, fail) => {
    const request = url.protocol === 'https:' ? requestHttps : requestHttp
    const outgoing = request(url, { ...options, agent: false })
    outgoing.once('response', done)
    outgoing.once('error', fail)
    outgoing.end(body)
  })

async function* readPieces(
  response: IncomingMessage,
  url: URL,
  maxBytes: number,
): AsyncGenerator<Buffer, void> {
  const tooLarge = () => new LinkFailure(url, `it is larger than ${maxBytes} bytes`)
  const codings = splitCodings(response.headers['content-encoding'] ?? '')
  try {
    if (Number(response.headers['content-length'] ?? 0) > maxBytes) throw tooLarge()
    const unknown = codings.find((coding) => !isKnownCoding(coding))
    if (unknown !== undefined)
      throw new LinkFailure(url, `its coding ${JSON.stringify(unknown)} is not known`)
    let length = 0
    for await (const piece of decodeBody(response, codings) as AsyncIterable<Buffer>) {
      length += piece.length
      if (length > maxBytes) throw tooLarge()
      yield piece
    }
  } catch (error) {
    throw isDecodingError(error) ? new LinkFailure(url, `it is not valid ${codings.join(', ')}`) : error
  } finally {
    response.destroy()
  }
}

/** Where a redirect leads; null for a response that is none. */
function readRedirect(response: IncomingMessage, from: URL, maxChars?: number): URL | null {
  const status = response.statusCode ?? 0
  const { location } = response.headers
  if (status < 300 || status >= 400 || location === undefined) return null
  const target = URL.parse(location, from.href)
  if (target === null) throw new LinkFailure(from, 'it redirects to something that is not a URL')
  return checkUrl(target.href, maxChars)
}

const HEADERS = { 'user-agent': 'tollgate', accept: '*/*', 'accept-encoding': 'identity' }

/** The answer with the file, behind all redirects. */
async function follow(
  text: string,
  { isAllowed = isPublicAddress, allowedHost = null, headers = [], maxUrlChars }: FetchLimits,
  signal: AbortSignal,
): Promise<{ response: IncomingMessage; url: URL }> {
  let url = checkUrl(text, maxUrlChars)
  const { protocol } = url
  for (let redirects = 0; ; redirects++) {
    const isOwn = url.host === allowedHost
    const isReachable = isOwn ? () => true : isAllowed
    if (hasRefusedAddress(url, isReachable)) throw unreachable(url)
    const response = await send(url, {
      lookup: guardedLookup(isReachable),
      signal,
      headers: { ...HEADERS, ...(isOwn && url.protocol === protocol && Object.fromEntries(headers)) },
    })
    try {
      const next = readRedirect(response, url, maxUrlChars)
      if (next === null) {
        if (response.statusCode === 200) return { response, url }
        throw new LinkFailure(url, `its server answered with status ${response.statusCode}`)
      }
      if (redirects === MAX_REDIRECTS)
        throw new LinkFailure(url, `it redirects more than ${MAX_REDIRECTS} times`)
      response.destroy()
      url = next
    } catch (error) {
      response.destroy()
      throw error
    }
  }
}

/**
 * Hands the file over while it comes; what `take` does not read is not fetched. The time limit is for all of it.
 * @throws Failure `invalid_request` that says which file and why, never what an inner host answered; and what `take`
 *   throws
 */
export async function guardedStream<T>(
  text: string,
  limits: FetchLimits,
  take: (file: FetchedStream) => Promise<T>,
): Promise<T> {
  const { maxBytes = DEFAULT_MAX_FILE_BYTES, timeoutMs = DEFAULT_FETCH_TIMEOUT_MS } = limits
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = limits.signal ? AbortSignal.any([timeout, limits.signal]) : timeout
  const failure = (error: unknown, url: URL | string) => toFailure(error, url, timeout.aborted)
  const { response, url } = await follow(text, limits, signal).catch((error) => {
    throw failure(error, text)
  })
  const pieces = readPieces(response, url, maxBytes)
  async function* reportPieces() {
    try {
      yield* pieces
    } catch (error) {
      throw failure(error, url)
    }
  }
  const mediaType = (response.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase()
  try {
    return await take({ pieces: reportPieces(), mediaType })
  } finally {
    response.destroy()
  }
}

async function readWhole({ pieces, mediaType }: FetchedStream): Promise<FetchedBytes> {
  const held: Buffer[] = []
  for await (const piece of pieces) held.push(piece)
  return { bytes: Buffer.concat(held), mediaType }
}

/** The whole file. @throws as `guardedStream` does */
export const guardedFetch = (text: string, limits: FetchLimits = {}): Promise<FetchedBytes> =>
  guardedStream(text, limits, readWhole)

function toFailure(error: unknown, url: URL | string, isLate: boolean): Failure {
  if (error instanceof Failure) return error
  const { message } = error as Error
  if (isLate) return new LinkFailure(url, 'it did not come in time')
  return unreachable(url, message)
}
