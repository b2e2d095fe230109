/** Operations of agents. */
import { z } from 'zod'
import { AGENT_STATES, agentFile } from '../../accounts/agent.ts'
import { queryFlag } from '../../query.ts'
import { instantText, operation, toListSchema } from '../operation.ts'

const id = z.string()
const allows = ['owner', 'admin'] as const

const agentSchema = z.object({
  id,
  account_id: z.string(),
  state: z.enum(AGENT_STATES),
  file: agentFile.describe('In force while the agent is published.'),
  draft: agentFile.nullable().describe('An edit that publishing takes up.'),
  drafted_at: instantText.nullable(),
  warnings: z.array(z.string()).describe('Why calls of the agent would be refused.'),
  created_at: instantText,
  updated_at: instantText,
})

const toChange = { scope: 'knowledge', allows } as const

export const listAgents = operation('listAgents', {
  summary: 'List the agents of an organization.',
  input: z.object({
    account_id: z.string(),
    deleted: queryFlag().default(false).describe('Include deleted ones.'),
  }),
  answer: { name: 'AgentList', schema: toListSchema(agentSchema) },
  scope: 'read',
  allows,
  commands: [
    { words: 'agent list', columns: 'id name state model knowledge web_search image_generation updated_at' },
  ],
})

export const showAgent = operation('showAgent', {
  summary: 'Show an agent with its draft.',
  input: z.object({ id }),
  answer: { name: 'Agent', schema: agentSchema },
  scope: 'read',
  allows,
  commands: [{ words: 'agent show' }],
})

export const createAgent = operation('createAgent', {
  ...toChange,
  summary: 'Create an agent. Its keys do not work until it is published.',
  input: z.object({
    account_id: z.string().describe('Organization of the agent.'),
    file: agentFile,
  }),
  answer: { name: 'CreatedAgent', schema: agentSchema },
  isIdempotent: true,
  status: 201,
  commands: [{ words: 'agent create', example: '--file agent.yaml' }],
})

export const replaceAgent = operation('replaceAgent', {
  ...toChange,
  summary: 'Replace the file of an agent without a draft, within a second.',
  input: z.object({ id, file: agentFile }),
  answer: { name: 'ReplacedAgent', schema: agentSchema },
  commands: [{ words: 'agent update', example: '--file agent.yaml' }],
})

export const saveDraft = operation('saveDraft', {
  ...toChange,
  summary: 'Save an edit of an agent as its draft. The published version stays in force.',
  input: z.object({ id, file: agentFile }),
  answer: { name: 'DraftedAgent', schema: agentSchema },
})

export const discardDraft = operation('discardDraft', {
  ...toChange,
  summary: 'Discard the draft of an agent.',
  input: z.object({ id }),
  answer: { name: 'AgentWithoutDraft', schema: agentSchema },
})

export const publishAgent = operation('publishAgent', {
  ...toChange,
  summary:
    'Publish the draft of an agent and allow its keys, within a second. Calls under way continue as they began.',
  input: z.object({ id }),
  answer: { name: 'PublishedAgent', schema: agentSchema },
  commands: [{ words: 'agent publish' }],
})

export const unpublishAgent = operation('unpublishAgent', {
  ...toChange,
  summary: 'Refuse the keys of an agent until it is published again.',
  input: z.object({ id }),
  answer: { name: 'UnpublishedAgent', schema: agentSchema },
  commands: [
    {
      words: 'agent unpublish',
      effect: 'This would refuse the calls of the agent {name} ({id}) until it is published again',
    },
  ],
})

export const deleteAgent = operation('deleteAgent', {
  ...toChange,
  summary: 'Delete an agent for good. Its keys stop working.',
  input: z.object({ id }),
  answer: { name: 'DeletedAgent', schema: agentSchema },
  commands: [
    {
      words: 'agent delete',
      effect: 'This would delete the agent {name} ({id}) for good, and its keys would stop working',
    },
  ],
})
