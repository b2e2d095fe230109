/** Agents as PostgreSQL keeps them. */
import type { Agent, AgentFile, AgentState } from '../../../schemas/accounts/agent.ts'
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import { showAccount } from './accounts.ts'

type AgentRow = SnakeCase<Agent>

/** As JSON, times are text. */
export type AgentJson = Omit<AgentRow, 'created_at' | 'updated_at'> & {
  readonly created_at: string
  readonly updated_at: string
}

export const parseAgent = ({ created_at, updated_at, ...row }: AgentJson): Agent =>
  fromRow<Agent>({ ...row, created_at: new Date(created_at), updated_at: new Date(updated_at) })

export const agentNotFound = (agentId: string): Refusal =>
  new Refusal('agent_not_found', `There is no agent ${agentId}`)

export const agentDeleted = (agentId: string): Refusal =>
  new Refusal('agent_deleted', `Agent ${agentId} has been deleted`)

/** @throws Refusal `agent_not_found` */
export async function showAgent(sql: Queryable, agentId: string): Promise<Agent> {
  const [row] = await sql<AgentRow[]>`SELECT * FROM agents WHERE id = ${agentId}`
  if (row === undefined) throw agentNotFound(agentId)
  return fromRow<Agent>(row)
}

/**
 * Creates an agent as a draft.
 * @throws Refusal `not_an_organization`, `account_not_found`, `limit_reached`
 */
export const createAgent = (sql: Sql, accountId: string, file: AgentFile): Promise<Agent> =>
  addWithin(
    sql,
    {
      limit: 'agents_per_account',
      ownerId: accountId,
      entries: (present) =>
        present`SELECT FROM agents WHERE account_id = ${accountId} AND state <> 'deleted'`,
    },
    (transaction) => insertAgent(transaction, accountId, file),
  )

async function insertAgent(sql: Queryable, accountId: string, file: AgentFile): Promise<Agent> {
  const [row] = await sql<AgentRow[]>`
    INSERT INTO agents (id, account_id, file)
    SELECT ${newId('agt')}, id, ${sql.json(file)} FROM accounts
    WHERE id = ${accountId} AND kind = 'organization'
    RETURNING *`
  if (row !== undefined) return fromRow<Agent>(row)
  await showAccount(sql, accountId)
  throw new Refusal(
    'not_an_organization',
    `Account ${accountId} is a personal one: agents belong to accounts of kind organization`,
  )
}

/** @throws Refusal `agent_not_found`; `agent_deleted` */
export async function updateAgent(sql: Queryable, agentId: string, file: AgentFile): Promise<Agent> {
  const [row] = await sql<AgentRow[]>`
    UPDATE agents SET file = ${sql.json(file)}, updated_at = now()
    WHERE id = ${agentId} AND state <> 'deleted'
    RETURNING *`
  if (row !== undefined) return fromRow<Agent>(row)
  await showAgent(sql, agentId)
  throw agentDeleted(agentId)
}

/** Sets the state. Deleting is final; its keys remain and get 403. The present state may be set again. */
export async function setAgentState(sql: Queryable, agentId: string, state: AgentState): Promise<Agent> {
  const [row] = await sql<AgentRow[]>`
    UPDATE agents SET state = ${state}, updated_at = now()
    WHERE id = ${agentId} AND state NOT IN ('deleted', ${state})
    RETURNING *`
  const agent = row === undefined ? await showAgent(sql, agentId) : fromRow<Agent>(row)
  if (agent.state !== state) throw agentDeleted(agentId)
  return agent
}

export async function listAgents(sql: Sql, accountId: string): Promise<Agent[]> {
  const rows = await sql<AgentRow[]>`SELECT * FROM agents WHERE account_id = ${accountId} ORDER BY id`
  if (rows.length === 0) await showAccount(sql, accountId)
  return rows.map(fromRow<Agent>)
}
