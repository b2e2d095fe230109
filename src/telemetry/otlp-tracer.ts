/** The tracer itself. Loaded only where traces are wanted. */
import {
  type Attributes,
  DiagLogLevel,
  diag,
  type HrTime,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import { attemptSpanId, newSpanId, newTraceId, parseTraceparent, type TraceContext } from './trace-context.ts'
import type { TracedAttempt, TracedCall, Tracer } from './tracer.ts'

type Environment = Readonly<Record<string, string | undefined>>

const SERVICE_NAME = 'tollgate'

interface TracerOptions {
  readonly env: Environment
  /** Address for OTLP over HTTP, with its path. */
  readonly url: string
  readonly version: string
  readonly onProblem: (message: string) => void
}

export function createTracer({ env, url, version, onProblem }: TracerOptions): Tracer {
  const report = (message: string) => onProblem(message)
  const ignore = () => {}
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  const processor = new BatchSpanProcessor(
    new OTLPTraceExporter({ url, timeoutMillis: exportTimeoutMs(env) }),
  )
  const sampler = makeSampler(env)
  const scope = { name: SERVICE_NAME, version }
  const resource = makeResource(env, version)

  return {
    begin(traceparent) {
      const parent = parseTraceparent(traceparent)
      const traceId = parent?.traceId ?? newTraceId()
      return {
        traceId,
        spanId: newSpanId(),
        parentSpanId: parent?.spanId ?? null,
        sampled: isSampled(sampler, traceId, parent),
      }
    },
    call(context, call) {
      if (!context.sampled) return
      const spans = [
        serverSpan(context, call),
        ...call.attempts.map((attempt) => clientSpan(context, call, attempt)),
      ]
      for (const span of spans) processor.onEnd({ ...span, resource, instrumentationScope: scope })
    },
    flush: () => processor.forceFlush().catch((error: unknown) => report(String(error))),
    close: () => processor.shutdown().catch((error: unknown) => report(String(error))),
  }
}

/** With all tries; also the most that closing waits for the collector. */
const DEFAULT_EXPORT_TIMEOUT_MS = 5_000

const exportTimeoutMs = (env: Environment) =>
  Number(env.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT || env.OTEL_EXPORTER_OTLP_TIMEOUT) || DEFAULT_EXPORT_TIMEOUT_MS

function makeResource(env: Environment, version: string): Resource {
  const own = resourceFromAttributes({
    'service.name': env.OTEL_SERVICE_NAME || SERVICE_NAME,
    'service.version': version,
    'process.pid': process.pid,
  })
  const named = detectResources({ detectors: [envDetector] })
  return defaultResource().merge(own).merge(named)
}

type Parent = ReturnType<typeof parseTraceparent>

/** Returns the sampler of a value that OpenTelemetry defines for `OTEL_TRACES_SAMPLER`. */
function makeSampler(env: Environment): Sampler {
  const name = env.OTEL_TRACES_SAMPLER || 'parentbased_always_on'
  const share = Number(env.OTEL_TRACES_SAMPLER_ARG || 1)
  const roots: Readonly<Record<string, () => Sampler>> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(share),
  }
  const root = (roots[name.replace(/^parentbased_/, '')] ?? roots.always_on!)()
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}

function isSampled(sampler: Sampler, traceId: string, parent: Parent): boolean {
  const context = parent
    ? trace.setSpanContext(ROOT_CONTEXT, {
        ...spanContext(parent.traceId, parent.spanId, parent.sampled),
        isRemote: true,
      })
    : ROOT_CONTEXT
  const { decision } = sampler.shouldSample(context, traceId, SERVICE_NAME, SpanKind.SERVER, {}, [])
  return decision === SamplingDecision.RECORD_AND_SAMPLED
}

const spanContext = (traceId: string, spanId: string, sampled: boolean): SpanContext => ({
  traceId,
  spanId,
  traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
})

type Span = Omit<ReadableSpan, 'resource' | 'instrumentationScope'>

function serverSpan(context: TraceContext, call: TracedCall): Span {
  const { traceId, parentSpanId } = context
  const failed = call.status === 'error' || call.status === 'interrupted' || call.httpStatus >= 500
  return {
    ...makeSpan(traceId, context.spanId, call.startMs, call.endMs),
    name: `${call.method} ${call.route}`,
    kind: SpanKind.SERVER,
    ...(parentSpanId && {
      parentSpanContext: { ...spanContext(traceId, parentSpanId, true), isRemote: true },
    }),
    status: { code: failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: {
      'http.request.method': call.method,
      'http.route': call.route,
      'http.response.status_code': call.httpStatus,
      'tollgate.request_id': call.requestId,
      'tollgate.status': call.status,
      ...modelAttributes(call),
      ...usageAttributes(call),
      ...(call.errorCode && { 'error.type': call.errorCode }),
    },
    events: call.ttfbMs === null ? [] : [{ name: 'first byte', time: hrTime(call.startMs + call.ttfbMs) }],
  }
}

/** Attributes follow the OpenTelemetry semantic conventions for generative AI client spans. */
function clientSpan(context: TraceContext, call: TracedCall, attempt: TracedAttempt): Span {
  const { traceId, spanId } = context
  const isLast = attempt === call.attempts.at(-1)
  return {
    ...makeSpan(traceId, attemptSpanId(context, attempt.seq), attempt.startMs, attempt.endMs),
    name: `chat ${call.model}`,
    kind: SpanKind.CLIENT,
    parentSpanContext: spanContext(traceId, spanId, true),
    status: { code: attempt.errorCode === null ? SpanStatusCode.UNSET : SpanStatusCode.ERROR },
    attributes: {
      ...modelAttributes(call),
      'tollgate.channel': attempt.channelId,
      'tollgate.attempt': attempt.seq,
      ...(attempt.httpStatus !== null && { 'http.response.status_code': attempt.httpStatus }),
      ...(attempt.errorCode && { 'error.type': attempt.errorCode }),
      ...(isLast && usageAttributes(call)),
    },
    events: [],
  }
}

function modelAttributes({ model, stream }: TracedCall): Attributes {
  return {
    'gen_ai.operation.name': 'chat',
    ...(model !== '' && { 'gen_ai.request.model': model }),
    'tollgate.stream': stream,
  }
}

const usageAttributes = ({ inputTokens, outputTokens }: TracedCall): Attributes => ({
  'gen_ai.usage.input_tokens': inputTokens,
  'gen_ai.usage.output_tokens': outputTokens,
})

function makeSpan(traceId: string, spanId: string, startMs: number, endMs: number) {
  const own = spanContext(traceId, spanId, true)
  return {
    spanContext: () => own,
    startTime: hrTime(startMs),
    endTime: hrTime(Math.max(startMs, endMs)),
    duration: hrTime(Math.max(0, endMs - startMs)),
    ended: true,
    links: [],
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

const MS_PER_SECOND = 1_000
const NS_PER_MS = 1e6

/** Returns whole seconds and the nanoseconds above them. */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / MS_PER_SECOND)
  return [seconds, Math.floor((ms - seconds * MS_PER_SECOND) * NS_PER_MS)]
}
