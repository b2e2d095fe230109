/**
 * Posts to a receiver that a customer named: the name is resolved and checked for each post, and the connection goes to
 * that very address. Redirects are not followed. See docs/notifications.md.
 */
import type { IncomingMessage } from 'node:http'
import { checkUrl, guardedLookup, hasRefusedAddress, type LookUp, send } from './guarded-fetch.ts'
import { isPublicAddress } from './public-address.ts'

export interface PostOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** From the look-up to the end of the answer. */
  readonly timeoutMs: number
  /** The most of the answer that is read. */
  readonly maxAnswerBytes: number
  /** Instead of only public addresses. */
  readonly isAllowed?: (address: string) => boolean
  /** In place of the machine's resolver. */
  readonly lookUp?: LookUp
}

/** What came back; without a status the post failed before an answer began. */
export interface Posted {
  readonly status: number | null
  readonly answer: string
  /** Null once an answer has begun. */
  readonly failure: 'not_public' | 'timeout' | 'unreachable' | null
}

/** Reads the beginning of the answer; what is cut off by the signal is left out. */
async function readBeginning(response: IncomingMessage, maxBytes: number): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      pieces.push(piece)
      length += piece.length
      if (length >= maxBytes) break
    }
  } catch {
    // The status has arrived: it says how the receiver took the post.
  } finally {
    response.destroy()
  }
  return Buffer.concat(pieces).subarray(0, maxBytes).toString('utf8')
}

/** Never rejects. */
export async function guardedPost(text: string, options: PostOptions): Promise<Posted> {
  const { headers, body, timeoutMs, maxAnswerBytes, isAllowed = isPublicAddress, lookUp } = options
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const url = checkUrl(text)
    if (hasRefusedAddress(url, isAllowed)) return { status: null, answer: '', failure: 'not_public' }
    const request = {
      method: 'POST',
      lookup: guardedLookup(isAllowed, lookUp),
      signal,
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
    }
    const response = await send(url, request, body)
    const status = response.statusCode ?? 0
    return { status, answer: await readBeginning(response, maxAnswerBytes), failure: null }
  } catch (error) {
    const isRefused = (error as { code?: string }).code === 'NOT_PUBLIC'
    return {
      status: null,
      answer: '',
      failure: isRefused ? 'not_public' : signal.aborted ? 'timeout' : 'unreachable',
    }
  }
}
