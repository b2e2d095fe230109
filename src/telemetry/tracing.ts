/**
 * OpenTelemetry traces, where an OTLP endpoint is configured. A call costs two random ids at its start;
 * its spans are made of the recorded times at its end, and leave in batches.
 *
 * The usual variables hold: OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT), …_HEADERS, …_TIMEOUT,
 * OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_SDK_DISABLED.
 */

import type { CallStatus } from '../../schemas/call-log/row.ts'
import type { TraceContext } from './trace-context.ts'

type Environment = Readonly<Record<string, string | undefined>>

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
  /** Until the first byte went to the client; null when none did. */
  readonly ttfbMs: number | null
  readonly attempts: readonly TracedAttempt[]
}

export interface Tracer {
  /** At the call's start: `traceparent` is the client's header, or empty. */
  begin(traceparent: string): TraceContext
  /** At the call's end. Never throws and never waits. */
  call(context: TraceContext, call: TracedCall): void
  /** Neither of these rejects. */
  flush(): Promise<void>
  /** Flushes and stops. */
  close(): Promise<void>
}

/**
 * Null when no endpoint is set; the OpenTelemetry packages are then never loaded.
 * Calls `onProblem` for what cannot be exported.
 */
export async function startTracing(
  env: Environment,
  version: string,
  onProblem: (message: string) => void,
): Promise<Tracer | null> {
  const url = endpointOf(env)
  if (url === null || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return null
  const { createTracer } = await import('./otlp-tracer.ts')
  return createTracer({ env, url, version, onProblem })
}

/** As OTLP defines them: the general endpoint is a base, the one for traces is used as it is. */
function endpointOf(env: Environment): string | null {
  if (env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) return env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT
  return base ? `${base.replace(/\/+$/, '')}/v1/traces` : null
}
