/** W3C Trace Context: https://www.w3.org/TR/trace-context/#traceparent-header */
import { randomBytes } from 'node:crypto'

/** Ids are lower-case hexadecimal digits. */
export interface TraceContext {
  /** 32 digits. */
  readonly traceId: string
  /** 16 digits: the span of the call itself. */
  readonly spanId: string
  /** The caller's span; null where the trace begins here. */
  readonly parentSpanId: string | null
  readonly sampled: boolean
}

const TRACE_ID_BYTES = 16
const SPAN_ID_BYTES = 8
const SAMPLED_FLAG = 1
/** Later versions may add fields behind these; version ff is not one. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const NONE = /^0+$/

/** Parses the header. Returns null when it is absent or invalid: a new trace then begins. */
export function parseTraceparent(
  header: string,
): { traceId: string; spanId: string; sampled: boolean } | null {
  const match = TRACEPARENT.exec(header.trim())
  if (!match) return null
  const [, version, traceId = '', spanId = '', flags = '', more] = match
  if (NONE.test(traceId) || NONE.test(spanId) || (version === '00' && more !== undefined)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED_FLAG) === SAMPLED_FLAG }
}

export const newTraceId = () => randomBytes(TRACE_ID_BYTES).toString('hex')
export const newSpanId = () => randomBytes(SPAN_ID_BYTES).toString('hex')

/**
 * Returns the span id of an attempt, known before its span is made, so that the upstream gets it. `seq` counts from 1
 * and is small: the ids of a call differ in their last digits and from that of the call itself.
 */
export function attemptSpanId(context: TraceContext, seq: number): string {
  const id = BigInt(`0x${context.spanId}`) ^ BigInt(seq) || 1n
  return id.toString(16).padStart(SPAN_ID_BYTES * 2, '0')
}

/** Returns the header that makes the upstream's work a child of attempt `seq`. */
export function traceparentFor(context: TraceContext, seq: number): string {
  const flags = context.sampled ? '01' : '00'
  return `00-${context.traceId}-${attemptSpanId(context, seq)}-${flags}`
}
