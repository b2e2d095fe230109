/** Builds the detail of a call from facts that are known anyway. Parses nothing. */
import type { StoredCounts, StoredModelCharge } from '../../../schemas/call-log/call-detail.ts'
import type { Credits } from '../../../schemas/money.ts'
import { shorten } from '../json/cut.ts'
import type { TokenCharge } from '../pricing/charge.ts'
import type { ExtraUsage, TokenUsage } from '../pricing/usage.ts'
import type { Model, Route } from '../routing/catalog.ts'
import { DETAIL_TEXT_MAX_CHARS, joinDetail, printJson, printNumber, printText } from './detail-text.ts'

/** A translation's list of dropped fields is cut here: it names every tool by its index. */
const DROPPED_MAX_CHARS = 500
const SUSPECT_MAX_CHARS = 200
const REPORTED_MAX_CHARS = 1000
const HTTP_OK = 200
const MICROSECONDS_PER_MS = 1000

/** Facts of the last attempt. Instants are those of `performance.now()`. */
export interface LastAttempt {
  readonly route: Route
  /** The fields that the translation dropped or changed; empty without a translation. */
  readonly dropped: readonly string[]
  readonly beganAt: number
  /** The upstream's status, and when it came; null before it has. */
  readonly status: number | null
  readonly answeredAt: number | null
}

const countMicroseconds = (from: number, to: number): number =>
  Math.max(0, Math.round((to - from) * MICROSECONDS_PER_MS))

/** The parts of a request that its detail names. */
interface DetailedCall {
  readonly model: string
  readonly promptBytes: number
  /** Pieces of the detail. */
  readonly settings: string
  readonly outputLimit: number | null
  readonly serviceTier?: string
  readonly builtInTools: readonly string[]
}

const printSize = (call: DetailedCall): string => printNumber('prompt_bytes', call.promptBytes)

function printRequest(call: DetailedCall, model: Pick<Model, 'id'> | null): string {
  let pieces = call.settings
  if (model !== null && call.model !== model.id)
    pieces += printText('model_as_asked', call.model, Number.POSITIVE_INFINITY)
  if (call.outputLimit !== null) pieces += printNumber('max_output_tokens', call.outputLimit)
  if (call.serviceTier !== undefined) pieces += printText('service_tier', call.serviceTier)
  if (call.builtInTools.length > 0) pieces += printText('built_in_tools', call.builtInTools.join(','))
  return pieces
}

function printAttempt({ route, dropped, beganAt, status, answeredAt }: LastAttempt, startedAt: number) {
  let pieces = printNumber('before_upstream_us', countMicroseconds(startedAt, beganAt))
  if (answeredAt !== null)
    pieces += printNumber('waiting_for_upstream_us', countMicroseconds(beganAt, answeredAt))
  if (status !== null && status !== HTTP_OK) pieces += printNumber('upstream_status', status)
  if (route.isTranslated) pieces += printText('upstream_protocol', route.protocol)
  if (dropped.length > 0) pieces += printText('left_out', dropped.join('; '), DROPPED_MAX_CHARS)
  return pieces
}

/** Anomalies of an upstream's answer. The texts are empty on a usual call. */
export interface Oddities {
  /** Reported counts that no call can have, separated by commas. */
  readonly suspect: string
  /** The usage object with them, as it came. */
  readonly reported: unknown
  /** The model that answered in place of the requested one, by its upstream name. */
  readonly otherModel: string
}

interface ForwardedFacts {
  readonly call: DetailedCall
  readonly model: Pick<Model, 'id'>
  readonly startedAt: number
  readonly attempt: LastAttempt | null
  readonly oddities: Oddities
  /** As it is charged. */
  readonly usage: TokenUsage
  /** The prices that held, as JSON; null where nothing was charged. */
  readonly terms: string | null
  /** Further pieces. */
  readonly more?: string
}

/** Returns a report's numbers with their names: its texts could be anything. */
function printSuspects({ suspect, reported }: Oddities): string {
  if (suspect === '') return ''
  const numbers = JSON.stringify(reported, (_, value) => (typeof value === 'string' ? undefined : value))
  return (
    printText('usage_suspect', suspect, SUSPECT_MAX_CHARS) +
    printText('usage_reported', numbers, REPORTED_MAX_CHARS)
  )
}

/** Returns the counts that the row has no columns for. */
function toStoredCounts({ tools, ...tokens }: ExtraUsage): StoredCounts {
  return {
    ...(tokens.cacheWrite1h > 0 && { cache_write_1h: tokens.cacheWrite1h }),
    ...(tokens.inputAudio > 0 && { input_audio: tokens.inputAudio }),
    ...(tokens.inputImage > 0 && { input_image: tokens.inputImage }),
    ...(tokens.outputAudio > 0 && { output_audio: tokens.outputAudio }),
    ...(tokens.outputImage > 0 && { output_image: tokens.outputImage }),
    ...(Object.keys(tools).length > 0 && { server_tools: tools }),
  }
}

/** Returns an empty text on most calls. */
const printExtra = ({ extra }: TokenUsage): string =>
  extra === undefined ? '' : printJson('counts', JSON.stringify(toStoredCounts(extra)))

/** The charge for what one of several models used. */
export interface ModelCharge extends Pick<TokenCharge, 'usage' | 'cost'> {
  readonly model: string
  readonly pricedAs?: string
  /** The prices that held, as JSON. */
  readonly terms: string
}

const toStoredCharge = ({ model, pricedAs, usage, cost, terms }: ModelCharge): StoredModelCharge => ({
  model: shorten(model, DETAIL_TEXT_MAX_CHARS),
  ...(pricedAs !== undefined && { priced_as: pricedAs }),
  input_tokens: usage.prompt,
  cached_tokens: usage.cached,
  cache_write_tokens: usage.cacheWrite,
  output_tokens: usage.output,
  reasoning_tokens: usage.reasoning,
  server_tool_calls: usage.serverToolCalls,
  ...(usage.extra !== undefined && { counts: toStoredCounts(usage.extra) }),
  prices: JSON.parse(terms),
  cost: String(cost),
})

/** Returns an empty text where one model made the answer. */
export const printModelCharges = (charges: readonly ModelCharge[] = []): string =>
  charges.length === 0 ? '' : printJson('models', JSON.stringify(charges.map(toStoredCharge)))

export const printForwardedDetail = ({
  call,
  model,
  startedAt,
  attempt,
  oddities,
  usage,
  terms,
  more = '',
}: ForwardedFacts) =>
  joinDetail(
    printSize(call),
    printRequest(call, model) +
      (attempt === null ? '' : printAttempt(attempt, startedAt)) +
      printSuspects(oddities) +
      (oddities.otherModel === '' ? '' : printNumber('answered_by_other_model', 1)) +
      (terms === null ? '' : printExtra(usage) + printJson('prices', terms)) +
      more,
  )

/** Facts of a refused call: each is absent when the refusal came before it was known. */
interface RefusedFacts {
  /** Set where the protocol does not determine it. */
  readonly path?: string
  readonly call?: DetailedCall
  readonly model?: Model
  /** The estimate, where it exceeded the free balance. */
  readonly estimate?: Credits
}

export const printRefusedDetail = ({ path, call, model, estimate }: RefusedFacts): string | null =>
  joinDetail(
    printText('endpoint', path) +
      (call === undefined ? '' : printSize(call) + printRequest(call, model ?? null)) +
      (estimate === undefined ? '' : printText('refused_estimate', String(estimate))),
  )
