/** A chat call: the stages of its pipeline, in the order in which they happen. */
import type { ChatProtocol } from '../../schemas/config/catalog.ts'
import type { Failure } from '../../schemas/failure.ts'
import type { Handler } from '../../src/http/handler.ts'
import type { BodyDeps } from '../../src/protocols/body-work.ts'
import type { Dialect } from '../../src/protocols/dialect.ts'
import { type AuthenticateDeps, type AuthenticatedCall, authenticate } from '../stages/authenticate.ts'
import { estimateOf, precharge } from '../stages/billing/precharge.ts'
import { assertBalance, requireBalance } from '../stages/billing/require-balance.ts'
import { type ReserveDeps, reserve } from '../stages/billing/reserve.ts'
import { checkLinks, type LinkDeps } from '../stages/check-links.ts'
import type { IdempotencyDeps } from '../stages/claim.ts'
import { type ConversationCallDeps, countInConversation } from '../stages/count-in-conversation.ts'
import { followState, type StateDeps } from '../stages/follow-state.ts'
import { forward } from '../stages/forward.ts'
import { idempotent } from '../stages/idempotency.ts'
import { pipeline } from '../stages/pipeline.ts'
import { type RateDeps, rateLimit } from '../stages/rate-limit.ts'
import { readCall } from '../stages/read-call.ts'
import { type RefusalDeps, type RefusedRow, recordRefusals } from '../stages/record-refusals.ts'
import { type PricedCall, selectModel } from '../stages/select-model.ts'
import { requireServerTools } from '../stages/server-tools.ts'
import { applyAgent, requireVision } from './agent/apply-agent.ts'
import { type AgentDeps, findAgent } from './agent/find-agent.ts'
import { searchKnowledge } from './agent/search-knowledge.ts'
import { refusedDetail } from './forward/call-detail.ts'
import type { ForwardDeps } from './forward/deps.ts'
import { plannedTranslation } from './forward/translation-headers.ts'
import { type BackgroundDeps, runInBackground } from './stored/run-in-background.ts'

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
  pipeline(
    authenticate(deps, { isOpenToAgents: dialect.protocol === 'chat-completions' }),
    rateLimit(deps, assertBalance),
    requireBalance(deps),
    findAgent(deps),
    applyAgent(deps),
    readCall(deps, dialect),
    selectModel(deps),
    followState(deps),
    requireServerTools(),
    requireVision(),
    idempotent(deps),
    checkLinks(deps),
    searchKnowledge(deps, dialect),
    countInConversation(deps),
    runInBackground(deps),
    precharge(deps),
    reserve(deps),
    forward(deps),
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
