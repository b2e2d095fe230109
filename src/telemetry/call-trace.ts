/** Notes of one call, taken while it runs and made into spans at its end. Made only where traces are exported. */
import type { Settlement } from '../../schemas/call-log/columns.ts'
import { type TraceContext, traceparentFor } from './trace-context.ts'
import type { TracedAttempt, Tracer } from './tracer.ts'

type OpenAttempt = { -readonly [K in keyof TracedAttempt]: TracedAttempt[K] }

export class CallTrace {
  readonly #tracer: Tracer
  readonly #context: TraceContext
  readonly #attempts: OpenAttempt[] = []

  /** @param traceparent the client's header, or empty */
  constructor(tracer: Tracer, traceparent: string) {
    this.#tracer = tracer
    this.#context = tracer.begin(traceparent)
  }

  /** Begins an attempt. Returns the `traceparent` for its upstream. */
  attempt(channelId: string): string {
    const seq = this.#attempts.length + 1
    const now = Date.now()
    this.#attempts.push({ seq, channelId, startMs: now, endMs: now, httpStatus: null, errorCode: null })
    return traceparentFor(this.#context, seq)
  }

  answered(httpStatus: number): void {
    const attempt = this.#attempts.at(-1)
    if (attempt) attempt.httpStatus = httpStatus
  }

  attemptEnded(errorCode: string | null): void {
    const attempt = this.#attempts.at(-1)
    if (!attempt) return
    attempt.endMs = Date.now()
    attempt.errorCode = errorCode
  }

  /** Ends the trace. `httpStatus` is the status that the client got. */
  ended(settlement: Settlement, route: string, httpStatus: number): void {
    this.#tracer.call(this.#context, {
      requestId: settlement.request_id,
      method: 'POST',
      route,
      httpStatus,
      status: settlement.status,
      errorCode: settlement.error_code,
      model: settlement.model,
      stream: settlement.stream,
      inputTokens: settlement.input_tokens,
      outputTokens: settlement.output_tokens,
      startMs: settlement.submitted_at,
      endMs: settlement.created_at,
      ttfbMs: settlement.ttfb_ms,
      attempts: this.#attempts,
    })
  }
}
