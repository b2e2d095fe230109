/** Drafts of agents: an edit beside what is in force, until it is published or discarded. */
import type { Agent, AgentDraft, AgentFile } from '../../../schemas/accounts/agent.ts'
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import type { Queryable, Sql } from '../connection.ts'
import { inTransaction } from '../transaction.ts'
import { agentDeleted, setAgentState, showAgent, updateAgent } from './agents.ts'
import { recordOperation } from './audit-record.ts'

type DraftRow = SnakeCase<AgentDraft>

/** Returns the drafts of these agents. */
export async function readAgentDrafts(sql: Queryable, agentIds: readonly string[]): Promise<AgentDraft[]> {
  const rows = await sql<DraftRow[]>`
    SELECT * FROM agent_drafts WHERE agent_id = ANY (${agentIds as string[]}::text[])`
  return rows.map(fromRow<AgentDraft>)
}

/**
 * Keeps an edit of an agent as its draft. What is in force stays so.
 * @throws Refusal `agent_not_found`, `agent_deleted`
 */
export async function saveAgentDraft(sql: Sql, agentId: string, file: AgentFile): Promise<AgentDraft> {
  return inTransaction(sql, async (transaction) => {
    const { accountId, state } = await showAgent(transaction, agentId)
    if (state === 'deleted') throw agentDeleted(agentId)
    const [before] = await readAgentDrafts(transaction, [agentId])
    const [row] = await transaction<[DraftRow]>`
      INSERT INTO agent_drafts AS kept (agent_id, file) VALUES (${agentId}, ${sql.json(file)})
      ON CONFLICT (agent_id) DO UPDATE SET file = excluded.file, updated_at = now()
      RETURNING *`
    const operation = { action: 'agent.draft', accountId, subjectId: agentId }
    await recordOperation(transaction, { ...operation, before: before?.file, after: file })
    return fromRow<AgentDraft>(row)
  })
}

/** Forgets the draft of an agent, where it has one. */
export async function discardAgentDraft(sql: Sql, agentId: string): Promise<void> {
  await inTransaction(sql, async (transaction) => {
    const { accountId } = await showAgent(transaction, agentId)
    const [row] = await transaction<DraftRow[]>`
      DELETE FROM agent_drafts WHERE agent_id = ${agentId} RETURNING *`
    if (row === undefined) return
    const operation = { action: 'agent.discard', accountId, subjectId: agentId }
    await recordOperation(transaction, { ...operation, before: row.file })
  })
}

/**
 * Takes up the draft of an agent, where it has one, and lets its keys work.
 * @throws Refusal `agent_not_found`, `agent_deleted`
 */
export async function publishAgent(sql: Sql, agentId: string): Promise<Agent> {
  return inTransaction(sql, async (transaction) => {
    const [row] = await transaction<DraftRow[]>`
      DELETE FROM agent_drafts WHERE agent_id = ${agentId} RETURNING *`
    if (row !== undefined) await updateAgent(transaction, agentId, row.file)
    return setAgentState(transaction, agentId, 'published')
  })
}
