/** Ended calls as a tracer takes them. */
import type { CallStatus } from '../../schemas/call-log/row.ts'
import type { TraceContext } from './trace-context.ts'

/** One try at an upstream. Instants are epoch milliseconds, with fractions. */
export interface TracedAttempt {
  /** Counts from 1, as in `traceparentFor`. */
  readonly seq: number
  readonly channelId: string
  readonly startMs: number
  readonly endMs: number
  /** The upstream's HTTP status; null when it gave none. */
  readonly httpStatus: number | null
  readonly errorCode: string | null
}

/** One ended call. */
export interface TracedCall {
  readonly requestId: string
  readonly method: string
  /** The route, such as `/v1/chat/completions`: never a path with an id or a query in it. */
  readonly route: string
  readonly httpStatus: number
  readonly status: CallStatus
  readonly errorCode: string | null
  /** Empty where it is not known. */
  readonly model: string
  readonly stream: boolean
  readonly inputTokens: number
  readonly outputTokens: number
  readonly startMs: number
  readonly endMs: number
  /** Time to the first byte for the client; null when none was sent. */
  readonly ttfbMs: number | null
  readonly attempts: readonly TracedAttempt[]
}

export interface Tracer {
  /** Begins a call's trace: `traceparent` is the client's header, or empty. */
  begin(traceparent: string): TraceContext
  /** Ends a call's trace. Never throws and never waits. */
  call(context: TraceContext, call: TracedCall): void
  /** Sends the finished spans. Does not reject, nor does the next. */
  flush(): Promise<void>
  /** Flushes and stops. */
  close(): Promise<void>
}
