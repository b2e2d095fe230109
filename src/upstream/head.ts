import { consistsOf, FIELD_TEXT, TARGET, TOKEN } from './grammar.ts'

export type HeaderList = ReadonlyArray<readonly [name: string, value: string]>

/** Fields that frame the message or govern the connection: only this client writes them. */
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
  if (name === '' || !consistsOf(name, TOKEN))
    throw new TypeError('illegal character in a request header name')
  if (RESERVED_FIELDS.has(name.toLowerCase()))
    throw new TypeError(`the client itself sets the header ${name}`)
  if (!consistsOf(value, FIELD_TEXT)) throw new TypeError(`illegal character in the value of header ${name}`)
  return `${name}: ${value}\r\n`
}

/**
 * Request line, Host and constant fields: the part of a head that is the same for every call of a channel. Made once,
 * finished per call by `finishHead`.
 *
 * @param path begins with `/`, query included; visible ASCII only
 * @throws TypeError on anything that could end a line or frame a message: no request smuggling
 */
export function headPrefix(method: string, path: string, authority: string, headers: HeaderList): string {
  if (!/^[A-Z]+$/.test(method) || method === 'CONNECT') throw new TypeError('illegal request method')
  if (!path.startsWith('/') || !consistsOf(path, TARGET)) throw new TypeError('illegal request path')
  if (authority === '' || !consistsOf(authority, TARGET)) throw new TypeError('illegal request authority')
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${authority}\r\n`
  for (const [name, value] of headers) text += renderField(name, value)
  return text
}

/**
 * Completes a `headPrefix` with the fields of one call.
 *
 * @param contentLength bytes of the body; null where there is none and the method expects none (GET, HEAD)
 * @throws TypeError as `headPrefix` does
 */
export function finishHead(prefix: string, contentLength: number | null, headers?: HeaderList): string {
  let text = prefix
  if (headers !== undefined) for (const [name, value] of headers) text += renderField(name, value)
  if (contentLength === null) return `${text}\r\n`
  if (!Number.isSafeInteger(contentLength) || contentLength < 0) throw new TypeError('illegal content length')
  return `${text}content-length: ${contentLength}\r\n\r\n`
}

/** A whole request head, final empty line included, as a latin1 string. Throws as `headPrefix` does. */
export function renderHead(
  method: string,
  path: string,
  authority: string,
  headers: HeaderList,
  contentLength: number | null,
): string {
  return finishHead(headPrefix(method, path, authority, headers), contentLength)
}
