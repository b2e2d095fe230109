/** Records the calls received, for tests: bounded in number and bytes. */

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const MAX_CALLS = 100_000
const MAX_RECORDED_REQUESTS = 100
const MAX_RECORDED_REQUEST_BYTES = 64 * 1024 * 1024
const CREDENTIAL_HEADERS = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key', 'xi-api-key']

/**
 * `client_closed`: the caller went away before the answer was complete. `faulted`: a fault was committed on it.
 * A call that hangs by a fault is `running` until its caller goes away.
 */
type CallState = 'running' | 'completed' | 'client_closed' | 'faulted'

export type Call = {
  readonly id: number
  /** Epoch milliseconds. */
  readonly at: number
  readonly path: string
  readonly requestId: string | null
  model: string | null
  stream: boolean
  bodyBytes: number
  state: CallState
  closedAt: number | null
  outputTokens: number
  /** True if it was cleared after its end and no longer counts. */
  forgotten: boolean
}

/** A call as the control interface shows it; times are RFC 3339. */
export type CallView = {
  id: number
  at: string
  path: string
  model: string | null
  request_id: string | null
  stream: boolean
  body_bytes: number
  state: CallState
  closed_at: string | null
  output_tokens: number
}

/** A request as it was received. Credentials are replaced with `sha256:` and their digest. */
export type RequestView = {
  id: number
  method: string
  path: string
  headers: [name: string, value: string][]
  body_base64: string
}

export type CallStats = { calls: number } & Record<CallState, number>

type RecordedRequest = {
  readonly id: number
  readonly method: string
  readonly path: string
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
}

export class CallLog {
  #ring: Call[] = []
  #next = 0
  #lastId = 0
  #stats: CallStats = emptyStats()
  #requests: RecordedRequest[] = []
  #requestBytes = 0

  open(path: string, requestId: string | null): Call {
    this.#lastId += 1
    const call: Call = {
      ...{ id: this.#lastId, at: Date.now(), path, requestId, model: null, stream: false, bodyBytes: 0 },
      ...{ state: 'running' as const, closedAt: null, outputTokens: 0, forgotten: false },
    }
    this.#ring[this.#next] = call
    this.#next = (this.#next + 1) % MAX_CALLS
    this.#stats.calls += 1
    this.#stats.running += 1
    return call
  }

  /** Ends a call. Only a completed call can change again: its caller may leave before the answer is flushed. */
  close(call: Call, state: Exclude<CallState, 'running'>): void {
    const unflushed = call.state === 'completed' && state === 'client_closed'
    if (call.forgotten || (call.state !== 'running' && !unflushed)) return
    this.#stats[call.state] -= 1
    this.#stats[state] += 1
    call.state = state
    call.closedAt = Date.now()
  }

  record(call: Call, request: IncomingMessage, body: Buffer): void {
    const { method = '', rawHeaders } = request
    this.#requests.push({ id: call.id, method, path: redactPath(request.url ?? ''), rawHeaders, body })
    this.#requestBytes += body.length
    while (this.#requests.length > MAX_RECORDED_REQUESTS || this.#requestBytes > MAX_RECORDED_REQUEST_BYTES) {
      this.#requestBytes -= this.#requests.shift()?.body.length ?? 0
    }
  }

  /** Oldest first. */
  list(requestId: string | null = null): Call[] {
    const ordered = [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)]
    return requestId === null ? ordered : ordered.filter((call) => call.requestId === requestId)
  }

  request(id: number): RequestView | null {
    const kept = this.#requests.find((request) => request.id === id)
    if (kept === undefined) return null
    const { method, path, rawHeaders, body } = kept
    return { id, method, path, headers: redactHeaders(rawHeaders), body_base64: body.toString('base64') }
  }

  stats(): CallStats {
    return { ...this.#stats }
  }

  /** Forgets every call that has ended, and every kept request. */
  clear(): void {
    for (const call of this.#ring) call.forgotten = call.state !== 'running'
    this.#ring = this.list().filter((call) => !call.forgotten)
    this.#next = this.#ring.length % MAX_CALLS
    const { running } = this.#stats
    this.#stats = { ...emptyStats(), calls: running, running }
    this.#requests = []
    this.#requestBytes = 0
  }
}

function emptyStats(): CallStats {
  return { calls: 0, running: 0, completed: 0, client_closed: 0, faulted: 0 }
}

export function toView(call: Call): CallView {
  return {
    id: call.id,
    at: new Date(call.at).toISOString(),
    path: call.path,
    model: call.model,
    request_id: call.requestId,
    stream: call.stream,
    body_bytes: call.bodyBytes,
    state: call.state,
    closed_at: call.closedAt === null ? null : new Date(call.closedAt).toISOString(),
    output_tokens: call.outputTokens,
  }
}

function redactHeaders(rawHeaders: readonly string[]): [string, string][] {
  const pairs: [string, string][] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    const value = rawHeaders[index + 1] as string
    pairs.push([name, CREDENTIAL_HEADERS.includes(name.toLowerCase()) ? redact(value) : value])
  }
  return pairs
}

/** Keeps the scheme, so that a test can tell `Bearer` from a bare key. */
function redact(value: string): string {
  const [, scheme = '', credential = ''] = /^(\S+\s+)?(.*)$/.exec(value) ?? []
  return `${scheme}sha256:${createHash('sha256').update(credential).digest('hex')}`
}

function redactPath(url: string): string {
  return url.replace(/([?&](?:key|api_key)=)([^&]*)/g, (_, name: string, key: string) => name + redact(key))
}
