/** `tollgate key request`, `requests`, `approve` and `deny`: a member requests a key, an admin decides. */
import type { Command } from 'commander'
import { keyRequestShape, keyShape } from '../../../pipelines/management/shapes.ts'
import type { KeyRequest } from '../../../schemas/accounts/organization.ts'
import type { Credits } from '../../../schemas/money.ts'
import { assertKnownModels } from '../config/model-names.ts'
import { type Answer, answerRecord, answers, answerTable, type Context } from '../context.ts'
import { credits, expiry, modelList, nameText, orNull } from '../option-values.ts'
import { keyInWords } from './key-text.ts'

const LIST_FIELDS = ['id', 'member_id', 'name', 'agent_id', 'state', 'decided_by', 'key_id', 'created_at']

const one = (request: KeyRequest): Answer => answerRecord(keyRequestShape(request))

interface RequestOptions {
  organization: string
  by: string
  name: string
  agent?: string
  note?: string
}

interface ApproveOptions {
  by: string
  spendCap: Credits
  models?: readonly string[] | 'all'
  expires?: Date
}

export function addKeyRequestCommands(key: Command, context: Context): void {
  const { wiring } = context
  answers(
    context,
    key
      .command('request')
      .description('ask for a key as a member of an organization')
      .requiredOption('--organization <id>', 'account id of the organization')
      .requiredOption('--by <id>', 'account id of the member')
      .requiredOption('--name <name>', 'what to call the key', nameText)
      .option('--agent <id>', 'ask for a key of this agent (default: an employee key)')
      .option('--note <text>', 'what it is for'),
    'key request --organization acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --by acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN --name laptop',
    async ({ organization, by, agent, ...asked }: RequestOptions) => {
      const request = { ...asked, organizationId: organization, memberId: by, agentId: agent ?? null }
      return one(await wiring.withDatabase((database) => database.requestKey(request)))
    },
  )
  answers(
    context,
    key
      .command('requests')
      .description('what the members of an organization asked for')
      .requiredOption('--organization <id>', 'account id of the organization'),
    'key requests --organization acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    async ({ organization }: { organization: string }) => {
      const requests = await wiring.withDatabase((database) => database.listKeyRequests(organization))
      return answerTable(requests.map(keyRequestShape), LIST_FIELDS)
    },
  )
  addDecisions(key, context)
}

function addDecisions(key: Command, context: Context): void {
  const { wiring } = context
  answers(
    context,
    key
      .command('approve')
      .description('issue the key that a member asked for; prints it')
      .argument('<request>', 'id of the request')
      .requiredOption('--by <id>', 'account id of an admin of the organization')
      .requiredOption('--spend-cap <credits>', 'what the key may spend in all', credits)
      .option('--models <a,b>', 'model ids that it may call (default: every model)', modelList)
      .option('--expires <time>', 'RFC 3339 time from which it is refused (default: never)', expiry),
    'key approve kreq_01J8Z3N4V9QKX2T5W7Y0ABCDEF --by acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN --spend-cap 50',
    async (requestId: string, { by, spendCap, models, expires }: ApproveOptions) => {
      assertKnownModels(wiring, models)
      const allowedModels = orNull(models ?? 'all', 'all')
      const approval = { requestId, by, spendCap, allowedModels, expiresAt: expires ?? null }
      const issued = await wiring.withDatabase((database) => database.approveKey(approval))
      const request = keyRequestShape(issued.request)
      const json = { ...keyShape(issued.key), key: issued.raw, request }
      return answerRecord(json, { ...keyInWords(json), request: request.id })
    },
  )
  answers(
    context,
    key
      .command('deny')
      .description('refuse the key that a member asked for')
      .argument('<request>', 'id of the request')
      .requiredOption('--by <id>', 'account id of an admin of the organization'),
    'key deny kreq_01J8Z3N4V9QKX2T5W7Y0ABCDEF --by acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN',
    async (requestId: string, { by }: { by: string }) =>
      one(await wiring.withDatabase((database) => database.denyKey(requestId, by))),
  )
}
