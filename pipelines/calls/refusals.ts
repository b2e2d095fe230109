/** A refused call leaves a row in the call log, if its key is known. */

import type { Admission, Settlement } from '../../schemas/call-log/columns.ts'
import { Failure } from '../../schemas/failure.ts'
import { redact } from '../../src/core/call-log/redact.ts'
import { emptySettlement } from '../../src/core/call-log/settlement.ts'
import { withSharedIds } from '../../src/core/call-log/shared-ids.ts'
import { cutText } from '../../src/core/json/cut.ts'
import { withoutCollection } from '../../src/core/routing/generate-model-name.ts'
import { readSessionId } from '../../src/core/routing/session.ts'
import { stillHolds } from '../../src/core/still-holds.ts'
import { REFUSED_MODEL_MAX_CHARS, readRefusedModel } from '../../src/protocols/request/refused-model.ts'
import { type AuthenticatedCall, type CallAccess, type Caller, isAuthenticated } from './authenticate.ts'
import type { OnRefused } from './pipeline.ts'

/** Fields of a refused call's row, besides the caller and the reason. */
export interface RefusedRow {
  readonly protocol: string
  /** As the client names it; undefined where the request was not read that far. */
  readonly model: string | undefined
  readonly stream: boolean
  /** The unit by which the endpoint bills; null: tokens. */
  readonly unitType?: Settlement['unit_type']
  readonly detail: string | null
}

/**
 * Records refused calls. `describeRow` gets the call with the facts known to the stage that refused it.
 * @param makeHeaders returns headers of the refusal
 */
export const recordRefusals =
  (
    { catalog, onRefused }: CallAccess,
    describeRow: (call: AuthenticatedCall, failure: Failure) => RefusedRow,
    makeHeaders: OnRefused = () => [],
  ): OnRefused =>
  (refused) => {
    const { call, error } = refused
    if (isAuthenticated(call)) {
      const failure =
        error instanceof Failure ? error : new Failure('internal_error', 'The call could not be handled.')
      const { model: given, unitType = null, ...rest } = describeRow(call, failure)
      const { params, body } = call.request
      const inPath = params.model && withoutCollection(params.model)
      const name = cutText(given ?? inPath ?? readRefusedModel(body), REFUSED_MODEL_MAX_CHARS)
      const model = catalog().resolve(name)?.id ?? name
      onRefused(makeRefusedSettlement(call, { ...rest, model, unit_type: unitType }, failure, Date.now()))
    }
    return makeHeaders(refused)
  }

/** Returns the row of a call that was refused before any upstream was called. It costs nothing. */
export function makeRefusedSettlement(
  { request, known }: Caller,
  row: Pick<Settlement, 'protocol' | 'model' | 'stream' | 'unit_type' | 'detail'>,
  failure: Failure,
  now: number,
): Settlement {
  const admission: Admission = {
    ...row,
    request_id: request.requestId,
    account_id: known.account.id,
    key_id: known.key.id,
    submitted_at: request.submittedAt,
    estimate: '0',
    session_id: readSessionId(request.header),
  }
  return {
    ...emptySettlement(admission, now),
    status: 'rejected',
    error_code: failure.code,
    error_message: redact(failure.message),
    unit_type: row.unit_type,
    detail: row.detail,
    attempts_count: 0,
  }
}

/** Of one key. */
export const OWN_ROWS_PER_MINUTE = 600
const WINDOW_MS = 60_000
/** Shared rows are written after this delay, which doubles each time up to the maximum. */
const FIRST_WAIT_MS = 1_000
const MAX_WAIT_MS = 8_000
/** A shared row with this many calls is written at once, because it lists the id of each. */
export const MAX_SHARED_CALLS = 1_000

interface RefusalLogDeps {
  /** Writes a row. Must not throw. */
  readonly write: (settlement: Settlement) => void
  /** Returns whether refusals share rows; otherwise each has its own. */
  readonly areShared: () => boolean
  /** Returns false for a name that a client made up: those share their rows. */
  readonly isModel: (name: string) => boolean
  /** Calls `work` after `ms`, unless the process ends before. */
  readonly later: (work: () => void, ms: number) => void
  /** Returns epoch milliseconds. */
  readonly now: () => number
}

/**
 * Writes the rows of refused calls. Refusals cost their caller nothing; where the installation asks for it
 * (`logs.share_refusals`), their rows are bounded: beyond a number of them in a minute, refusals of one key, model and
 * reason share a row with their count. Each is found by its own trace id all the same.
 */
export class RefusalLog {
  readonly #deps: RefusalLogDeps
  #windowEndsAt = 0
  /** Refusals in the window by key. */
  readonly #counts = new Map<string, number>()
  /** Rows to be written, by key, reason and model, with the request ids of their calls. */
  readonly #shared = new Map<string, { readonly row: Settlement; readonly ids: string[] }>()
  #waitMs = FIRST_WAIT_MS

  constructor(deps: RefusalLogDeps) {
    this.#deps = deps
  }

  /** Writes the refusal's row, or counts it in the row that it shares. */
  record(refused: Settlement): void {
    if (!this.#deps.areShared()) return this.#deps.write(refused)
    const now = this.#deps.now()
    if (!stillHolds(this.#windowEndsAt, now, WINDOW_MS)) this.#begin(now)
    const count = (this.#counts.get(refused.key_id) ?? 0) + 1
    this.#counts.set(refused.key_id, count)
    if (count <= OWN_ROWS_PER_MINUTE) this.#deps.write(refused)
    else this.#share(refused)
  }

  /** Writes the shared rows. Runs at an interval; must also be called before the journal is closed. */
  flush(): void {
    for (const name of [...this.#shared.keys()]) this.#write(name)
  }

  #write(name: string): void {
    const { row, ids } = this.#shared.get(name)!
    this.#shared.delete(name)
    const created_at = this.#deps.now()
    const detail = withSharedIds(row.detail, ids)
    this.#deps.write({ ...row, detail, created_at, call_count: ids.length })
  }

  #begin(now: number): void {
    this.#windowEndsAt = now + WINDOW_MS
    this.#counts.clear()
    this.#waitMs = FIRST_WAIT_MS
  }

  #share(refused: Settlement): void {
    const model = this.#deps.isModel(refused.model) ? refused.model : ''
    const name = `${refused.key_id} ${refused.error_code} ${model}`
    const shared = this.#shared.get(name)
    if (shared !== undefined) {
      shared.ids.push(refused.request_id)
      if (shared.ids.length >= MAX_SHARED_CALLS) this.#write(name)
      return
    }
    if (this.#shared.size === 0) {
      this.#deps.later(() => this.flush(), this.#waitMs)
      this.#waitMs = Math.min(2 * this.#waitMs, MAX_WAIT_MS)
    }
    this.#shared.set(name, { row: { ...refused, model, session_id: null }, ids: [refused.request_id] })
  }
}
