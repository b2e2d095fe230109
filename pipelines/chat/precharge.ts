/**
 * Compares the estimate of the call with the free balance of the wallet, and with the spend cap and the budgets that
 * cover the key. Above any: 402, and nothing goes upstream. See docs/api-rules.md, "Pre-charge".
 */
import type { ChatProtocol, Estimate } from '../../schemas/config/catalog.ts'
import { type Credits, printCredits } from '../../schemas/money.ts'
import {
  assumedToolCalls,
  type EstimatedCall,
  type EstimatePart,
  estimateCharge,
  largestPart,
} from '../../src/core/pricing/estimate.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import { readSession } from '../../src/core/routing/session.ts'
import { admitWithinLimits, insufficientBalance, isLimited } from '../calls/balance.ts'
import type { Stage } from '../calls/pipeline.ts'
import type { PricedCall } from './select-model.ts'
import type { CountedCall } from './stored/count-in-conversation.ts'

export interface AdmittedCall extends CountedCall {
  /** Reserved in the views of the wallet, of the key's spend cap and of budgets from here on; the end of the call releases it. */
  readonly estimate: Credits
  /** True when the estimate is reserved over all processes before the call goes upstream. */
  readonly isShared: boolean
  /** The formula of the estimate. */
  readonly estimateMode: Estimate
  /** Calls of one session go to one channel, for the sake of its cache. Null without a session. */
  readonly pin: string | null
}

/**
 * Returns the text that keeps a conversation on one channel. See docs/api-rules.md, "Attempts".
 */
function pinOf({ request, known }: PricedCall): string | null {
  const session = readSession(request.header)
  return session === '' ? null : `${known.account.id} ${session}`
}

type Estimated = Pick<PricedCall, 'request' | 'model' | 'fallbacks'> & { readonly call: EstimatedCall }

/** Returns the estimate by the dearest model that may serve the call. */
export function estimateOf({ call, request, model, fallbacks }: Estimated, mode: Estimate): Credits {
  const options = { mode, now: request.submittedAt }
  let most = estimateCharge(model.price!, model.entry, call, options)
  for (const { model: other } of fallbacks) {
    const estimate = estimateCharge(other.price!, other.entry, call, options)
    if (estimate > most) most = estimate
  }
  return most
}

/** Names of the fields that a refusal speaks of. */
const FIELDS: Readonly<Record<ChatProtocol, Readonly<Record<'conversation' | 'limit', string>>>> = {
  'chat-completions': { conversation: 'messages', limit: 'max_tokens' },
  messages: { conversation: 'messages', limit: 'max_tokens' },
  responses: { conversation: 'input', limit: 'max_output_tokens' },
  'generate-content': { conversation: 'contents', limit: 'maxOutputTokens' },
}

function partName(part: EstimatePart, { call, protocol, model }: PricedCall): string {
  const { conversation, limit } = FIELDS[protocol]
  switch (part) {
    case 'prompt':
      return `the bytes of ${conversation}`
    case 'kept':
      return `the ${call.keptTokens} tokens that the conversation holds already`
    case 'tools_and_schemas':
      return 'the bytes of tools and schemas'
    case 'links':
      return 'the files that are given by URL'
    case 'output':
      return call.outputLimit === null
        ? `an output without a limit: set ${limit}`
        : `an output of ${limit} ${call.outputLimit}`
    case 'thinking':
      return `the ${call.thinkingTokens} tokens of reasoning that it asks for`
    case 'tool_calls':
      return `the ${assumedToolCalls(model.entry, call)} calls of tools that the upstream may run`
    case 'summary':
      return 'the summary of the prompt that it asks for'
  }
}

/** Returns the part that most of the estimate is for, as a refusal names it: `, 12.8 of them for …`. */
export function explainEstimate(priced: PricedCall, mode: Estimate): string {
  const { part, amount } = largestPart(priced.call, (call) => estimateOf({ ...priced, call }, mode))
  return amount === 0n ? '' : `, ${printCredits(amount)} of them for ${partName(part, priced)}`
}

/** Returns what a call may cost, for the refusal of a cap or a budget. An agent's key does not learn prices. */
export const costNote = (priced: PricedCall, estimate: Credits, mode: Estimate): string =>
  priced.known.key.kind === 'agent'
    ? ''
    : ` (up to ${printCredits(estimate)} credits${explainEstimate(priced, mode)})`

interface PrechargeDeps {
  readonly catalog: () => Catalog
}

/** Reserves the estimate in this process. @throws Failure `quota_exceeded`, and nothing is reserved */
export const precharge =
  <C extends PricedCall>(deps: PrechargeDeps): Stage<C, C & AdmittedCall> =>
  (call: C) => {
    const { known } = call
    const { wallet, estimate: mode } = deps.catalog().config
    const estimate = estimateOf(call, mode)
    const pin = pinOf(call)
    if (!known.view.admit(estimate, wallet.reserve_in_flight))
      throw insufficientBalance(known, estimate, explainEstimate(call, mode))
    if (isLimited(known)) {
      const note = () => costNote(call, estimate, mode)
      const refusal = admitWithinLimits(known, estimate, call.request.submittedAt, note)
      if (refusal !== null) {
        known.view.end(estimate, 0n)
        throw refusal
      }
    }
    const isShared = wallet.reserve_in_flight && known.view.needsSharing(wallet.exact_below)
    return { ...call, estimate, estimateMode: mode, isShared, pin }
  }
