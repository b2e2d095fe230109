/** A chat call: the stages of its pipeline, in the order in which they happen. */
import type { CallProtocol } from '../../schemas/config/catalog.ts'
import type { Failure } from '../../schemas/failure.ts'
import { printRefusedDetail } from '../../src/core/call-log/call-detail.ts'
import type { Handler } from '../../src/http/handler.ts'
import type { LongBodyWork } from '../../src/protocols/body-work.ts'
import type { Dialect } from '../../src/protocols/dialect.ts'
import { type AuthenticatedCall, authenticate, type CallAccess } from '../calls/authenticate.ts'
import { assertBalance, requireBalance } from '../calls/balance.ts'
import type { Idempotency } from '../calls/claim.ts'
import { idempotent } from '../calls/idempotency.ts'
import { calls } from '../calls/pipeline.ts'
import { rateLimit } from '../calls/rate-limit.ts'
import { type RefusedRow, recordRefusals } from '../calls/refusals.ts'
import { type AgentKnowledge, applyAgent, findAgent, requireVision, searchKnowledge } from './agent.ts'
import type { Forwarding } from './forward/deps.ts'
import { forward } from './forward/forward.ts'
import { planTranslationHeaders } from './forward/translation-headers.ts'
import { type CallReservations, estimateCall, limitPrice, precharge, reserve } from './precharge.ts'
import { type ChatEndpoint, readCall, rewriteBody } from './read-call.ts'
import {
  checkLinks,
  type LinkChecker,
  type PricedCall,
  requireServerTools,
  selectModel,
} from './select-model.ts'
import { type BackgroundCalls, runInBackground } from './stored/run-in-background.ts'
import { countInConversation, followItems, followState, type StoredState } from './stored/state.ts'

export interface ChatDeps {
  readonly access: CallAccess
  readonly bodies: LongBodyWork
  readonly knowledge: AgentKnowledge
  readonly stored: StoredState
  readonly idempotency: Idempotency
  readonly links: LinkChecker
  readonly background: BackgroundCalls
  readonly reservations: CallReservations
  readonly forwarding: Forwarding
}

export const chat = (deps: ChatDeps, dialect: Dialect, endpoint: ChatEndpoint = dialect.protocol): Handler =>
  calls(authenticate(deps.access, { isOpenToAgents: endpoint === 'chat-completions' }))
    .then(rateLimit(deps.access, assertBalance))
    .then(requireBalance(deps.idempotency.records))
    .then(findAgent(deps.access, deps.knowledge))
    .then(rewriteBody(deps.bodies, endpoint))
    .then(applyAgent(deps.bodies))
    .then(readCall(deps.bodies, dialect, endpoint === 'completions' ? dialect.protocol : endpoint))
    .then(selectModel(deps.access.catalog))
    .then(followState(deps.stored))
    .then(followItems(deps.stored))
    .then(requireServerTools())
    .then(requireVision())
    .then(idempotent(deps.idempotency))
    .then(checkLinks(deps.links))
    .then(searchKnowledge(deps.knowledge, deps.bodies, dialect))
    .then(countInConversation(deps.stored))
    .then(limitPrice(deps.access.catalog))
    .then(runInBackground(deps.background))
    .then(precharge(deps.access.catalog))
    .then(reserve(deps.reservations))
    .then(forward(deps.forwarding))
    .onRefused(
      recordRefusals(
        deps.access,
        (call, failure) => describeRefusedRow(deps.access, dialect.protocol, call, failure),
        ({ call }) => planTranslationHeaders(dialect.protocol, call as Partial<PricedCall>),
      ),
    )

/** Returns the row of a refused call, from the facts known by then. */
function describeRefusedRow(
  { catalog }: CallAccess,
  protocol: CallProtocol,
  refused: AuthenticatedCall & Partial<PricedCall>,
  failure: Failure,
): RefusedRow {
  const { call, model, known } = refused
  const isOverBalance = failure.code === 'quota_exceeded' && isPriced(refused)
  const estimate = isOverBalance ? estimateCall(refused, catalog().config.estimate) : undefined
  return {
    protocol,
    model: call?.model ?? known.agent?.file.model,
    stream: call?.stream === true && call.isAssembled !== true,
    detail: printRefusedDetail({ call, model, ...(estimate !== undefined && { estimate }) }),
  }
}

const isPriced = (refused: Partial<PricedCall>): refused is PricedCall => refused.routes !== undefined
