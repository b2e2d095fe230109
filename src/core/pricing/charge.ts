/** Charges an answer by tokens: that of a call that its client waits for, and that of a task. */
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { Credits } from '../../../schemas/money.ts'
import { countLinkedTokens, type EstimatedCall } from './estimate.ts'
import { chargeTerms, type TokenPrice, tokenCharge } from './pricing.ts'
import { estimateInputTokens, estimateOutputTokens } from './text-tokens.ts'
import type { TokenUsage } from './usage.ts'
import {
  type BoundedCall,
  type BoundingModel,
  boundUsage,
  chooseTrustedTier,
  countEstimatedToolCalls,
  limitUsage,
} from './usage-bounds.ts'

interface ChargedAnswer {
  readonly model: BoundingModel
  readonly call: BoundedCall & Pick<EstimatedCall, 'promptBytes' | 'links' | 'serviceTier'>
  readonly price: TokenPrice
  /** Epoch milliseconds, which decide the price. */
  readonly submittedAt: number
  /** What the answer used: as reported, or by estimate. */
  readonly used: TokenUsage
  readonly source: Settlement['usage_source']
  /** What the upstream reports; null without a report. */
  readonly reported: TokenUsage | null
  /** Why the report contradicts itself; empty where it does not. */
  readonly contradictions: string
  /** Returns the characters that were delivered. */
  readonly characters: () => number
  /** The upstream's word for its service tier; empty where it names none. */
  readonly serviceTier: string
}

export interface TokenCharge {
  readonly cost: Credits
  readonly usage: TokenUsage
  readonly source: Settlement['usage_source']
  /** Counts that no call can have, and contradictions; empty without any. */
  readonly suspect: string
  readonly serviceTier: string
  /** The prices, as the detail has them; null where nothing is charged. */
  readonly terms: string | null
}

/**
 * Charges what an answer used, credits. Counts that no call can have are cut to their bounds. Of a report that cannot be
 * believed, no more is charged than the estimate's formula has for what was delivered.
 */
export function chargeTokens(answer: ChargedAnswer): TokenCharge {
  const { model, call, price, submittedAt, used, source, reported, contradictions } = answer
  const { usage: bounded, beyond } = boundUsage(used, model, call)
  // An estimate beyond its bound is no fault of the upstream.
  const faults = beyond.length === 0 || reported === null ? [] : boundUsage(reported, model, call).beyond
  const suspect =
    faults.length === 0
      ? contradictions
      : [contradictions, ...faults].filter((fault) => fault !== '').join(', ')
  const usage =
    suspect === ''
      ? bounded
      : limitUsage(bounded, {
          prompt: estimateInputTokens(call.promptBytes) + countLinkedTokens(model, call.links),
          output: estimateOutputTokens(answer.characters()),
          serverToolCalls: countEstimatedToolCalls(model, call),
        })
  const serviceTier =
    suspect === ''
      ? answer.serviceTier
      : chooseTrustedTier(price, answer.serviceTier, call.serviceTier ?? '', submittedAt)
  return {
    cost: tokenCharge(price, usage, submittedAt, serviceTier),
    usage,
    source,
    suspect,
    serviceTier,
    terms: source === 'none' ? null : chargeTerms(price, usage, submittedAt, serviceTier),
  }
}
