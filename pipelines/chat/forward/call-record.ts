/**
 * Facts of one call until its one settlement. It begins pessimistic: until a better fact is recorded, the call was
 * interrupted. See docs/api-rules.md, "Interrupted calls".
 */
import { Buffer } from 'node:buffer'
import type { Admission, Settlement } from '../../../schemas/call-log/columns.ts'
import type { AttemptRow, CallStatus } from '../../../schemas/call-log/row.ts'
import { ESTIMATE_OUTPUT_CAP_TOKENS } from '../../../schemas/config/catalog.ts'
import type { Failure } from '../../../schemas/failure.ts'
import type { Credits } from '../../../schemas/money.ts'
import {
  type LastAttempt,
  type Oddities,
  printForwardedDetail,
} from '../../../src/core/call-log/call-detail.ts'
import { printText } from '../../../src/core/call-log/detail-text.ts'
import { mask, maskSecrets, redact } from '../../../src/core/call-log/redact.ts'
import { emptySettlement } from '../../../src/core/call-log/settlement.ts'
import { estimateUnreportedPrompt, laterBytesIn } from '../../../src/core/pricing/estimate.ts'
import { estimateOutputTokens } from '../../../src/core/pricing/text-tokens.ts'
import { NO_USAGE, type TokenUsage } from '../../../src/core/pricing/usage.ts'
import { isRequestedModel } from '../../../src/core/routing/answered-model.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { OutputRates } from '../../../src/core/routing/output-rates.ts'
import { listUpstreamTexts } from '../../../src/core/routing/upstream-texts.ts'
import { NOTHING_METERED } from '../../../src/protocols/answer/reported-usage.ts'
import type { Metered } from '../../../src/protocols/dialect.ts'
import type { AttemptFailure } from '../../calls/upstream-error.ts'
import { type AdmittedCall, toAdmission } from '../precharge.ts'
import { isTellingTimeout } from './attempt-request.ts'
import { type CallCharge, chargeAnswer } from './charge.ts'

const NO_BYTES = Buffer.alloc(0)
const ANY = Number.POSITIVE_INFINITY

/** Its facts are recorded as they arrive. */
type OpenAttempt = { -readonly [Fact in keyof LastAttempt]: LastAttempt[Fact] }

export class CallRecord {
  admitted: AdmittedCall
  /** The admission, which the journal writes first; the settlement begins with it. */
  readonly admission: Admission
  ending: Ending = { kind: 'aborted' }
  /** True when any of the last attempt's request was sent; known when that attempt was aborted. */
  isSent = false
  firstByteAt: number | null = null
  attempt: OpenAttempt | null = null
  readonly #tried: readonly Route[]
  metered: Metered = NOTHING_METERED
  /** Output tokens that the model is taken to have made by now, shown or hidden; 0 where they are not estimated. */
  #madeTokens = 0
  /** Of the request's body, for the estimate; negative until they are counted. */
  #laterBytes = -1
  readonly attempts: AttemptRow[] = []
  readonly faults: string[] = []
  attemptsCount = 0

  constructor(admitted: AdmittedCall, tried: readonly Route[]) {
    this.#tried = tried
    this.admitted = admitted
    this.admission = toAdmission(admitted)
  }

  /** Forgets what the attempt before has sent and metered. Called before the next one waits for its files. */
  forgetAttempt(): void {
    this.metered = NOTHING_METERED
    this.isSent = false
  }

  /**
   * Records a new attempt. Called once the request is written: a request that could not be written is no attempt of
   * the channel.
   */
  beginAttempt(route: Route, dropped: readonly string[], now: number): void {
    this.attempt = { route, dropped, beganAt: now, status: null, answeredAt: null }
    this.attemptsCount++
  }

  /** Records the upstream's status. */
  recordStatus(status: number, now: number): void {
    const attempt = this.attempt!
    attempt.status = status
    attempt.answeredAt = now
  }

  /** Returns whether the failed attempt is its channel's fault; null where it timed out after little time. */
  blames({
    isTimeout,
    isChannelFault,
  }: Pick<AttemptFailure, 'isTimeout' | 'isChannelFault'>): boolean | null {
    const { route, beganAt } = this.attempt!
    return isTimeout && !isTellingTimeout(route.channel, this.admitted, beganAt) ? null : isChannelFault
  }

  /** Returns how long a successful attempt took to its first byte, milliseconds. */
  measureMsToFirstByte(): number {
    const { beganAt, answeredAt } = this.attempt!
    return (this.firstByteAt ?? answeredAt!) - beganAt
  }

  /** Records the end of the attempt. `code` and `message` are null for an attempt that did not fail. */
  endAttempt(code: string | null, message: string | null, now: number): void {
    const latency = now - this.attempt!.beganAt
    this.attempts.push({
      seq: this.attemptsCount,
      created_at: new Date(Date.now() - latency).toISOString(),
      latency_ms: Math.round(latency),
      error_code: code,
      error_message: message === null ? null : this.redact(message),
    })
  }

  /**
   * Returns the call and releases its body: no other attempt follows, and a stream of minutes need not hold a prompt
   * of megabytes.
   */
  releaseBody(): AdmittedCall {
    const { request, call } = this.admitted
    this.#countLaterBytes()
    this.admitted = {
      ...this.admitted,
      request: { ...request, body: NO_BYTES },
      call: { ...call, source: null },
    }
    return this.admitted
  }

  /** Returns true once the head of an answer has arrived. */
  #isAnswering(): boolean {
    const status = this.attempt?.status ?? 0
    return status >= 200 && status < 300
  }

  #countLaterBytes(): void {
    if (this.#laterBytes < 0 && this.admitted.call.units === undefined)
      this.#laterBytes = laterBytesIn(this.admitted.request.body)
  }

  /**
   * Returns the usage to bill. Usage that was reported in full applies where the answer reached its end. For any other
   * call the reports are a lower bound: output beyond them is estimated on top, and so is a prompt that was not
   * reported. A call that failed before any output costs nothing; one that its client left owes the prompt, and so
   * does one whose time ran out during its answer.
   */
  chooseUsage(): { usage: TokenUsage; source: Settlement['usage_source'] } {
    const { metered, ending } = this
    const { usage } = metered
    // Read no sooner than needed: some answers count their characters on demand.
    if (ending.kind === 'success' && usage !== null && metered.isUsageWhole)
      return { usage, source: 'upstream' }
    const reported = usage ?? NO_USAGE
    if (metered.characters === 0 && !this.#owesWithoutText(reported))
      return { usage: NO_USAGE, source: 'none' }
    if (this.admitted.call.units !== undefined) return { usage: reported, source: 'estimate' }
    const said = metered.charactersSinceUsage
    const prompt = reported.prompt || this.#estimatePrompt()
    const shown = reported.output + estimateOutputTokens(said)
    const hidden = Math.max(0, this.#madeTokens - shown)
    const isReported = ending.kind !== 'success' && reported.prompt > 0 && said === 0 && hidden === 0
    const { reasoning: isReasoning } = this.admitted.model.entry.capabilities
    const reasoning = reported.reasoning + (isReasoning ? hidden : 0)
    return {
      usage: { ...reported, prompt, output: shown + hidden, reasoning },
      source: isReported ? 'upstream' : 'estimate',
    }
  }

  /** Returns the output limit of the call, tokens: the client's, or that of the model which is sent in its place. */
  readOutputLimit(): number {
    const { call, model } = this.admitted
    return (call.outputLimit ?? model.entry.max_output_tokens ?? ESTIMATE_OUTPUT_CAP_TOKENS) * call.choices
  }

  /**
   * Measures how fast the model writes by an answer that reported its usage. Of one that its client left and that
   * reported none, estimates by that what a reasoning model hides, and what is not seen of an answer in one piece.
   * @param isLeft the client has left, and the call was read on
   */
  measureOutput(rates: OutputRates, now: number, isLeft: boolean): void {
    const { attempt, ending, metered, admitted } = this
    if (attempt === null) return
    const { model, call } = admitted
    const ms = now - attempt.beganAt
    if (ending.kind === 'success') {
      if (metered.isUsageWhole && metered.usage !== null) rates.measure(model.id, metered.usage.output, ms)
      return
    }
    const isHidden = model.entry.capabilities.reasoning || !call.stream || call.isAssembled === true
    if (!isLeft || metered.isUsageWhole || !isHidden) return
    this.#madeTokens = Math.min(this.readOutputLimit(), rates.tokensIn(model.id, ms))
  }

  #estimatePrompt(): number {
    const { call, model } = this.admitted
    return estimateUnreportedPrompt(model.entry, call, Math.max(0, this.#laterBytes))
  }

  #owesWithoutText(reported: TokenUsage): boolean {
    switch (this.ending.kind) {
      case 'success':
        return true
      case 'aborted':
        return this.isSent
      case 'timeout':
        // Hidden reasoning was reported, or the upstream had begun to answer.
        return reported.output > 0 || this.#isAnswering()
      default:
        return false
    }
  }

  /** Returns the name of the model that answered, where it differs from the one requested of the upstream. */
  #readOtherModel(): string {
    const { model = '' } = this.metered
    if (model === '' || this.attempt === null) return ''
    return isRequestedModel(this.attempt.route.upstreamModel, model) ? '' : model
  }

  /** Returns a text from an upstream as the call log may show it. */
  redact(text: string): string {
    const { names, secrets } = this.#listUpstreamTexts()
    return redact(text, names, secrets)
  }

  /** Returns a text from an upstream as the client may see it: masked as in the call log, and not cut. */
  mask(text: string): string {
    const { names, secrets } = this.#listUpstreamTexts()
    return mask(text, names, secrets)
  }

  /**
   * Returns an error that an upstream sent inside a stream, without its keys and its host. It is otherwise the client's
   * as it came: the same bytes where it holds none.
   */
  hideSecrets(bytes: Buffer): Buffer {
    const { hosts, secrets } = this.#listUpstreamTexts()
    const text = bytes.toString('latin1')
    const hidden = maskSecrets(text, [...secrets, ...hosts])
    return hidden === text ? bytes : Buffer.from(hidden, 'latin1')
  }

  #listUpstreamTexts() {
    return listUpstreamTexts(this.#tried, this.admitted.model.id)
  }

  #charge(metered: Metered, used: TokenUsage, source: Settlement['usage_source']): CallCharge {
    const { admitted, attempt } = this
    return chargeAnswer({ admitted, route: attempt?.route ?? null, metered, used, source })
  }

  /** Returns the charge for an answer that ends well here; null where its usage is not reported in full. */
  quoteCost(metered: Metered): Credits | null {
    const { usage, isUsageWhole } = metered
    return usage === null || !isUsageWhole ? null : this.#charge(metered, usage, 'upstream').cost
  }

  /** Returns the settlement, its cost separately for the wallet view, and the anomalies of the answer. */
  settle(now: number, performanceNow: number): { settlement: Settlement; cost: Credits; oddities: Oddities } {
    const { admission } = this
    const { request, model, call } = this.admitted
    // Reported counts are not estimated.
    if (!this.metered.isUsageWhole) this.#countLaterBytes()
    const { metered } = this
    const { usage: used, source } = this.chooseUsage()
    const charge = this.#charge(metered, used, source)
    const { usage, cost, suspect, terms, more, upstreamCost, unknownModel } = charge
    const otherModel = more === '' ? this.#readOtherModel() : unknownModel
    const oddities: Oddities = { suspect, reported: metered.reported, otherModel }
    const failure = this.ending.kind === 'aborted' || this.ending.kind === 'success' ? null : this.ending
    const settlement = emptySettlement(admission, now)
    // Another one than was admitted, where that one's channels failed.
    settlement.model = model.id
    settlement.status = STATUS_OF[this.ending.kind]
    if (failure !== null) {
      settlement.error_code = failure.kind === 'timeout' ? 'upstream_timeout' : failure.code
      settlement.error_message = this.redact(failure.message)
    }
    settlement.input_tokens = usage.prompt
    settlement.output_tokens = usage.output
    settlement.cached_tokens = usage.cached
    settlement.cache_write_tokens = usage.cacheWrite
    settlement.reasoning_tokens = usage.reasoning
    settlement.server_tool_calls = usage.serverToolCalls
    settlement.unit_count = charge.unitCount ?? null
    settlement.unit_type = call.units?.type ?? null
    settlement.cost = cost.toString()
    settlement.usage_source = source
    settlement.latency_ms = Math.round(performanceNow - request.startedAt)
    if (this.firstByteAt !== null) settlement.ttfb_ms = Math.round(this.firstByteAt - request.startedAt)
    settlement.channel_id = this.attempt?.route.channel.id ?? null
    settlement.attempts_count = this.attemptsCount
    settlement.attempts = this.attemptsCount > 1 || failure !== null ? this.attempts : []
    settlement.detail = printForwardedDetail({
      call,
      model,
      startedAt: request.startedAt,
      attempt: this.attempt,
      oddities,
      usage,
      terms,
      more: more + printText('failed_channels', this.faults.join(' '), ANY),
    })
    if (upstreamCost !== null) settlement.upstream_cost = String(upstreamCost)
    return { settlement, cost, oddities }
  }
}

/** The endings of a call: they decide what is owed and what its row says. */
export type Ending =
  /** The client went away, or the gateway is draining. */
  | { readonly kind: 'aborted' }
  | { readonly kind: 'success' }
  /** It could not be written for any upstream, so none was called; or the upstream refused what it asks for. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  /** The upstream failed, before or after the first byte. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  /** The gateway's own clock ran out. */
  | { readonly kind: 'timeout'; readonly message: string }

export const STATUS_OF: Readonly<Record<Ending['kind'], CallStatus>> = {
  aborted: 'interrupted',
  success: 'success',
  refused: 'rejected',
  failed: 'error',
  timeout: 'interrupted',
}

/** Returns the ending of a call that ends with this failure. */
export function toEnding({ code, message, isTimeout, isRejected = false }: AttemptFailure): Ending {
  if (isTimeout) return { kind: 'timeout', message }
  return { kind: isRejected ? 'refused' : 'failed', code, message }
}

const toFailedEnding = (code: string, message: string): Ending => ({ kind: 'failed', code, message })
export const toRefusedEnding = ({ code, message }: Failure): Ending => ({ kind: 'refused', code, message })

export const FAULT = toFailedEnding('internal_error', 'The gateway failed to handle the call.')
export const UNJOURNALED = toFailedEnding('service_unavailable', 'The journal cannot be written.')
