/** What the client of an agent says, as the gateway and the upstream are to read it. Source: specification, "Agent API". */
import { randomBytes } from 'node:crypto'
import type { Agent } from '../../../schemas/accounts/agent.ts'
import { Failure } from '../../../schemas/failure.ts'
import { numberPiece, textPiece } from '../../../src/core/call-log/detail-text.ts'
import { requestHash } from '../../../src/core/json/canonical.ts'
import { withoutKey } from '../../../src/core/keys/presented.ts'
import { type GivenPage, knowledgeText } from '../../../src/core/search/knowledge-text.ts'
import type { ReadableBase } from '../../../src/postgres/knowledge/types.ts'
import { type AgentRequest, agentBody } from '../../../src/protocols/chat-completions/agent-body.ts'
import type { Dialect } from '../../../src/protocols/dialect.ts'
import type { Caller } from '../../stages/authenticate.ts'
import { type ReadCall, readCall } from '../../stages/read-call.ts'
import type { PricedCall } from '../../stages/select-model.ts'

/** 128 bits: a page that was written beforehand cannot hold the mark of its fence. */
const MARK_BYTES = 16

/** A call of an agent, ready but for what the agent knows of its question. */
export interface AgentCall extends PricedCall {
  readonly agent: Agent
  readonly agentRequest: AgentRequest
  /** What the agent may look into. */
  readonly bases: readonly ReadableBase[]
  /** Of the client's own body: what the gateway adds is no part of what was meant. */
  readonly requestHash: Buffer
}

/** The caller's request with the agent's words in it, read as every other is. @throws Failure `invalid_request` */
export function readAgentCall(
  dialect: Dialect,
  { request, known }: Caller,
  { id, file }: Agent,
  agentRequest: AgentRequest,
  pages: readonly GivenPage[] = [],
): ReadCall {
  const knowledge = knowledgeText(pages, randomBytes(MARK_BYTES).toString('hex'))
  const body = agentBody(agentRequest, file, knowledge)
  const read = readCall(dialect, { request: { ...request, body }, known })
  const facts = textPiece('ag', id) + (knowledge === null ? '' : numberPiece('kp', pages.length))
  return { ...read, call: { ...read.call, settings: read.call.settings + facts } }
}

/** The same call with what the agent has found. */
export function withPages(dialect: Dialect, call: AgentCall, pages: readonly GivenPage[]): AgentCall {
  if (pages.length === 0) return call
  return { ...call, ...readAgentCall(dialect, call, call.agent, call.agentRequest, pages) }
}

/** One intent of one agent: another agent would have answered otherwise. */
export const intentOf = ({ request: { method, path, query, body } }: Caller, agent: Agent): Buffer =>
  requestHash(method, `${path} ${agent.id}`, withoutKey(query), body)

/** @throws Failure `model_no_vision` */
export function requireVision({ model }: PricedCall, agentRequest: AgentRequest): void {
  if (agentRequest.hasImages && !model.entry.capabilities.vision)
    throw new Failure('model_no_vision', 'The model of this agent cannot see images: send text alone.')
}
