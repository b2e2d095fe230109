/** Puts the agent's instructions, model and limits into the request of its client. */
import { randomBytes } from 'node:crypto'
import { from, map } from 'rxjs'
import type { Agent } from '../../../schemas/accounts/agent.ts'
import { Failure } from '../../../schemas/failure.ts'
import { numberPiece, textPiece } from '../../../src/core/call-log/detail-text.ts'
import { knowledgeText, type PromptPage } from '../../../src/core/search/knowledge-text.ts'
import { type AgentBody, type BodyDeps, workOnBody } from '../../../src/protocols/body-work.ts'
import type { AuthenticatedCall } from '../../calls/authenticate.ts'
import type { Stage } from '../../calls/pipeline.ts'
import type { PricedCall } from '../select-model.ts'
import type { AppliedAgent, FoundAgent } from './agent-part.ts'

/** 128 bits: a page that was written beforehand cannot hold the mark of its fence. */
const MARK_BYTES = 16

/**
 * Returns the body for the upstream, with what is asked in it, and the agent's entry in the call log.
 * @throws Failure `invalid_request`, as the Promise does
 */
export function applied(
  deps: BodyDeps,
  { id, accountId, file }: Agent,
  given: Buffer,
  pages: readonly PromptPage[] = [],
): (AgentBody & { readonly detail: string }) | Promise<AgentBody & { readonly detail: string }> {
  const knowledge = knowledgeText(pages, randomBytes(MARK_BYTES).toString('hex'))
  const detail =
    textPiece('agent', id) + (knowledge === null ? '' : numberPiece('knowledge_pages', pages.length))
  const built = workOnBody(deps, accountId, 'agent', { file, knowledge }, given)
  return built instanceof Promise ? built.then((body) => ({ ...body, detail })) : { ...built, detail }
}

/** Replaces the body of a call with an agent key. @throws Failure `invalid_request` that names the wrong field */
export const applyAgent =
  <C extends AuthenticatedCall & FoundAgent>(deps: BodyDeps): Stage<C, C & AppliedAgent> =>
  (call: C) => {
    if (call.agent === undefined) return call as C & { agent?: never }
    const { agent } = call.agent
    const { path, body: given } = call.request
    const add = ({ body, ...asked }: Awaited<ReturnType<typeof applied>>) => ({
      ...call,
      request: { ...call.request, body },
      agent: { ...call.agent!, ...asked, given },
      // Another agent would have answered otherwise; text that the gateway adds is no part of the intent.
      intent: { path: `${path} ${agent.id}`, body: given },
    })
    const built = applied(deps, agent, given)
    return built instanceof Promise ? from(built).pipe(map(add)) : add(built)
  }

/** Refuses images to an agent whose model cannot see. @throws Failure `model_no_vision` */
export const requireVision =
  <C extends PricedCall & AppliedAgent>(): Stage<C, C> =>
  (call: C) => {
    if (!call.agent?.hasImages) return call
    if (!call.model.entry.capabilities.vision)
      throw new Failure('model_no_vision', 'The model of this agent cannot see images: send text alone.')
    return { ...call, fallbacks: call.fallbacks.filter(({ model }) => model.entry.capabilities.vision) }
  }
