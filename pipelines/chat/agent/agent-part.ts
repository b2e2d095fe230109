/** The parts of a call that only an agent key adds; other calls have no `agent`. */
import type { Agent } from '../../../schemas/accounts/agent.ts'
import type { ReadableBase } from '../../../src/postgres/knowledge/types.ts'
import { type AgentRequest, assemblesAnswer } from '../../../src/protocols/chat-completions/agent-body.ts'
import type { ChatCall } from '../../../src/protocols/dialect.ts'

export interface FoundAgent {
  readonly agent?: {
    readonly agent: Agent
    /** The knowledge bases that the agent may read. */
    readonly bases: readonly ReadableBase[]
  }
}

export interface AppliedAgent {
  readonly agent?: NonNullable<FoundAgent['agent']> & {
    /** The fields of the client's request to the agent. */
    readonly request: AgentRequest
    /** The agent's entry in the call log. */
    readonly detail: string
  }
}

/** Returns the call as its agent makes it. */
export function calledByAgent(read: ChatCall, { agent }: AppliedAgent, detail = agent?.detail): ChatCall {
  if (agent === undefined) return read
  const isAssembled = assemblesAnswer(agent.request, agent.agent.file)
  return { ...read, settings: read.settings + detail, ...(isAssembled && { isAssembled }) }
}
