/** The parts of a call that only an agent key adds; other calls have no `agent`. */
import type { Agent } from '../../../schemas/accounts/agent.ts'
import type { ReadableBase } from '../../../src/postgres/knowledge/types.ts'
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
    /** The client's request to the agent. */
    readonly given: Buffer
    /** The text of its latest message of role user; empty where that has none. */
    readonly question: string
    readonly hasImages: boolean
    /** The client gets a whole answer, which is put together from a stream. */
    readonly isAssembled: boolean
    /** The agent's entry in the call log. */
    readonly detail: string
  }
}

/** Returns the call as its agent makes it. */
export function calledByAgent(read: ChatCall, { agent }: AppliedAgent, detail = agent?.detail): ChatCall {
  if (agent === undefined) return read
  return { ...read, settings: read.settings + detail, ...(agent.isAssembled && { isAssembled: true }) }
}
