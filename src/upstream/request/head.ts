import { Buffer } from 'node:buffer'
import { FIELD_TEXT, hasOnly, TARGET, TOKEN } from '../grammar.ts'

type HeaderList = ReadonlyArray<readonly [name: string, value: string]>

const NO_HEADERS: HeaderList = []

/** Fields that frame the message or govern the connection. Only this client writes them. */
const RESERVED_FIELDS = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'expect',
])

function renderField(name: string, value: string): string {
  if (name === '' || !hasOnly(name, TOKEN)) throw new TypeError('illegal character in a request header name')
  if (RESERVED_FIELDS.has(name.toLowerCase()))
    throw new TypeError(`the client itself sets the header ${name}`)
  if (!hasOnly(value, FIELD_TEXT)) throw new TypeError(`illegal character in the value of header ${name}`)
  return `${name}: ${value}\r\n`
}

/** Request line, Host and constant fields, rendered: the part of a head that every call of a channel shares. */
export interface HeadPrefix {
  readonly bytes: Buffer
  /** The method is HEAD: the response has no body, whatever its head says. */
  readonly isHead: boolean
}

/** A whole request head, final empty line included. */
export interface RequestHead {
  readonly prefix: HeadPrefix
  /** What follows the prefix, in latin1. */
  readonly rest: string
}

/**
 * Renders the part of a head that many calls share; `finishHead` completes it for each call.
 *
 * @param path begins with `/`, query included; visible ASCII only
 * @throws TypeError on anything that could end a line or frame a message: no request smuggling
 */
export function buildHeadPrefix(
  method: string,
  path: string,
  authority: string,
  headers: HeaderList,
): HeadPrefix {
  if (!/^[A-Z]+$/.test(method) || method === 'CONNECT') throw new TypeError('illegal request method')
  if (!path.startsWith('/') || !hasOnly(path, TARGET)) throw new TypeError('illegal request path')
  if (authority === '' || !hasOnly(authority, TARGET)) throw new TypeError('illegal request authority')
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${authority}\r\n`
  for (const [name, value] of headers) text += renderField(name, value)
  return { bytes: Buffer.from(text, 'latin1'), isHead: method === 'HEAD' }
}

/**
 * Completes a `buildHeadPrefix` with the fields of one call.
 *
 * @param contentLength bytes of the body; null where there is none and the method expects none (GET, HEAD)
 * @param checked whole lines that need no check: they hold nothing that came from outside
 * @throws TypeError as `buildHeadPrefix` does
 */
export function finishHead(
  prefix: HeadPrefix,
  contentLength: number | null,
  headers: HeaderList = NO_HEADERS,
  checked = '',
): RequestHead {
  let rest = checked
  for (const [name, value] of headers) rest += renderField(name, value)
  if (contentLength === null) return { prefix, rest: `${rest}\r\n` }
  if (!Number.isSafeInteger(contentLength) || contentLength < 0) throw new TypeError('illegal content length')
  return { prefix, rest: `${rest}content-length: ${contentLength}\r\n\r\n` }
}

/** Renders a whole head. Throws as `buildHeadPrefix` does. */
export function renderHead(
  method: string,
  path: string,
  authority: string,
  headers: HeaderList,
  contentLength: number | null,
): RequestHead {
  return finishHead(buildHeadPrefix(method, path, authority, headers), contentLength)
}

export const joinHead = ({ prefix, rest }: RequestHead): Buffer =>
  Buffer.concat([prefix.bytes, Buffer.from(rest, 'latin1')])
