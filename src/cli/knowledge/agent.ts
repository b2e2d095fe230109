/** `tollgate agent …`: an organization's configured voices. */
import type { Command } from 'commander'
import { knowledgeWarnings, modelWarnings } from '../../../pipelines/management/accounts/agent-warnings.ts'
import type { Agent, AgentState } from '../../../schemas/accounts/agent.ts'
import type { Database } from '../../postgres/database.ts'
import { UnknownConfig } from '../config/file.ts'
import { type Answer, answerRecord, answers, answerTable, type Context } from '../context.ts'
import type { JsonObject } from '../output.ts'
import { readAgentFile } from './agent-file.ts'

const LIST_FIELDS = [
  'id',
  'name',
  'state',
  'model',
  'knowledge',
  'web_search',
  'image_generation',
  'updated_at',
]
const EXAMPLE_ID = 'agt_01J8Z3N4V9QKX2T5W7Y0ABCDEF'
/** In a table: the rest is for `agent show --json`. */
const PERSONA_SHOWN_CHARS = 100

const agentShape = ({ id, accountId, state, file, createdAt, updatedAt }: Agent) =>
  ({
    id,
    account_id: accountId,
    name: file.name,
    model: file.model,
    persona: file.persona,
    temperature: file.temperature,
    knowledge: file.knowledge,
    web_search: file.web_search,
    image_generation: file.image_generation,
    state,
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
  }) satisfies JsonObject

function one(agent: Agent): Answer {
  const json = agentShape(agent)
  const { persona } = json
  const shown = persona.length > PERSONA_SHOWN_CHARS ? `${persona.slice(0, PERSONA_SHOWN_CHARS)}…` : persona
  return answerRecord(json, { ...json, persona: shown })
}

export function addAgentCommands(program: Command, context: Context): void {
  const { wiring, output } = context
  const agent = program.command('agent').description('agents of an organization')

  /** Runs the change, and adds warnings about the agent to the answer. */
  const doing = async (work: (database: Database) => Promise<Agent>): Promise<Answer> => {
    // A configuration with problems is no reason to leave the agent undone, and nothing to judge it by.
    const { config, reason } = configToJudgeBy()
    if (reason !== null) output.error(`warning: the model was not checked: ${reason}\n`)
    return wiring.withDatabase(async (database) => {
      const done = await work(database)
      const doubts = [
        ...(config === null ? [] : modelWarnings(done.file, config.models)),
        ...(await knowledgeWarnings(database, done, done.file)),
      ]
      for (const doubt of doubts) output.error(`warning: calls of this agent will be refused: ${doubt}\n`)
      return one(done)
    })
  }

  const configToJudgeBy = () => {
    try {
      return { config: wiring.loadConfig({ parts: 'all but channels' }).config, reason: null }
    } catch (error) {
      if (!(error instanceof UnknownConfig)) throw error
      return { config: null, reason: error.message }
    }
  }

  answers(
    context,
    agent
      .command('create')
      .description('a new agent, as a draft')
      .requiredOption('--account <id>', 'the organization that it belongs to')
      .requiredOption('--file <path>', 'its YAML file'),
    'agent create --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --file agent.yaml',
    async ({ account, file }: { account: string; file: string }) => {
      const read = readAgentFile(file)
      return doing((database) => database.createAgent(account, read))
    },
  )
  answers(
    context,
    agent
      .command('update')
      .description('take up a changed file; in force everywhere within a second')
      .argument('<id>', 'agent id')
      .requiredOption('--file <path>', 'its YAML file'),
    `agent update ${EXAMPLE_ID} --file agent.yaml`,
    async (id: string, { file }: { file: string }) => {
      const read = readAgentFile(file)
      return doing((database) => database.updateAgent(id, read))
    },
  )

  for (const [name, state, description] of [
    ['publish', 'published', 'let the keys of an agent work'],
    ['unpublish', 'draft', 'refuse the keys of an agent until it is published again'],
    ['delete', 'deleted', 'end an agent for good: its keys open nothing any more'],
  ] as const satisfies readonly (readonly [string, AgentState, string])[]) {
    answers(
      context,
      agent.command(name).description(description).argument('<id>', 'agent id'),
      `agent ${name} ${EXAMPLE_ID}`,
      (id: string) =>
        state === 'published'
          ? doing((database) => database.publishAgent(id))
          : wiring.withDatabase(async (database) => one(await database.setAgentState(id, state))),
    )
  }

  answers(
    context,
    agent
      .command('list')
      .description('every agent of an organization')
      .requiredOption('--account <id>', 'account id'),
    'agent list --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    async ({ account }: { account: string }) => {
      const found = await wiring.withDatabase((database) => database.listAgents(account))
      return answerTable(found.map(agentShape), LIST_FIELDS)
    },
  )
  answers(
    context,
    agent.command('show').description('one agent').argument('<id>', 'agent id'),
    `agent show ${EXAMPLE_ID}`,
    async (id: string) => one(await wiring.withDatabase((database) => database.showAgent(id))),
  )
}
