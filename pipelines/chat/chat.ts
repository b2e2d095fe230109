/** A chat call: the stages of its pipeline, in the order in which they happen. */
import type { ChatProtocol } from '../../schemas/config/catalog.ts'
import type { Failure } from '../../schemas/failure.ts'
import { refusedDetail } from '../../src/core/call-log/call-detail.ts'
import type { Handler } from '../../src/http/handler.ts'
import type { BodyDeps } from '../../src/protocols/body-work.ts'
import type { Dialect } from '../../src/protocols/dialect.ts'
import { type AuthenticateDeps, type AuthenticatedCall, authenticate } from '../calls/authenticate.ts'
import { assertBalance, requireBalance } from '../calls/balance.ts'
import type { IdempotencyDeps } from '../calls/claim.ts'
import { idempotent } from '../calls/idempotency.ts'
import { calls } from '../calls/pipeline.ts'
import { type RateDeps, rateLimit } from '../calls/rate-limit.ts'
import { type RefusalDeps, type RefusedRow, recordRefusals } from '../calls/refusals.ts'
import { type AgentDeps, applyAgent, findAgent, requireVision, searchKnowledge } from './agent.ts'
import type { ForwardDeps } from './forward/deps.ts'
import { forward } from './forward/forward.ts'
import { plannedTranslation } from './forward/translation-headers.ts'
import { estimateOf, precharge, type ReserveDeps, reserve } from './precharge.ts'
import { readCall } from './read-call.ts'
import {
  checkLinks,
  type LinkDeps,
  type PricedCall,
  requireServerTools,
  selectModel,
} from './select-model.ts'
import { type BackgroundDeps, runInBackground } from './stored/run-in-background.ts'
import {
  type ConversationCallDeps,
  countInConversation,
  followState,
  type StateDeps,
} from './stored/state.ts'

export interface ChatDeps
  extends AuthenticateDeps,
    RateDeps,
    AgentDeps,
    IdempotencyDeps,
    LinkDeps,
    StateDeps,
    ConversationCallDeps,
    BackgroundDeps,
    BodyDeps,
    ReserveDeps,
    ForwardDeps,
    RefusalDeps {}

export const chat = (deps: ChatDeps, dialect: Dialect): Handler =>
  calls(authenticate(deps, { isOpenToAgents: dialect.protocol === 'chat-completions' }))
    .then(rateLimit(deps, assertBalance))
    .then(requireBalance(deps))
    .then(findAgent(deps))
    .then(applyAgent(deps))
    .then(readCall(deps, dialect))
    .then(selectModel(deps))
    .then(followState(deps))
    .then(requireServerTools())
    .then(requireVision())
    .then(idempotent(deps))
    .then(checkLinks(deps))
    .then(searchKnowledge(deps, dialect))
    .then(countInConversation(deps))
    .then(runInBackground(deps))
    .then(precharge(deps))
    .then(reserve(deps))
    .then(forward(deps))
    .onRefused(
      recordRefusals(
        deps,
        (call, failure) => refusedRow(deps, dialect.protocol, call, failure),
        ({ call }) => plannedTranslation(dialect.protocol, call as Partial<PricedCall>),
      ),
    )

/** Returns the row of a refused call, from the facts known by then. */
function refusedRow(
  { catalog }: Pick<ChatDeps, 'catalog'>,
  protocol: ChatProtocol,
  refused: AuthenticatedCall & Partial<PricedCall>,
  failure: Failure,
): RefusedRow {
  const { call, model, known } = refused
  const isOverBalance = failure.code === 'quota_exceeded' && isPriced(refused)
  const estimate = isOverBalance ? estimateOf(refused, catalog().config.estimate) : undefined
  return {
    protocol,
    model: call?.model ?? known.agent?.file.model,
    stream: call?.stream === true && call.isAssembled !== true,
    detail: refusedDetail({ call, model, ...(estimate !== undefined && { estimate }) }),
  }
}

const isPriced = (refused: Partial<PricedCall>): refused is PricedCall => refused.routes !== undefined
