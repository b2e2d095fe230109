/** The way of one chat call, read top to bottom. Source: design, "A streaming chat call". */
import { catchError, concatMap, map, type OperatorFunction, of } from 'rxjs'
import type { Settlement } from '../schemas/event.ts'
import { Failure } from '../schemas/failure.ts'
import type { Catalog } from '../src/core/catalog.ts'
import type { Exchange, Pipeline } from '../src/http/exchange.ts'
import { modelNameOf, readChatCall } from '../src/protocols/chat-completions.ts'
import { CHAT_PROTOCOL, refusedSettlement } from './call-record.ts'
import type { Credentials } from './credentials.ts'
import { authenticate, type Caller } from './stages/authenticate.ts'
import { type ForwardDeps, forward } from './stages/forward.ts'
import { type AdmittedCall, precharge } from './stages/precharge.ts'
import { type ReadCall, selectModel } from './stages/select-model.ts'
import { requireBalance } from './stages/wallet-gate.ts'

export interface ChatDeps extends ForwardDeps {
  readonly credentials: Credentials
  readonly catalog: () => Catalog
  /** Told of each refusal that leaves a row. Must not throw. */
  readonly onRefused: (settlement: Settlement) => void
}

const readCall = (): OperatorFunction<Caller, ReadCall> =>
  map((caller) => ({ ...caller, call: readChatCall(caller.exchange.body) }))

/** Whoever refuses a known account's call leaves a row behind. Source: decisions, "Chat". */
function recordRefusal(deps: ChatDeps, caller: Caller): OperatorFunction<AdmittedCall, AdmittedCall> {
  return catchError((error) => {
    const failure =
      error instanceof Failure ? error : new Failure('internal_error', 'The call could not be handled.')
    const known = refusedModel(deps.catalog(), caller.exchange)
    const settlement = refusedSettlement(caller, known, failure, Date.now())
    deps.journal.settle(null, settlement)
    deps.onRefused(settlement)
    throw error
  })
}

function refusedModel(catalog: Catalog, exchange: Exchange): { model: string; stream: boolean } {
  const name = modelNameOf(exchange.body)
  return { model: catalog.resolve(name)?.id ?? name, stream: false }
}

export function chat(deps: ChatDeps): Pipeline {
  const reserveInFlight = () => deps.catalog().config.wallet.reserve_in_flight
  const admit = (caller: Caller) =>
    of(caller).pipe(
      requireBalance(),
      readCall(),
      selectModel(deps.catalog, CHAT_PROTOCOL),
      precharge(reserveInFlight),
      recordRefusal(deps, caller),
    )
  return (exchange) => of(exchange).pipe(authenticate(deps.credentials), concatMap(admit), forward(deps))
}
