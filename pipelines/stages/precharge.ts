/**
 * The worst case of the call against what is free in the wallet. Over it: 402, and nothing goes upstream.
 * Source: specification, "Balance and billing", 2 and 3; decisions, "Chat".
 */
import { map, type OperatorFunction } from 'rxjs'
import type { Credits } from '../../schemas/money.ts'
import { worstCase } from '../../src/core/estimate.ts'
import { tokenCharge } from '../../src/core/pricing.ts'
import type { PricedCall } from './select-model.ts'
import { insufficientBalance } from './wallet-gate.ts'

export interface AdmittedCall extends PricedCall {
  /** Reserved in the wallet view from here on: whoever takes the call must end the reservation. */
  readonly estimate: Credits
}

export function precharge(reserveInFlight: () => boolean): OperatorFunction<PricedCall, AdmittedCall> {
  return map((priced) => {
    const { call, model, exchange, known } = priced
    const usage = worstCase(model.entry, call.promptBytes, call.outputLimit, call.choices)
    const estimate = tokenCharge(model.price!, usage, exchange.submittedAt)
    if (!known.view.admit(estimate, reserveInFlight())) throw insufficientBalance()
    return { ...priced, estimate }
  })
}
