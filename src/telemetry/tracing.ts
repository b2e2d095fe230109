/**
 * OpenTelemetry traces, where an OTLP endpoint is configured. A call costs two random ids at its start;
 * its spans are made of the recorded times at its end, and leave in batches.
 *
 * The usual variables hold: OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT), …_HEADERS, …_TIMEOUT,
 * OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_SDK_DISABLED.
 */
import type { Tracer } from './tracer.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Starts tracing. Returns null when no endpoint is set; the OpenTelemetry packages are then never loaded. Calls
 * `onProblem` for an export that fails.
 */
export async function startTracing(
  env: Environment,
  version: string,
  onProblem: (message: string) => void,
): Promise<Tracer | null> {
  const url = readEndpoint(env)
  if (url === null || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return null
  const { createTracer } = await import('./otlp-tracer.ts')
  return createTracer({ env, url, version, onProblem })
}

/** Returns the endpoint as OTLP defines it: the general endpoint is a base, the one for traces is used as it is. */
function readEndpoint(env: Environment): string | null {
  if (env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) return env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT
  return base ? `${base.replace(/\/+$/, '')}/v1/traces` : null
}
