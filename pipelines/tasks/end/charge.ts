/** Computes the charge of an ended task: for its results, or for the tokens that its upstream reports. Pure. */
import type { JobOf, TaskResult } from '../../../schemas/media/job.ts'
import type { TaskPrice } from '../../../schemas/media/price.ts'
import type { KeptTokenPrice, ResponseFacts } from '../../../schemas/tasks/response.ts'
import { chargeMedia, type MediaCharge } from '../../../src/core/media/pricing.ts'
import { chargeTokens, type TokenCharge } from '../../../src/core/pricing/charge.ts'
import { estimateUnreportedPrompt } from '../../../src/core/pricing/estimate.ts'
import { toTokenPrice } from '../../../src/core/pricing/kept-price.ts'
import { estimateOutputTokens } from '../../../src/core/pricing/text-tokens.ts'
import { NO_USAGE, type TokenUsage } from '../../../src/core/pricing/usage.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'

export type TaskCharge = MediaCharge | TokenCharge

/** Returns null if nothing was delivered or used. With `computeMediaCost`, `price` is what the operator pays. */
export function chargeTask(
  { job, result, state, submittedAt }: Pick<Task, 'job' | 'result' | 'state' | 'submittedAt'>,
  price: TaskPrice,
  mediaCharge: typeof chargeMedia = chargeMedia,
): TaskCharge | null {
  if (result === null) return null
  if (price.unit !== '1M_tokens') return mediaCharge(price, job, result)
  if (job.work !== 'response') throw new Error(`a job ${job.work} has no price by tokens`)
  return countOwedTokens(price, job, result, { isAnswered: state === 'succeeded', submittedAt })
}

interface End {
  readonly isAnswered: boolean
  readonly submittedAt: number
}

function countOwedTokens(
  kept: KeptTokenPrice,
  { call }: JobOf<'response'>,
  { response }: TaskResult,
  { isAnswered, submittedAt }: End,
): TokenCharge | null {
  if (response === undefined) return null
  const { usage, source } = chooseUsage(
    response,
    estimateUnreportedPrompt(kept.model, call, call.laterBytes),
    isAnswered,
  )
  return chargeTokens({
    model: kept.model,
    call,
    price: toTokenPrice(kept),
    submittedAt,
    used: usage,
    source,
    reported: response.usage,
    contradictions: response.suspect,
    characters: () => response.characters,
    serviceTier: response.serviceTier,
  })
}

/**
 * Returns the usage of an answer: as reported, and for a whole answer an estimate of what was not. A failed or cancelled
 * answer owes only what was reported.
 */
function chooseUsage(
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
