/** What the rest of the service may ask of PostgreSQL about agents. */
import type { Agent, AgentFile, AgentState } from '../../../schemas/accounts/agent.ts'

export interface Agents {
  /** A draft. @throws Refusal `not_an_organization`, `account_not_found` */
  createAgent(accountId: string, file: AgentFile): Promise<Agent>
  /** @throws Refusal `agent_not_found`, as all that follow; `agent_deleted` */
  updateAgent(agentId: string, file: AgentFile): Promise<Agent>
  /** Deleting is final; its keys remain and are answered 403. */
  setAgentState(agentId: string, state: AgentState): Promise<Agent>
  listAgents(accountId: string): Promise<Agent[]>
  showAgent(agentId: string): Promise<Agent>
}
