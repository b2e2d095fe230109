/** What a call with an agent key has besides; other calls have no `agent`. */
import type { Agent } from '../../../schemas/accounts/agent.ts'
import type { ReadableBase } from '../../../src/postgres/knowledge/types.ts'
import type { AgentRequest } from '../../../src/protocols/chat-completions/agent-body.ts'

export interface FoundAgent {
  readonly agent?: {
    readonly agent: Agent
    /** The knowledge bases that the agent may read. */
    readonly bases: readonly ReadableBase[]
  }
}

export interface AppliedAgent {
  readonly agent?: NonNullable<FoundAgent['agent']> & {
    /** What the client of the agent asks for. */
    readonly request: AgentRequest
    /** What the call log shows of the agent. */
    readonly detail: string
  }
}
