/** Finds the agent of an agent key and checks that the agent may be used. See docs/api-rules.md, "Agents". */
import { map } from 'rxjs'
import type { Agent } from '../../../schemas/accounts/agent.ts'
import { Failure } from '../../../schemas/failure.ts'
import { type Catalog, isModelAllowed, resolveAllowlist } from '../../../src/core/routing/catalog.ts'
import type { AuthenticatedCall, Caller } from '../../calls/authenticate.ts'
import type { Stage } from '../../calls/pipeline.ts'
import type { FoundAgent } from './agent-part.ts'
import { basesOf, type KnowledgeDeps } from './search-knowledge.ts'

export interface AgentDeps extends KnowledgeDeps {
  readonly catalog: () => Catalog
}

const denied = (why: string): Failure => new Failure('permission_denied', why)

/**
 * Returns the agent of the key.
 * @throws Failure `permission_denied` that names the problem with the agent
 */
function agentOf(catalog: Catalog, { known: { agent, account, key } }: Caller): Agent {
  if (agent === null) throw denied('There is no agent behind this API key.')
  if (agent.state === 'deleted') throw denied('The agent of this API key has been deleted.')
  if (agent.state !== 'published' && !key.opensDraft)
    throw denied('The agent of this API key is not published.')
  if (agent.accountId !== account.id) throw denied('The agent of this API key is of another organization.')
  const model = catalog.resolve(agent.file.model)
  if (model !== null && !isModelAllowed(resolveAllowlist(catalog, account.allowedModels), model))
    throw denied(`The organization does not allow the model '${model.id}' of this agent.`)
  return agent
}

/**
 * Adds the agent of an agent key, and the knowledge bases that it may read.
 * @throws Failure `permission_denied`
 */
export const findAgent =
  <C extends AuthenticatedCall>(deps: AgentDeps): Stage<C, C & FoundAgent> =>
  (call: C) => {
    if (call.known.key.kind !== 'agent') return call
    const agent = agentOf(deps.catalog(), call)
    if (agent.file.knowledge.length === 0) return { ...call, agent: { agent, bases: [] } }
    return basesOf(deps, agent).pipe(map((bases) => ({ ...call, agent: { agent, bases } })))
  }
