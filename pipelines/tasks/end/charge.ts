/** What a task owes at its end: for what was delivered, or for the tokens that its upstream reports. Pure. */
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { JobOf, TaskResult } from '../../../schemas/media/job.ts'
import type { TaskPrice } from '../../../schemas/media/price.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { KeptTokenPrice, ResponseFacts } from '../../../schemas/tasks/response.ts'
import { chargeOf, type MediaCharge } from '../../../src/core/media/pricing.ts'
import { linkedTokens, unreportedPrompt } from '../../../src/core/pricing/estimate.ts'
import { tokenPriceOf } from '../../../src/core/pricing/kept-price.ts'
import { chargeTerms, tokenCharge } from '../../../src/core/pricing/pricing.ts'
import { estimateInputTokens, estimateOutputTokens } from '../../../src/core/pricing/text-tokens.ts'
import { NO_USAGE, type TokenUsage } from '../../../src/core/pricing/usage.ts'
import {
  boundedUsage,
  estimatedToolCalls,
  trustedTier,
  trustedUsage,
} from '../../../src/core/pricing/usage-bounds.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'

export interface TokenCharge {
  readonly cost: Credits
  readonly usage: TokenUsage
  readonly source: Settlement['usage_source']
  /** Counts that no call can have, and contradictions; empty without any. */
  readonly suspect: string
  /** The prices, as the detail has them; null where nothing is charged. */
  readonly terms: string | null
}
export type TaskCharge = MediaCharge | TokenCharge

/** Returns null where nothing was delivered or used. `price` is the agreed one, or with `costOf` what the operator pays. */
export function chargeOfTask(
  { job, result, state, submittedAt }: Pick<Task, 'job' | 'result' | 'state' | 'submittedAt'>,
  price: TaskPrice,
  mediaCharge: typeof chargeOf = chargeOf,
): TaskCharge | null {
  if (result === null) return null
  if (price.unit !== '1M_tokens') return mediaCharge(price, job, result)
  if (job.work !== 'response') throw new Error(`a job ${job.work} has no price by tokens`)
  return tokensOwed(price, job, result, { isAnswered: state === 'succeeded', submittedAt })
}

interface End {
  readonly isAnswered: boolean
  readonly submittedAt: number
}

function tokensOwed(
  kept: KeptTokenPrice,
  { call }: JobOf<'response'>,
  { response }: TaskResult,
  { isAnswered, submittedAt }: End,
): TokenCharge | null {
  if (response === undefined) return null
  const { model } = kept
  const price = tokenPriceOf(kept)
  const estimated = unreportedPrompt(model, call, call.laterBytes)
  const { usage: used, source } = usageOf(response, estimated, isAnswered)
  if (source === 'none') return { cost: 0n, usage: NO_USAGE, source, suspect: '', terms: null }
  const { usage: bounded, beyond } = boundedUsage(used, model, call)
  const suspect = [response.suspect, ...beyond].filter((fault) => fault !== '').join(', ')
  const usage =
    suspect === ''
      ? bounded
      : trustedUsage(bounded, {
          prompt: estimateInputTokens(call.promptBytes) + linkedTokens(model, call.links),
          output: estimateOutputTokens(response.characters),
          serverToolCalls: estimatedToolCalls(model, call),
        })
  const { serviceTier: reported } = response
  const serviceTier =
    suspect === '' ? reported : trustedTier(price, reported, call.serviceTier ?? '', submittedAt)
  return {
    cost: tokenCharge(price, usage, submittedAt, serviceTier),
    usage,
    source,
    suspect,
    terms: chargeTerms(price, usage, submittedAt, serviceTier),
  }
}

/**
 * Returns what an answer has used: as it was reported, and what was not reported of a whole answer by estimate. One that
 * failed or was cancelled owes what was reported, and nothing else.
 */
function usageOf(
  { usage, isUsageWhole, charactersSinceUsage }: ResponseFacts,
  estimatedPrompt: number,
  isAnswered: boolean,
): Pick<TokenCharge, 'usage' | 'source'> {
  if (usage !== null && (isUsageWhole || !isAnswered)) return { usage, source: 'upstream' }
  if (!isAnswered) return { usage: NO_USAGE, source: 'none' }
  const counts: TokenUsage = usage ?? NO_USAGE
  const output = counts.output + estimateOutputTokens(charactersSinceUsage)
  return { usage: { ...counts, prompt: counts.prompt || estimatedPrompt, output }, source: 'estimate' }
}
