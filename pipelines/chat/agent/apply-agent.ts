/** Puts the agent's instructions, model and limits into the request of its client. */
import { randomBytes } from 'node:crypto'
import type { Agent } from '../../../schemas/accounts/agent.ts'
import { Failure } from '../../../schemas/failure.ts'
import { numberPiece, textPiece } from '../../../src/core/call-log/detail-text.ts'
import { requestHash } from '../../../src/core/json/canonical.ts'
import { withoutKey } from '../../../src/core/keys/presented.ts'
import { knowledgeText, type PromptPage } from '../../../src/core/search/knowledge-text.ts'
import {
  type AgentRequest,
  agentBody,
  readAgentRequest,
} from '../../../src/protocols/chat-completions/agent-body.ts'
import type { AuthenticatedCall } from '../../stages/authenticate.ts'
import type { PricedCall } from '../../stages/select-model.ts'
import { type Stage, stage } from '../../stages/stage.ts'
import type { AppliedAgent, FoundAgent } from './agent-part.ts'

/** 128 bits: a page that was written beforehand cannot hold the mark of its fence. */
const MARK_BYTES = 16

/**
 * Returns the body for the upstream and the agent's entry in the call log.
 * @throws Failure `invalid_request`
 */
export function bodyOf({ id, file }: Agent, request: AgentRequest, pages: readonly PromptPage[] = []) {
  const knowledge = knowledgeText(pages, randomBytes(MARK_BYTES).toString('hex'))
  const body = agentBody(request, file, knowledge)
  const detail =
    textPiece('agent', id) + (knowledge === null ? '' : numberPiece('knowledge_pages', pages.length))
  return { body, detail }
}

/** Replaces the body of a call with an agent key. @throws Failure `invalid_request` that names the wrong field */
export const applyAgent = <C extends AuthenticatedCall & FoundAgent>(): Stage<C, C & AppliedAgent> =>
  stage((call: C) => {
    if (call.agent === undefined) return call as C & { agent?: never }
    const { agent } = call.agent
    const { method, path, query, body: given } = call.request
    const request = readAgentRequest(given)
    const { body, detail } = bodyOf(agent, request)
    return {
      ...call,
      request: { ...call.request, body },
      agent: { ...call.agent, request, detail },
      // Another agent would have answered otherwise; text that the gateway adds is no part of the intent.
      requestHash: requestHash(method, `${path} ${agent.id}`, withoutKey(query), given),
    }
  })

/** Refuses images to an agent whose model cannot see. @throws Failure `model_no_vision` */
export const requireVision = <C extends PricedCall & AppliedAgent>(): Stage<C, C> =>
  stage((call: C) => {
    if (!call.agent?.request.hasImages) return call
    if (!call.model.entry.capabilities.vision)
      throw new Failure('model_no_vision', 'The model of this agent cannot see images: send text alone.')
    return { ...call, fallbacks: call.fallbacks.filter(({ model }) => model.entry.capabilities.vision) }
  })
