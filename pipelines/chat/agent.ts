/**
 * The way of a call with an agent key until it is a usual chat call: whose agent it is, what it may read, what
 * the client says, what the agent knows of it. Source: specification, "Agent API".
 */
import { concatMap, map, type Observable } from 'rxjs'
import type { Agent } from '../../schemas/accounts/agent.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import type { Reply } from '../../src/http/handler.ts'
import { readAgentRequest } from '../../src/protocols/chat-completions/agent-body.ts'
import type { Dialect } from '../../src/protocols/dialect.ts'
import type { Caller } from '../stages/authenticate.ts'
import { type Claimant, type IdempotencyDeps, idempotent } from '../stages/idempotency.ts'
import type { ReadCall } from '../stages/read-call.ts'
import { requireBalance } from '../stages/require-balance.ts'
import type { PricedCall } from '../stages/select-model.ts'
import { agentOf } from './agent/find-agent.ts'
import { type AgentCall, intentOf, readAgentCall, requireVision, withPages } from './agent/read-agent-call.ts'
import { basesOf, type KnowledgeDeps, pagesFor } from './agent/search-knowledge.ts'

export interface AgentDeps extends KnowledgeDeps, IdempotencyDeps {
  readonly catalog: () => Catalog
}

/** What the pipeline of chat calls lends: the same for every key. */
export interface ChatSteps {
  readonly dialect: Dialect
  /** Model, allowlists and tools. */
  readonly price: (read: ReadCall) => PricedCall
  readonly execute: (priced: PricedCall) => Observable<Reply>
  readonly withRefusalLog: <T>(caller: Caller, stages: () => T) => T
  readonly refusalsOf: (caller: Caller) => <T>(values: Observable<T>) => Observable<T>
}

const claimantOf = ({ request, known, requestHash }: AgentCall): Claimant => ({
  request,
  accountId: known.account.id,
  requestHash,
})

export function agentCalls(deps: AgentDeps, steps: ChatSteps): (caller: Caller) => Observable<Reply> {
  const { dialect, price, execute, withRefusalLog, refusalsOf } = steps

  const prepare = (caller: Caller, agent: Agent, bases: AgentCall['bases']): AgentCall => {
    const { agentRequest, read } = withRefusalLog(caller, () => {
      const agentRequest = readAgentRequest(caller.request.body)
      return { agentRequest, read: readAgentCall(dialect, caller, agent, agentRequest) }
    })
    const priced = price(read)
    withRefusalLog(priced, () => requireVision(priced, agentRequest))
    return { ...priced, agent, agentRequest, bases, requestHash: intentOf(caller, agent) }
  }
  /** An answer that is kept already needs no search: this comes behind the claim. */
  const inform = (call: AgentCall): Observable<Reply> => {
    if (call.bases.length === 0) return execute(call)
    return pagesFor(deps, call.bases, call.agentRequest.question).pipe(
      map((pages) => withPages(dialect, call, pages)),
      refusalsOf(call),
      concatMap(execute),
    )
  }
  const once = idempotent(deps, { claimantOf, refusalsOf, work: inform })

  return (caller) => {
    const agent = withRefusalLog(caller, () => {
      requireBalance(caller)
      return agentOf(deps.catalog(), caller)
    })
    if (agent.file.knowledge.length === 0) return once(prepare(caller, agent, []))
    // Steps of their own: what waits for the end of an answer must not hold on to the request.
    return basesOf(deps, agent).pipe(
      refusalsOf(caller),
      map((bases) => prepare(caller, agent, bases)),
      concatMap(once),
    )
  }
}
