/** A refused call leaves a row in the call log, if its key is known. */
import { tap } from 'rxjs'
import type { Settlement } from '../../schemas/events/event.ts'
import { Failure } from '../../schemas/failure.ts'
import { cutText } from '../../src/core/json/cut.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import { REFUSED_MODEL_MAX_CHARS, refusedModel } from '../../src/protocols/request/refused-model.ts'
import { refusedSettlement } from '../chat/forward/call-record.ts'
import { type AuthenticatedCall, isAuthenticated } from './authenticate.ts'
import type { RefusalStage } from './pipeline.ts'
import type { AnsweredCall, RefusedCall } from './stage.ts'

export interface RefusalDeps {
  readonly catalog: () => Catalog
  /** Writes the row of a refused call, and counts it. Must not throw. */
  readonly onRefused: (settlement: Settlement) => void
}

/** Fields of a refused call's row, besides the caller and the reason. */
export interface RefusedRow {
  readonly protocol: string
  /** As the client names it; undefined where the request was not read that far. */
  readonly model: string | undefined
  readonly stream: boolean
  /** The unit by which the endpoint bills; null: tokens. */
  readonly unitType?: Settlement['unit_type']
  readonly detail: string | undefined
}

/**
 * Records refused calls. `rowOf` gets the call with the facts known to the stage that refused it.
 * @param headersOf returns headers of the refusal; absent: none
 */
export function recordRefusals(
  { catalog, onRefused }: RefusalDeps,
  rowOf: (call: AuthenticatedCall, failure: Failure) => RefusedRow,
  headersOf?: RefusalStage['headersOf'],
): RefusalStage {
  const record = ({ call, error }: RefusedCall) => {
    if (!isAuthenticated(call)) return
    const failure =
      error instanceof Failure ? error : new Failure('internal_error', 'The call could not be handled.')
    const { model: given, unitType = null, ...rest } = rowOf(call, failure)
    const { path, body } = call.request
    const name = cutText(given ?? refusedModel(path, body), REFUSED_MODEL_MAX_CHARS)
    const model = catalog().resolve(name)?.id ?? name
    onRefused(refusedSettlement(call, { ...rest, model, unit_type: unitType }, failure, Date.now()))
  }
  return Object.assign(tap<AnsweredCall>({ error: record }), { record, headersOf })
}
