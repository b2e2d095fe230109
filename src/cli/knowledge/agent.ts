/** `tollgate agent …`: an organization's configured voices. */
import { type AgentDeps, agentActs } from '../../../pipelines/management/accounts/agents.ts'
import {
  createAgent,
  deleteAgent,
  listAgents,
  publishAgent,
  replaceAgent,
  showAgent,
  unpublishAgent,
} from '../../../schemas/management/accounts/agents.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { UnknownConfig } from '../config/file.ts'
import { type Answer, answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { runnerOf } from '../management.ts'
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

type Agent = AnswerOf<typeof showAgent>

const agentShape = ({ id, account_id, file, state, draft, drafted_at, created_at, updated_at }: Agent) =>
  ({ id, account_id, ...file, state, draft, drafted_at, created_at, updated_at }) satisfies JsonObject

function one(agent: Agent): Answer {
  const json = agentShape(agent)
  const { persona, draft: _, ...fields } = json
  const shown = persona.length > PERSONA_SHOWN_CHARS ? `${persona.slice(0, PERSONA_SHOWN_CHARS)}…` : persona
  return answerRecord(json, { ...fields, persona: shown })
}

export function addAgentCommands(program: Command, { wiring, output }: Context): void {
  const agent = program.command('agent').description('agents of an organization')

  /** The reason why models are not judged; null where they are. */
  let unjudged: string | null = null
  // A configuration with problems is no reason to leave the agent undone, and nothing to judge it by.
  const configToJudgeBy = () => {
    try {
      return wiring.loadConfig({ parts: 'all but channels' }).config
    } catch (error) {
      if (!(error instanceof UnknownConfig)) throw error
      unjudged = error.message
      return null
    }
  }
  const { run } = runnerOf<AgentDeps>(wiring, agentActs, () => {
    const known = configToJudgeBy()
    return { config: () => known }
  })

  /** Adds warnings about the agent to the answer. */
  const judged = (agent: Agent): Answer => {
    if (unjudged !== null) output.error(`warning: the model was not checked: ${unjudged}\n`)
    for (const doubt of agent.warnings)
      output.error(`warning: calls of this agent will be refused: ${doubt}\n`)
    return one(agent)
  }

  agent
    .command('create')
    .description('a new agent, as a draft')
    .requiredOption('--account <id>', 'the organization that it belongs to')
    .requiredOption('--file <path>', 'its YAML file')
    .example('agent create --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --file agent.yaml')
    .answers(async ({ account, file }: { account: string; file: string }) =>
      judged(await run(createAgent, { account_id: account, file: readAgentFile(file) })),
    )
  agent
    .command('update')
    .description('take up a changed file; in force everywhere within a second')
    .argument('<id>', 'agent id')
    .requiredOption('--file <path>', 'its YAML file')
    .example(`agent update ${EXAMPLE_ID} --file agent.yaml`)
    .answers(async (id: string, { file }: { file: string }) =>
      judged(await run(replaceAgent, { id, file: readAgentFile(file) })),
    )

  for (const [name, operation, shown, description] of [
    ['publish', publishAgent, judged, 'take up the draft of an agent, and let its keys work'],
    ['unpublish', unpublishAgent, one, 'refuse the keys of an agent until it is published again'],
    ['delete', deleteAgent, one, 'end an agent for good: its keys open nothing any more'],
  ] as const)
    agent
      .command(name)
      .description(description)
      .argument('<id>', 'agent id')
      .example(`agent ${name} ${EXAMPLE_ID}`)
      .answers(async (id: string) => shown(await run(operation, { id })))

  agent
    .command('list')
    .description('the agents of an organization, except deleted ones')
    .requiredOption('--account <id>', 'account id')
    .option('--deleted', 'deleted ones too')
    .example('agent list --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async ({ account, deleted = false }: { account: string; deleted?: boolean }) => {
      const { data } = await run(listAgents, { account_id: account, deleted: String(deleted) })
      return answerTable(data.map(agentShape), LIST_FIELDS)
    })
  agent
    .command('show')
    .description('one agent')
    .argument('<id>', 'agent id')
    .example(`agent show ${EXAMPLE_ID}`)
    .answers(async (id: string) => one(await run(showAgent, { id })))
}
