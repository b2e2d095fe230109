/** Forms of replies: status lines, and the replies to HEAD. */
import { Buffer } from 'node:buffer'
import type { FullReply, Reply } from './handler.ts'

/** Turns an error into the reply that a client of this path expects. */
export type RenderError = (error: unknown) => FullReply

/** Status lines by number; the server wants the reason with it. */
const REASONS: Readonly<Record<number, string>> = {
  202: '202 Accepted',
  204: '204 No Content',
  206: '206 Partial Content',
  302: '302 Found',
  304: '304 Not Modified',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  402: '402 Payment Required',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  406: '406 Not Acceptable',
  408: '408 Request Timeout',
  409: '409 Conflict',
  413: '413 Content Too Large',
  415: '415 Unsupported Media Type',
  416: '416 Range Not Satisfiable',
  422: '422 Unprocessable Content',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  502: '502 Bad Gateway',
  503: '503 Service Unavailable',
  504: '504 Gateway Timeout',
}
const CONTENT_LENGTH = 'content-length'
/** Replies with these statuses end with their head. */
export const BODILESS: ReadonlySet<number> = new Set([204, 304])
/** Returns the reply to HEAD where GET has this one: the same head, with the length of the body in its place. */
export function makeWholeHead(reply: FullReply): FullReply {
  const { status, headers, body } = reply
  if (BODILESS.has(status) || headers.some(([name]) => name === CONTENT_LENGTH)) return reply
  return { ...reply, headers: [...headers, [CONTENT_LENGTH, String(Buffer.byteLength(body))]], body: '' }
}

/** Returns the reply to HEAD where GET has a body in pieces, whose length may not be known. */
export function makeStreamHead({ status, headers, length }: Extract<Reply, { type: 'head' }>): FullReply {
  const known = length === undefined ? headers : [...headers, [CONTENT_LENGTH, String(length)] as const]
  return { type: 'full', status, headers: known, body: '' }
}

export const toBuffer = (bytes: string | Uint8Array): Buffer =>
  typeof bytes === 'string'
    ? Buffer.from(bytes)
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

export const printStatusLine = (status: number): string => REASONS[status] ?? `${status} Status`
