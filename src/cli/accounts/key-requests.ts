/** `tollgate key request`, `requests`, `approve` and `deny`: a member requests a key, an admin decides. */
import { organizationActs } from '../../../pipelines/management/accounts/organizations.ts'
import {
  approveKey,
  denyKey,
  listKeyRequests,
  requestKey,
} from '../../../schemas/management/accounts/organizations.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { operatorConfig } from '../config/config.ts'
import { answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { type Runner, runnerOf } from '../management.ts'
import { addressList, credits, expiry, keyLimit, modelList, nameText, orNull } from '../option-values.ts'
import { keyInWords } from './key-text.ts'

const LIST_FIELDS = ['id', 'member_id', 'name', 'agent_id', 'state', 'decided_by', 'key_id', 'created_at']

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
  models?: string[] | 'all'
  expires?: Date
  rpm?: number
  concurrency?: number
  addresses?: string[]
}

export function addKeyRequestCommands(key: Command, context: Context): void {
  const { wiring } = context
  const acts = runnerOf(wiring, organizationActs, () => ({ config: () => operatorConfig(wiring) }))
  key
    .command('request')
    .description('ask for a key as a member of an organization')
    .requiredOption('--organization <id>', 'account id of the organization')
    .requiredOption('--by <id>', 'account id of the member')
    .requiredOption('--name <name>', 'what to call the key', nameText)
    .option('--agent <id>', 'ask for a key of this agent (default: an employee key)')
    .option('--note <text>', 'what it is for')
    .example(
      'key request --organization acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --by acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN --name laptop',
    )
    .answers(async ({ organization, by, agent, ...asked }: RequestOptions) =>
      answerRecord(await acts.run(requestKey, { ...asked, account_id: organization, agent_id: agent }, by)),
    )
  key
    .command('requests')
    .description('what the members of an organization asked for')
    .requiredOption('--organization <id>', 'account id of the organization')
    .example('key requests --organization acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async ({ organization }: { organization: string }) =>
      answerTable(await acts.list(listKeyRequests, { account_id: organization }), LIST_FIELDS),
    )
  addDecisions(key, context, acts)
}

function addDecisions(key: Command, { wiring }: Context, { run }: Runner): void {
  const organizationOf = (requestId: string): Promise<string> =>
    wiring.withDatabase(async (database) => (await database.keyRequests.show(requestId)).organizationId)
  key
    .command('approve')
    .description('issue the key that a member asked for; prints it')
    .argument('<request>', 'id of the request')
    .requiredOption('--by <id>', 'account id of an admin of the organization')
    .requiredOption('--spend-cap <credits>', 'what the key may spend in all', credits)
    .option('--models <a,b>', 'model ids that it may call (default: every model)', modelList)
    .option('--expires <time>', 'RFC 3339 time from which it is refused (default: never)', expiry)
    .option('--rpm <n>', 'requests per minute of the key', keyLimit)
    .option('--concurrency <n>', 'calls of the key at the same time', keyLimit)
    .option('--addresses <a,b>', 'addresses and networks that it works from (default: any)', addressList)
    .example('key approve kreq_01J8Z3N4V9QKX2T5W7Y0ABCDEF --by acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN --spend-cap 50')
    .answers(async (requestId: string, { by, spendCap, models, expires, ...limits }: ApproveOptions) => {
      const approval = {
        account_id: await organizationOf(requestId),
        id: requestId,
        spend_cap: printCredits(spendCap),
        allowed_models: orNull(models, 'all'),
        expires_at: expires?.toISOString(),
        requests_per_minute: limits.rpm,
        concurrency: limits.concurrency,
        allowed_addresses: limits.addresses,
      }
      const json = await run(approveKey, approval, by)
      return answerRecord(json, { ...keyInWords(json), request: json.request.id })
    })
  key
    .command('deny')
    .description('refuse the key that a member asked for')
    .argument('<request>', 'id of the request')
    .requiredOption('--by <id>', 'account id of an admin of the organization')
    .example('key deny kreq_01J8Z3N4V9QKX2T5W7Y0ABCDEF --by acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN')
    .answers(async (id: string, { by }: { by: string }) =>
      answerRecord(await run(denyKey, { account_id: await organizationOf(id), id }, by)),
    )
}
