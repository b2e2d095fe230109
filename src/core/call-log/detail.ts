/** Arranges a call of the log for a person who inspects it. See docs/api-rules.md, "Call log CSV, summary and detail". */
import type { CallDetail } from '../../../schemas/call-log/call-detail.ts'
import {
  type CallWithDetail,
  type DetailItem,
  LOG_KINDS,
  type LogDetail,
  type LogKind,
} from '../../../schemas/call-log/detail.ts'
import type { CallProtocol } from '../../../schemas/config/catalog.ts'
import { printCredits } from '../../../schemas/money.ts'
import { chargeLines } from './detail-charge.ts'
import { type Fact, items } from './detail-items.ts'
import { explainCall } from './detail-note.ts'
import { readDetail } from './detail-text.ts'

type PathOf = (call: CallWithDetail) => string
/** Path of each protocol, as a client writes it; others have no line. */
const ENDPOINTS: Readonly<Record<CallProtocol, PathOf> & Record<string, PathOf>> = {
  'chat-completions': () => 'POST /v1/chat/completions',
  messages: () => 'POST /v1/messages',
  responses: () => 'POST /v1/responses',
  embeddings: () => 'POST /v1/embeddings',
  rerank: () => 'POST /v1/rerank',
  audio_transcriptions: () => 'POST /v1/audio/transcriptions',
  'generate-content': ({ stream }) =>
    `POST /v1beta/models/{model}:${stream ? 'streamGenerateContent' : 'generateContent'}`,
}

const MICROSECONDS_PER_MS = 1000
const HTTP_OK = 200

const readEndpoint = (call: CallWithDetail, { endpoint }: CallDetail): string | undefined =>
  endpoint === undefined ? ENDPOINTS[call.protocol]?.(call) : `POST ${endpoint}`

const isTask = ({ task_id }: CallWithDetail): boolean => task_id !== null

/** Facts that are shown under their own names, in this order. */
const SETTINGS = [
  ...['messages', 'prompt_bytes', 'max_output_tokens', 'temperature', 'top_p', 'top_k'],
  ...['frequency_penalty', 'presence_penalty', 'choices', 'seed', 'stop_sequences'],
  ...['reasoning_effort', 'thinking_budget_tokens', 'tools', 'service_tier', 'built_in_tools'],
  ...['tool_choice', 'response_format', 'agent', 'knowledge_pages'],
] as const

function printRequestGroup(call: CallWithDetail, detail: CallDetail): DetailItem[] {
  return items([
    ['endpoint', readEndpoint(call, detail)],
    ['protocol', call.protocol],
    ['model', call.model],
    ['model_as_asked', detail.model_as_asked],
    ['stream', isTask(call) ? undefined : call.stream],
    ...SETTINGS.map((name): Fact => [name, detail[name]]),
    ...(detail.request ?? []),
  ])
}

/**
 * Returns the rows of attempts. A call's only attempt has no row when it succeeded: the call's row describes it. A
 * submit that was accepted succeeded, whatever became of the task.
 */
function listAttempts(call: CallWithDetail, detail: CallDetail): Fact[] {
  const unfailed = call.status === 'success' || isTask(call) ? 'answered' : 'broken off'
  const known = call.attempts ?? []
  if (known.length === 0) {
    if (call.attempts_count !== 1 || detail.before_upstream_us === undefined) return []
    const tookMs = Math.max(0, call.latency_ms - Math.round(detail.before_upstream_us / MICROSECONDS_PER_MS))
    return [['attempt_1', `${tookMs} ms: ${unfailed}`]]
  }
  return known.map(({ seq, latency_ms, error_code, error_message }) => [
    `attempt_${seq}`,
    `${latency_ms} ms: ${error_code === null ? unfailed : [error_code, error_message].filter(Boolean).join(', ')}`,
  ])
}

const readUpstreamStatus = (call: CallWithDetail, { upstream_status }: CallDetail): number | undefined =>
  upstream_status ?? (call.status === 'success' || call.ttfb_ms !== null ? HTTP_OK : undefined)

/** Returns the group of a task after its submit: its course and its result. */
function printTaskUpstreamGroup(call: CallWithDetail, { result = [] }: CallDetail): DetailItem[] {
  const known = call.attempts ?? []
  const count = call.attempts_count ?? known.length
  return items([['attempts', count === 0 ? undefined : count], ...listAttempts(call, {}), ...result])
}

function printUpstreamGroup(call: CallWithDetail, detail: CallDetail): DetailItem[] {
  if (isTask(call)) return printTaskUpstreamGroup(call, detail)
  // Null: the gateway ended during the call, and the duration is unknown.
  if (call.attempts_count === 0 || call.attempts_count === null) return []
  const { upstream_protocol: translatedTo, left_out: dropped } = detail
  return items([
    ['protocol', translatedTo ?? call.protocol],
    ['translation', translatedTo === undefined ? 'none' : `${call.protocol} to ${translatedTo}`],
    ['left_out', dropped],
    ['attempts', call.attempts_count],
    ...listAttempts(call, detail),
    ['status', readUpstreamStatus(call, detail)],
    ['answered_by_other_model', detail.answered_by_other_model === undefined ? undefined : 'true'],
  ])
}

const USAGE_SOURCES: Readonly<Record<CallWithDetail['usage_source'], string>> = {
  upstream: 'reported by the upstream',
  estimate: 'estimated by the gateway',
  none: 'nothing was used',
}

const inMs = (microseconds: number): string => String(microseconds / MICROSECONDS_PER_MS)

function listTaskTimes({ latency_ms }: CallWithDetail, before: number, submitting: number): Fact[] {
  const rest = latency_ms * MICROSECONDS_PER_MS - before - submitting
  return [
    ['time_before_submit_ms', inMs(before)],
    ['time_submitting_ms', inMs(submitting)],
    ['time_from_submit_to_end_ms', inMs(Math.max(0, rest))],
  ]
}

/** Returns the phases of a call in order; together they are the whole. */
function listTimes(
  call: CallWithDetail,
  { before_upstream_us: before, waiting_for_upstream_us: waiting }: CallDetail,
): Fact[] {
  const total: Fact[] = [
    ['time_to_first_byte_ms', call.ttfb_ms ?? undefined],
    ['time_total_ms', call.latency_ms],
  ]
  if (before === undefined) return total
  if (isTask(call)) return [...listTaskTimes(call, before, waiting ?? 0), ...total]
  const rest = call.latency_ms * MICROSECONDS_PER_MS - before - (waiting ?? 0)
  return [
    ['time_before_upstream_ms', inMs(before)],
    ['time_waiting_for_upstream_ms', waiting === undefined ? undefined : inMs(waiting)],
    [waiting === undefined ? 'time_without_answer_ms' : 'time_answering_ms', inMs(Math.max(0, rest))],
    ...total,
  ]
}

function printGatewayGroup(call: CallWithDetail, detail: CallDetail): DetailItem[] {
  const isRefused = call.status === 'rejected'
  return items([
    ['request_id', call.request_id],
    ['task_id', call.task_id ?? undefined],
    ['status', call.status],
    ['error_code', call.error_code ?? undefined],
    ['error_message', call.error_message ?? undefined],
    ['estimate', isRefused ? undefined : call.estimate],
    [
      'refused_estimate',
      detail.refused_estimate === undefined ? undefined : printCredits(BigInt(detail.refused_estimate)),
    ],
    ...chargeLines(call, detail),
    ['cost', call.cost],
    ['usage_suspect', detail.usage_suspect],
    ['usage_source', isRefused || isTask(call) ? undefined : USAGE_SOURCES[call.usage_source]],
    ...listTimes(call, detail),
  ])
}

const readKind = ({ unit_type }: CallWithDetail): LogKind | null =>
  LOG_KINDS.find((kind) => kind === unit_type) ?? null

export function printDetail(call: CallWithDetail): LogDetail {
  const detail = readDetail(call.detail)
  return {
    id: call.id,
    kind: readKind(call),
    request: printRequestGroup(call, detail),
    upstream: printUpstreamGroup(call, detail),
    gateway: printGatewayGroup(call, detail),
    request_note: explainCall(call, detail),
  }
}
