/** What stands in the journal, one JSON object a line. */
import { z } from 'zod'
import type { Settlement } from '../../schemas/event.ts'

/** A call that was let in. `estimate` counts 1e-8 credit, `submitted_at` is epoch milliseconds. */
export const admission = z.object({
  request_id: z.string(),
  account_id: z.string(),
  key_id: z.string(),
  model: z.string(),
  protocol: z.string(),
  stream: z.boolean(),
  submitted_at: z.int(),
  estimate: z.string(),
})
export type Admission = z.infer<typeof admission>

/** A longer settlement is shortened in its texts, so that many of them fit a message. */
export const SETTLEMENT_MAX_CHARS = 64 * 1024
const SHORTENED_TEXT_CHARS = 500
const SHORTENED_ATTEMPTS = 8

export const admissionLine = (call: Admission): string => `${JSON.stringify(call)}\n`

export function settlementLine(settlement: Settlement): string {
  const line = `${JSON.stringify(settlement)}\n`
  return line.length <= SETTLEMENT_MAX_CHARS ? line : `${JSON.stringify(shorten(settlement))}\n`
}

const shortenText = (text: string | null): string | null => text?.slice(0, SHORTENED_TEXT_CHARS) ?? null

function shorten(settlement: Settlement): Settlement {
  return {
    ...settlement,
    error_message: shortenText(settlement.error_message),
    attempts: settlement.attempts.slice(0, SHORTENED_ATTEMPTS).map((attempt) => ({
      ...attempt,
      error_code: shortenText(attempt.error_code),
      error_message: shortenText(attempt.error_message),
    })),
  }
}

export const INTERRUPTED_MESSAGE = 'The gateway stopped during the call.'

/** The end of a call whose process died before its end: no charge. Source: design, "A settlement". */
export function interruptedSettlement(call: Admission, now: number): Settlement {
  return {
    request_id: call.request_id,
    account_id: call.account_id,
    key_id: call.key_id,
    model: call.model,
    protocol: call.protocol,
    stream: call.stream,
    status: 'interrupted',
    error_code: null,
    error_message: INTERRUPTED_MESSAGE,
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    server_tool_calls: 0,
    unit_count: null,
    unit_type: null,
    cost: '0',
    estimate: call.estimate,
    usage_source: 'none',
    submitted_at: call.submitted_at,
    created_at: now,
    latency_ms: Math.max(0, now - call.submitted_at),
    ttfb_ms: null,
    channel_id: null,
    attempts_count: null,
    attempts: [],
  }
}
