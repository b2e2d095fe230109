/**
 * Compares the worst case of the call with the free balance of the wallet, and with the spend cap and the budgets that
 * cover the key. Above any: 402, and nothing goes upstream. See docs/api-rules.md, "Pre-charge".
 */
import type { Credits } from '../../../schemas/money.ts'
import { estimateCharge } from '../../../src/core/pricing/estimate.ts'
import type { Catalog, Model } from '../../../src/core/routing/catalog.ts'
import { readSession } from '../../../src/core/routing/session.ts'
import type { PricedCall } from '../select-model.ts'
import { type Stage, stage } from '../stage.ts'
import { insufficientBalance } from './require-balance.ts'
import { admitWithinLimits, isLimited } from './spend-limits.ts'

export interface AdmittedCall extends PricedCall {
  /** Reserved in the views of the wallet, of the key's spend cap and of budgets from here on; the end of the call releases it. */
  readonly estimate: Credits
  /** True when the estimate is reserved over all processes before the call goes upstream. */
  readonly isShared: boolean
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

const estimateWith = ({ call, request }: PricedCall, model: Model): Credits =>
  estimateCharge(model.price!, model.entry, call, request.submittedAt)

/** Returns the worst case of the dearest model that may serve the call. */
export function estimateOf(call: PricedCall): Credits {
  let most = estimateWith(call, call.model)
  for (const { model } of call.fallbacks) {
    const estimate = estimateWith(call, model)
    if (estimate > most) most = estimate
  }
  return most
}

export interface PrechargeDeps {
  readonly catalog: () => Catalog
}

/** Reserves the estimate in this process. @throws Failure `quota_exceeded`, and nothing is reserved */
export const precharge = <C extends PricedCall>(deps: PrechargeDeps): Stage<C, C & AdmittedCall> =>
  stage((call: C) => {
    const { known } = call
    const { wallet } = deps.catalog().config
    const estimate = estimateOf(call)
    const pin = pinOf(call)
    if (!known.view.admit(estimate, wallet.reserve_in_flight)) throw insufficientBalance(known, estimate)
    if (isLimited(known)) {
      const refusal = admitWithinLimits(known, estimate, call.request.submittedAt)
      if (refusal !== null) {
        known.view.end(estimate, 0n)
        throw refusal
      }
    }
    const isShared = wallet.reserve_in_flight && known.view.needsSharing(wallet.exact_below)
    return { ...call, estimate, isShared, pin }
  })
