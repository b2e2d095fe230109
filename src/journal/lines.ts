/** The lines of the journal, one JSON object each. */
import { z } from 'zod'
import type { Settlement } from '../../schemas/events/event.ts'
import { cutText } from '../core/json/cut.ts'

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

export const admissionLine = (identity: string): string => `${identity}}\n`

/**
 * Returns the common beginning of one call's lines: it is printed once for both. A JSON object without its closing
 * brace.
 */
export const identityText = (call: Admission): string =>
  `{"request_id":${quoted(call.request_id)}${namesText(call)}${call.stream},` +
  `"submitted_at":${call.submitted_at},"estimate":"${call.estimate}"`

/** Returns the estimate, with which an `identityText` ends. */
export const estimateIn = (identity: string): bigint =>
  BigInt(identity.slice(identity.lastIndexOf('"', identity.length - 2) + 1, -1))

type Names = Pick<Admission, 'account_id' | 'key_id' | 'model' | 'protocol'>

/** The most keys whose names are cached; then the cache is cleared. */
const CACHED_KEYS = 4096
const printedNames = new Map<string, Names & { readonly text: string }>()

/**
 * Returns the names of a call. A key's calls mostly have the same names: printed once, and joined, they are copied in
 * one piece afterwards.
 */
function namesText({ account_id, key_id, model, protocol }: Names): string {
  const known = printedNames.get(key_id)
  if (known?.model === model && known.account_id === account_id && known.protocol === protocol)
    return known.text
  const text = [
    `,"account_id":${quoted(account_id)},"key_id":${quoted(key_id)}`,
    `,"model":${quoted(model)},"protocol":${quoted(protocol)},"stream":`,
  ].join('')
  if (printedNames.size >= CACHED_KEYS) printedNames.clear()
  printedNames.set(key_id, { account_id, key_id, model, protocol, text })
  return text
}

/**
 * Prints a settlement.
 * @param admitted the call's `identityText`, where it has been printed: another model may have served it since
 */
export function settlementLine(settlement: Settlement, admitted?: string): string {
  const isSame = admitted?.includes(`,"model":${quoted(settlement.model)},`)
  const identity = isSame ? admitted! : identityText(settlement)
  const line = printed(settlement, identity)
  return line.length <= SETTLEMENT_MAX_CHARS ? line : printed(shorten(settlement), identity)
}

/**
 * Prints a settlement without the defaults of the schema: half the bytes, which travel three times, and half the time.
 */
function printed(s: Settlement, identity: string): string {
  let line =
    `${identity},"status":"${s.status}","cost":"${s.cost}","usage_source":"${s.usage_source}",` +
    `"created_at":${s.created_at},"latency_ms":${s.latency_ms}`
  if (s.input_tokens !== 0) line += `,"input_tokens":${s.input_tokens}`
  if (s.output_tokens !== 0) line += `,"output_tokens":${s.output_tokens}`
  if (s.cached_tokens !== 0) line += `,"cached_tokens":${s.cached_tokens}`
  if (s.cache_write_tokens !== 0) line += `,"cache_write_tokens":${s.cache_write_tokens}`
  if (s.reasoning_tokens !== 0) line += `,"reasoning_tokens":${s.reasoning_tokens}`
  if (s.server_tool_calls !== 0) line += `,"server_tool_calls":${s.server_tool_calls}`
  if (s.ttfb_ms !== null) line += `,"ttfb_ms":${s.ttfb_ms}`
  if (s.attempts_count !== null) line += `,"attempts_count":${s.attempts_count}`
  if (s.channel_id !== null) line += `,"channel_id":${quoted(s.channel_id)}`
  if (s.error_code !== null) line += `,"error_code":${quoted(s.error_code)}`
  if (s.error_message !== null) line += `,"error_message":${quoted(s.error_message)}`
  if (s.unit_count !== null) line += `,"unit_count":${quoted(s.unit_count)}`
  if (s.unit_type !== null) line += `,"unit_type":${quoted(s.unit_type)}`
  if (s.detail !== undefined) line += `,"detail":${JSON.stringify(s.detail)}`
  if (s.call_count !== undefined) line += `,"call_count":${s.call_count}`
  if (s.upstream_cost !== undefined) line += `,"upstream_cost":"${s.upstream_cost}"`
  if (s.attempts.length > 0) line += `,"attempts":${JSON.stringify(s.attempts)}`
  return `${line}}\n`
}

const PLAIN = /^[\w.:@/-]*$/

/**
 * Quotes a text. Most strings of a settlement are ids: they need no escaping, and that check is cheaper than escaping.
 */
const quoted = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text))

const shortenText = (text: string | null): string | null =>
  text === null ? null : cutText(text, SHORTENED_TEXT_CHARS)

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

/**
 * Returns the settlement of a call whose process died before its end: no charge. See docs/architecture.md, "A
 * settlement".
 */
export function interruptedSettlement(call: Admission, now: number): Settlement {
  return {
    ...call,
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
    usage_source: 'none',
    created_at: now,
    latency_ms: Math.max(0, now - call.submitted_at),
    ttfb_ms: null,
    channel_id: null,
    attempts_count: null,
    attempts: [],
  }
}
