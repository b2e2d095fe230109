/** A call of the log, laid out for a person who looks into it. See docs/api-rules.md, "Call detail". */
import type { CallDetail } from '../../../schemas/call-log/call-detail.ts'
import {
  type CallWithDetail,
  type DetailItem,
  LOG_KINDS,
  type LogDetail,
  type LogKind,
} from '../../../schemas/call-log/detail.ts'
import { printCredits } from '../../../schemas/money.ts'
import { chargeLines } from './detail-charge.ts'
import { type Fact, items } from './detail-items.ts'
import { noteOf } from './detail-note.ts'
import { readDetail } from './detail-text.ts'
import { redact } from './redact.ts'

/** Where each protocol is spoken, as a client writes it; what is no protocol of ours has no line. */
const ENDPOINTS: Readonly<Record<string, (call: CallWithDetail) => string>> = {
  'chat-completions': () => 'POST /v1/chat/completions',
  messages: () => 'POST /v1/messages',
  responses: () => 'POST /v1/responses',
  'generate-content': ({ stream }) =>
    `POST /v1beta/models/{model}:${stream ? 'streamGenerateContent' : 'generateContent'}`,
}

const MICROSECONDS_PER_MS = 1000
const HTTP_OK = 200

const endpointOf = (call: CallWithDetail, { ep }: CallDetail): string | undefined =>
  ep === undefined ? ENDPOINTS[call.protocol]?.(call) : `POST ${ep}`

const isTask = ({ task_id }: CallWithDetail): boolean => task_id !== null

function requestGroup(call: CallWithDetail, detail: CallDetail): DetailItem[] {
  return items([
    ['endpoint', endpointOf(call, detail)],
    ['protocol', call.protocol],
    ['model', call.model],
    ['model_as_asked', detail.q],
    ['stream', isTask(call) ? undefined : call.stream],
    ['messages', detail.m],
    ['prompt_bytes', detail.b],
    ['max_output_tokens', detail.o],
    ['temperature', detail.t],
    ['top_p', detail.p],
    ['top_k', detail.k],
    ['frequency_penalty', detail.fp],
    ['presence_penalty', detail.pp],
    ['choices', detail.n],
    ['seed', detail.s],
    ['stop_sequences', detail.st],
    ['reasoning_effort', detail.e],
    ['thinking_budget_tokens', detail.eb],
    ['tools', detail.tn],
    ['built_in_tools', detail.bt],
    ['tool_choice', detail.tc],
    ['response_format', detail.f],
    ['agent', detail.ag],
    ['knowledge_pages', detail.kp],
    ...(detail.rq ?? []),
  ])
}

/**
 * The only attempt of a call that it did not fail leaves no separate row: the call's says all. A submit that took work
 * on was answered, whatever became of the work.
 */
function attemptsOf(call: CallWithDetail, detail: CallDetail): Fact[] {
  const unfailed = call.status === 'success' || isTask(call) ? 'answered' : 'broken off'
  const known = call.attempts ?? []
  if (known.length === 0) {
    if (call.attempts_count !== 1 || detail.w === undefined) return []
    const tookMs = Math.max(0, call.latency_ms - Math.round(detail.w / MICROSECONDS_PER_MS))
    return [['attempt_1', `${tookMs} ms: ${unfailed}`]]
  }
  return known.map(({ seq, latency_ms, error_code, error_message }) => [
    `attempt_${seq}`,
    `${latency_ms} ms: ${error_code === null ? unfailed : [error_code, error_message].filter(Boolean).join(', ')}`,
  ])
}

const statusOf = (call: CallWithDetail, { h }: CallDetail): number | undefined =>
  h ?? (call.status === 'success' || call.ttfbMs !== null ? HTTP_OK : undefined)

/** Work that goes on behind the submit: how that went, and what came of it. */
function taskUpstreamGroup(call: CallWithDetail, { up = [] }: CallDetail): DetailItem[] {
  const known = call.attempts ?? []
  const count = call.attempts_count ?? known.length
  return items([['attempts', count === 0 ? undefined : count], ...attemptsOf(call, {}), ...up])
}

function upstreamGroup(call: CallWithDetail, detail: CallDetail): DetailItem[] {
  if (isTask(call)) return taskUpstreamGroup(call, detail)
  // Null: the gateway died during the call, and nobody knows.
  if (call.attempts_count === 0 || call.attempts_count === null) return []
  const { u: translatedTo, d: dropped } = detail
  return items([
    ['protocol', translatedTo ?? call.protocol],
    ['translation', translatedTo === undefined ? 'none' : `${call.protocol} to ${translatedTo}`],
    ['left_out', dropped],
    ['attempts', call.attempts_count],
    ...attemptsOf(call, detail),
    ['status', statusOf(call, detail)],
    ['answered_by_other_model', detail.om === undefined ? undefined : 'true'],
  ])
}

const USAGE_SOURCES: Readonly<Record<CallWithDetail['usageSource'], string>> = {
  upstream: 'reported by the upstream',
  estimate: 'estimated by the gateway',
  none: 'nothing was used',
}

const inMs = (microseconds: number): string => String(microseconds / MICROSECONDS_PER_MS)

function taskTimesOf({ latency_ms }: CallWithDetail, before: number, submitting: number): Fact[] {
  const rest = latency_ms * MICROSECONDS_PER_MS - before - submitting
  return [
    ['time_before_submit_ms', inMs(before)],
    ['time_submitting_ms', inMs(submitting)],
    ['time_from_submit_to_end_ms', inMs(Math.max(0, rest))],
  ]
}

/** The stretches of a call, one behind the other; together they are the whole. */
function timesOf(call: CallWithDetail, { w: before, a: waiting }: CallDetail): Fact[] {
  const total: Fact[] = [
    ['time_to_first_byte_ms', call.ttfbMs ?? undefined],
    ['time_total_ms', call.latency_ms],
  ]
  if (before === undefined) return total
  if (isTask(call)) return [...taskTimesOf(call, before, waiting ?? 0), ...total]
  const rest = call.latency_ms * MICROSECONDS_PER_MS - before - (waiting ?? 0)
  return [
    ['time_before_upstream_ms', inMs(before)],
    ['time_waiting_for_upstream_ms', waiting === undefined ? undefined : inMs(waiting)],
    [waiting === undefined ? 'time_without_answer_ms' : 'time_answering_ms', inMs(Math.max(0, rest))],
    ...total,
  ]
}

function gatewayGroup(call: CallWithDetail, detail: CallDetail): DetailItem[] {
  const isRefused = call.status === 'rejected'
  return items([
    ['request_id', call.request_id],
    ['task_id', call.task_id ?? undefined],
    ['status', call.status],
    ['error_code', call.error_code ?? undefined],
    ['error_message', call.error_message ?? undefined],
    ['estimate', isRefused ? undefined : call.estimate],
    ['refused_estimate', detail.x === undefined ? undefined : printCredits(BigInt(detail.x))],
    ...chargeLines(call, detail),
    ['cost', call.cost],
    ['usage_suspect', detail.us],
    ['usage_source', isRefused || isTask(call) ? undefined : USAGE_SOURCES[call.usageSource]],
    ...timesOf(call, detail),
  ])
}

const kindOf = ({ unit_type }: CallWithDetail): LogKind | null =>
  LOG_KINDS.find((kind) => kind === unit_type) ?? null

/** Texts from elsewhere were masked when they were written; rows outlive the masks of their time. */
function masked(call: CallWithDetail): CallWithDetail {
  const names = call.channelId === null ? [] : [call.channelId]
  const mask = (text: string | null): string | null => (text === null ? null : redact(text, names))
  return {
    ...call,
    error_message: mask(call.error_message),
    attempts: call.attempts?.map((attempt) => ({ ...attempt, error_message: mask(attempt.error_message) })),
  }
}

export function detailView(stored: CallWithDetail): LogDetail {
  const call = masked(stored)
  const detail = readDetail(stored.detail)
  return {
    id: call.id,
    kind: kindOf(call),
    request: requestGroup(call, detail),
    upstream: upstreamGroup(call, detail),
    gateway: gatewayGroup(call, detail),
    request_note: noteOf(call, detail),
  }
}
