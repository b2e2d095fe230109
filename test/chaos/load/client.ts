/** One request and all that came of it, written to the history. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import type { CallLine, Record } from '../history.ts'

/** Longer than any call is planned to last: a run has an end whatever happens. */
const PATIENCE_MS = 20_000
const STREAM_END = 'data: [DONE]'

export interface Endpoint {
  readonly node: string
  readonly url: string
}

export interface Sent {
  readonly kind: CallLine['kind']
  readonly at: Endpoint
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly keyId: string
  readonly key: string
  readonly model: string
  readonly body: object | null
  readonly intent: string | null
  /** The client leaves so long after it called; null stays as long as anybody would. */
  readonly leavesAfterMs: number | null
}

/** Never fails: what went wrong is in the line. */
export function send(sent: Sent, record: Record): Promise<CallLine> {
  const { kind, at, keyId, model, intent } = sent
  const sentAt = Date.now()
  return new Promise((resolve) => {
    let response: IncomingMessage | null = null
    let headAt: number | null = null
    let hasLeft = false
    const pieces: Buffer[] = []
    const over = () => {
      clearTimeout(leaving)
      const text = Buffer.concat(pieces).toString('utf8')
      const status = response?.statusCode ?? null
      const read = readAnswer(text)
      const isWhole = response?.complete === true && (!isStream(response) || text.includes(STREAM_END))
      const requestId = response?.headers['x-gateway-trace']
      const line: CallLine = {
        ...{ type: 'call', kind, keyId, node: at.node, model, intent, sentAt, headAt },
        endedAt: Date.now(),
        status,
        requestId: typeof requestId === 'string' ? requestId : null,
        isReplay: response?.headers['idempotency-replayed'] === 'true',
        end: isWhole ? 'complete' : hasLeft ? 'left' : 'cut',
        ...read,
      }
      record(line)
      resolve(line)
    }
    const outgoing = begin(sent)
    const leaving = setTimeout(() => {
      hasLeft = true
      outgoing.destroy()
    }, sent.leavesAfterMs ?? PATIENCE_MS)
    outgoing.on('response', (head) => {
      response = head
      headAt = Date.now()
      head.on('data', (bytes) => pieces.push(bytes))
      head.on('error', () => {
        // `close` follows in any case.
      })
      head.on('close', over)
    })
    outgoing.on('error', () => {
      // `close` follows in any case.
    })
    outgoing.on('close', () => {
      if (response === null) over()
    })
    outgoing.end(sent.body === null ? undefined : JSON.stringify(sent.body))
  })
}

function begin({ at, method, path, key, intent }: Sent): ClientRequest {
  return request(at.url + path, {
    method,
    agent: false,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(intent !== null && { 'idempotency-key': intent }),
    },
  })
}

const isStream = (head: IncomingMessage): boolean =>
  head.headers['content-type']?.startsWith('text/event-stream') === true

type Read = Pick<CallLine, 'code' | 'usage' | 'answerId' | 'state'>

/** Reads a JSON body, or the data of all events: the last usage counts. */
function readAnswer(text: string): Read {
  let read: Read = { code: null, usage: null, answerId: null, state: null }
  for (const part of text.startsWith('{') ? [text] : text.split('\n').map(readData)) {
    const value = parse(part)
    if (value === null) continue
    read = {
      code: value.error?.code ?? read.code,
      usage: value.usage?.prompt_tokens === undefined ? read.usage : tokensOf(value.usage),
      answerId: value.id ?? read.answerId,
      state: value.status ?? read.state,
    }
  }
  return read
}

interface Body {
  readonly id?: string
  readonly status?: string
  readonly error?: { readonly code?: string }
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null
}

const readData = (line: string): string => (line.startsWith('data: ') ? line.slice('data: '.length) : '')

const tokensOf = ({ prompt_tokens = 0, completion_tokens = 0 }: NonNullable<Body['usage']>) => ({
  input: prompt_tokens,
  output: completion_tokens,
})

function parse(text: string): Body | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? (value as Body) : null
  } catch {
    return null
  }
}
