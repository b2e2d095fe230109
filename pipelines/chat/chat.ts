/** The way of one chat call, read top to bottom. Source: design, "A streaming chat call". */
import { concatMap, type Observable } from 'rxjs'
import type { Settlement } from '../../schemas/events/event.ts'
import { Failure } from '../../schemas/failure.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import type { Handler, Reply } from '../../src/http/handler.ts'
import type { Dialect } from '../../src/protocols/dialect.ts'
import { REFUSED_MODEL_MAX_CHARS, refusedModel } from '../../src/protocols/request/refused-model.ts'
import type { Credentials } from '../accounts/credentials.ts'
import { authenticated, type Caller } from '../stages/authenticate.ts'
import { type ForwardDeps, forward } from '../stages/forward.ts'
import { type Claimant, idempotent } from '../stages/idempotency.ts'
import { estimateOf, precharge } from '../stages/precharge.ts'
import { type RateDeps, withinAccountLimits } from '../stages/rate-limit.ts'
import { type ReadCall, readCall } from '../stages/read-call.ts'
import { recordingRefusals } from '../stages/record-refusals.ts'
import { requireBalance } from '../stages/require-balance.ts'
import { reservedOverProcesses } from '../stages/reserve.ts'
import { type PricedCall, selectModel } from '../stages/select-model.ts'
import { checkBuiltInTools } from '../stages/server-tools.ts'
import { type AgentDeps, agentCalls } from './agent.ts'
import { refusedDetail } from './forward/call-detail.ts'
import { refusedSettlement } from './forward/call-record.ts'

export interface ChatDeps extends ForwardDeps, AgentDeps, RateDeps {
  readonly credentials: Credentials
  readonly catalog: () => Catalog
  /** Writes the row of a refused call, and counts it. Must not throw. */
  readonly onRefused: (settlement: Settlement) => void
}

const claimantOf = ({ request, known }: PricedCall): Claimant => ({ request, accountId: known.account.id })

/** A call on its way: of what is refused early, less is known. */
type Refused = Caller & Partial<Pick<PricedCall, 'call' | 'model' | 'routes'>>

const isPriced = (refused: Refused): refused is PricedCall => refused.routes !== undefined

function knownOf(catalog: Catalog, refused: Refused, failure: Failure) {
  const { call, model, request } = refused
  const asked = call?.model ?? refused.known.agent?.file.model
  const name = asked?.slice(0, REFUSED_MODEL_MAX_CHARS) ?? refusedModel(request.path, request.body)
  const isOverBalance = failure.code === 'quota_exceeded' && isPriced(refused)
  return {
    model: catalog.resolve(name)?.id ?? name,
    stream: call?.stream ?? false,
    detail: refusedDetail({ call, model, ...(isOverBalance && { estimate: estimateOf(refused) }) }),
  }
}

/**
 * Stages that never wait are plain functions; what may wait (a key that is not known yet, a limit, a claim, the
 * upstream) is an Observable. So a usual call costs two subscriptions.
 */
export function chat(deps: ChatDeps, dialect: Dialect): Handler {
  const { protocol } = dialect

  /** Whoever refuses a known account's call leaves a row behind. Source: decisions, "Chat". */
  const recordRefusal = (caller: Refused, error: unknown) => {
    const failure =
      error instanceof Failure ? error : new Failure('internal_error', 'The call could not be handled.')
    const known = knownOf(deps.catalog(), caller, failure)
    const settlement = refusedSettlement({ ...caller, protocol }, known, failure, Date.now())
    deps.onRefused(settlement)
  }
  const refusalsOf =
    (caller: Refused) =>
    <T>(values: Observable<T>): Observable<T> =>
      values.pipe(recordingRefusals((error) => recordRefusal(caller, error)))
  const withRefusalLog = <T>(caller: Refused, stages: () => T): T => {
    try {
      return stages()
    } catch (error) {
      recordRefusal(caller, error)
      throw error
    }
  }

  const execute = (priced: PricedCall): Observable<Reply> => {
    const { wallet } = deps.catalog().config
    const admitted = withRefusalLog(priced, () => precharge(priced, wallet))
    if (admitted.known.cap === null && !admitted.isShared) return forward(deps, admitted)
    return reservedOverProcesses(deps, admitted).pipe(
      refusalsOf(priced),
      concatMap((reserved) => forward(deps, reserved)),
    )
  }
  const once = idempotent(deps, { claimantOf, refusalsOf, work: execute })
  const price = (read: ReadCall): PricedCall =>
    withRefusalLog(read, () => checkBuiltInTools(selectModel(deps.catalog(), read)))
  const prepare = (caller: Caller): PricedCall =>
    price(
      withRefusalLog(caller, () => {
        requireBalance(caller)
        return readCall(dialect, caller)
      }),
    )
  const isOpenToAgents = protocol === 'chat-completions'
  const ofAgent = agentCalls(deps, { dialect, price, execute, withRefusalLog, refusalsOf })
  const answer = (caller: Caller) =>
    caller.known.key.kind === 'agent' ? ofAgent(caller) : once(prepare(caller))
  const withinLimits = withinAccountLimits(deps, { refusalsOf, work: answer })
  return authenticated(deps.credentials, withinLimits, { isOpenToAgents, onDenied: recordRefusal })
}
