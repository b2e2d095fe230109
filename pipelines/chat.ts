/** The way of one chat call, read top to bottom. Source: design, "A streaming chat call". */
import { catchError, concatMap, map, type Observable, of, pipe } from 'rxjs'
import type { Settlement } from '../schemas/event.ts'
import { Failure } from '../schemas/failure.ts'
import type { Catalog } from '../src/core/catalog.ts'
import type { Exchange, Pipeline } from '../src/http/exchange.ts'
import type { Dialect } from '../src/protocols/dialect.ts'
import { refusedModel } from '../src/protocols/refused-model.ts'
import { refusedSettlement } from './call-record.ts'
import type { Credentials } from './credentials.ts'
import { authenticate } from './stages/authenticate.ts'
import { checkBuiltInTools } from './stages/built-in-tools.ts'
import { type ForwardDeps, forward } from './stages/forward.ts'
import { type Claimant, type IdempotencyDeps, idempotent } from './stages/idempotency.ts'
import { precharge } from './stages/precharge.ts'
import { type RateDeps, withinAccountLimits } from './stages/rate.ts'
import { type ProtocolCaller, readCall } from './stages/read-call.ts'
import { type PricedCall, selectModel } from './stages/select-model.ts'
import { requireBalance } from './stages/wallet-gate.ts'

export interface ChatDeps extends ForwardDeps, IdempotencyDeps, RateDeps {
  readonly credentials: Credentials
  readonly catalog: () => Catalog
  /** Told of each refusal that leaves a row. Must not throw. */
  readonly onRefused: (settlement: Settlement) => void
}

/** Whoever refuses a known account's call leaves a row behind. Source: decisions, "Chat". */
function recordRefusal(deps: ChatDeps, caller: ProtocolCaller): <T>(values: Observable<T>) => Observable<T> {
  return catchError((error) => {
    const failure =
      error instanceof Failure ? error : new Failure('internal_error', 'The call could not be handled.')
    const known = { model: modelOf(deps.catalog(), caller.exchange), stream: false }
    const settlement = refusedSettlement(caller, known, failure, Date.now())
    deps.journal.settle(null, settlement)
    deps.onRefused(settlement)
    throw error
  })
}

const claimantOf = ({ exchange, known }: PricedCall): Claimant => ({ exchange, accountId: known.account.id })

function modelOf(catalog: Catalog, { path, body }: Exchange): string {
  const name = refusedModel(path, body)
  return catalog.resolve(name)?.id ?? name
}

export function chat(deps: ChatDeps, dialect: Dialect): Pipeline {
  const { protocol } = dialect
  const reserveInFlight = () => deps.catalog().config.wallet.reserve_in_flight
  const refusalsOf = (caller: ProtocolCaller) => recordRefusal(deps, caller)
  // Operators are made once, not for each call: on this path that is felt.
  const reserve = precharge(reserveInFlight)
  const forwardIt = forward(deps)
  const carryOut = (priced: PricedCall) => of(priced).pipe(reserve, refusalsOf(priced), forwardIt)
  const once = concatMap(idempotent(deps, { claimantOf, refusalsOf, work: carryOut }))
  const prepare = pipe(
    requireBalance<ProtocolCaller>(),
    readCall(dialect),
    selectModel(deps.catalog),
    checkBuiltInTools(),
  )
  const answer = (caller: ProtocolCaller) => of(caller).pipe(prepare, refusalsOf(caller), once)
  const handle = pipe(
    authenticate(deps.credentials),
    map((caller): ProtocolCaller => ({ ...caller, protocol })),
    concatMap(withinAccountLimits(deps, { refusalsOf, work: answer })),
  )
  return (exchange) => of(exchange).pipe(handle)
}
