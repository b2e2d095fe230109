/**
 * What a dialect is: the wire shapes of one public provider interface, and nothing else. Pace, faults, framing,
 * sockets and records belong to the stage that plays what a dialect answers.
 */

import type { IncomingHttpHeaders } from 'node:http'
import type { Frame, SseVariation } from './answers/sse.ts'
import type { Directives } from './directives/grammar.ts'
import type { Form } from './requests.ts'
import type { World } from './world.ts'

export type Dialect = {
  readonly name: string
  readonly endpoints: readonly Endpoint[]
  /** A failure in the dialect's own error shape. */
  failure(failure: SimulatedFailure): WholeAnswer
  /** Returns the same as an event of a stream, after this many other events. Default: only its body. */
  failureFrame?(failure: SimulatedFailure, eventsBefore: number): Frame
}

export type Endpoint = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Matches the whole path, without the query; its groups reach `open`. */
  readonly path: RegExp
  /**
   * Reads a request.
   *
   * @throws {SimulatedFailure} for what the provider would refuse.
   */
  open(request: ReceivedRequest): OpenedRequest
}

export type ReceivedRequest = {
  readonly path: RegExpExecArray
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** Returns the body as a form. @throws {SimulatedFailure} 400 if it is not one */
  readonly form: () => Form
  /** `http://host:port`, as the caller addressed it. */
  readonly origin: string
  readonly world: World
}

export type OpenedRequest = {
  /** The model's name as received, with directives; null or absent if the request has none. */
  readonly model?: string | null
  /** Default: false. */
  readonly stream?: boolean
  /** Directives of the request itself, weakest first. Null and undefined are none. */
  readonly directives?: readonly unknown[]
  /** @throws {SimulatedFailure} */
  answer(directives: Directives): Answer
}

export type Answer = WholeAnswer | StreamedAnswer

export type WholeAnswer = {
  readonly kind: 'whole'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
  readonly tokens: number
  /** How long it takes. Default: 0. */
  readonly workedMs?: number
  /** True if it is a requested fault. */
  readonly faulted?: boolean
}

export type StreamedAnswer = {
  readonly kind: 'streamed'
  readonly headers: Readonly<Record<string, string>>
  /** The dialect's framing, unless a directive says otherwise. Default: plain events. */
  readonly framing?: 'array' | readonly SseVariation[]
  /** Made one at a time, so that a long answer is never held whole. */
  readonly frames: Iterator<Frame, void>
}

/** The reason of a failure; each dialect has its own word for it. */
export type FailureReason =
  | 'invalid_request'
  | 'invalid_api_key'
  | 'model_not_found'
  | 'not_found'
  | 'method_not_allowed'
  | 'request_too_large'
  | 'rate_limited'
  | 'simulated'

type FailureDetails = {
  readonly param?: string
  readonly code?: string
  readonly isAskedFor?: boolean
  readonly workedMs?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** An error of the provider, in no dialect. */
export class SimulatedFailure extends Error {
  readonly status: number
  readonly reason: FailureReason
  /** The request field at fault. */
  readonly param: string | null
  /** The vendor's own code, if the reason is not enough. */
  readonly code: string | null
  /** True if the directive `outcome=refuse` is its only cause. */
  readonly isAskedFor: boolean
  /** How long the provider worked before it failed. */
  readonly workedMs: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, reason: FailureReason, message: string, details: FailureDetails = {}) {
    super(message)
    this.status = status
    this.reason = reason
    this.param = details.param ?? null
    this.code = details.code ?? null
    this.isAskedFor = details.isAskedFor ?? false
    this.workedMs = details.workedMs ?? 0
    this.headers = details.headers ?? {}
  }
}

export function jsonAnswer(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): WholeAnswer {
  const body = JSON.stringify(value)
  return {
    kind: 'whole',
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body,
    tokens: 0,
  }
}

/** Returns a request that is answered with this value. */
export const openWith = (value: unknown): OpenedRequest => ({ answer: () => jsonAnswer(200, value) })

/** Answers failures in JSON with this body. */
export const failuresAs =
  (toBody: (failure: SimulatedFailure) => unknown) =>
  (failure: SimulatedFailure): WholeAnswer =>
    jsonAnswer(failure.status, toBody(failure), failure.headers)

export const eventStream = (
  frames: Iterator<Frame, void>,
  headers: Readonly<Record<string, string>> = {},
): StreamedAnswer => ({
  kind: 'streamed',
  headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...headers },
  frames,
})

/** Parses the body as a JSON object. @throws {SimulatedFailure} 400 */
export function parseJsonObject(body: Buffer): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    throw new SimulatedFailure(400, 'invalid_request', 'We could not parse the JSON body of your request.')
  }
  if (isObject(value)) return value
  throw new SimulatedFailure(400, 'invalid_request', 'The body of your request is not a JSON object.')
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
