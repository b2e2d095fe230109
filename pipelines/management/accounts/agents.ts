/** Operations of agents. */
import type { Agent } from '../../../schemas/accounts/agent.ts'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/accounts/agents.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import type { Database, Repositories } from '../../../src/postgres/database.ts'
import { implementWith } from '../operation.ts'
import { toWholeList } from '../page.ts'
import { warnOfKnowledge, warnOfModels } from './agent-warnings.ts'

export interface AgentServices {
  /** Null: not known, so that models are not judged. */
  readonly config: () => ConfigFile | null
}

async function agentShape(database: Repositories, { config }: AgentServices, agent: Agent) {
  const [draft] = await database.agents.readDrafts([agent.id])
  const judged = draft?.file ?? agent.file
  const models = config()?.models
  return {
    ...toApiShape(agent),
    draft: draft?.file ?? null,
    drafted_at: draft?.updatedAt.toISOString() ?? null,
    warnings: [
      ...(models === undefined ? [] : warnOfModels(judged, models)),
      ...(await warnOfKnowledge(database, agent, judged)),
    ],
  }
}

const findAgentAccount = async (database: Database, { id }: { readonly id: string }): Promise<string> =>
  (await database.agents.show(id)).accountId

const implement = implementWith<AgentServices>()

/** Implements an operation that changes one agent. All such operations have the input and the answer of this one. */
const implementChange = (
  operation:
    | typeof operations.discardDraft
    | typeof operations.unpublishAgent
    | typeof operations.deleteAgent,
  change: (database: Repositories, id: string) => Promise<unknown>,
) =>
  implement(operation, findAgentAccount, ({ write }, { id }, services) =>
    write(async (database) => {
      await change(database, id)
      return agentShape(database, services, await database.agents.show(id))
    }),
  )

export const agentOperations = [
  implement(operations.listAgents, async ({ database }, { account_id: accountId, deleted }, services) => {
    const agents = await database.agents.list(accountId)
    const listed = agents.filter(({ state }) => deleted || state !== 'deleted')
    return toWholeList(await Promise.all(listed.map((agent) => agentShape(database, services, agent))))
  }),
  implement(operations.showAgent, findAgentAccount, async ({ database }, { id }, services) =>
    agentShape(database, services, await database.agents.show(id)),
  ),
  implement(operations.createAgent, async ({ write }, { account_id: accountId, file }, services) =>
    write(async (database) => agentShape(database, services, await database.agents.create(accountId, file))),
  ),
  implement(operations.replaceAgent, findAgentAccount, async ({ write }, { id, file }, services) =>
    write(async (database) => agentShape(database, services, await database.agents.update(id, file))),
  ),
  implement(operations.saveDraft, findAgentAccount, async ({ write }, { id, file }, services) =>
    write(async (database) => {
      await database.agents.saveDraft(id, file)
      return agentShape(database, services, await database.agents.show(id))
    }),
  ),
  implementChange(operations.discardDraft, (database, id) => database.agents.discardDraft(id)),
  implement(operations.publishAgent, findAgentAccount, ({ write }, { id }, services) =>
    write(async (database) => {
      await database.agents.publish(id)
      const published = await agentShape(database, services, await database.agents.show(id))
      if (published.warnings.length > 0)
        throw new Failure('conflict', `Its calls would be refused: ${published.warnings.join('; ')}.`)
      return published
    }),
  ),
  implementChange(operations.unpublishAgent, (database, id) => database.agents.setState(id, 'draft')),
  implementChange(operations.deleteAgent, (database, id) => database.agents.setState(id, 'deleted')),
]
