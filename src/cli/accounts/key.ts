/** `tollgate key …`: API keys. */
import { Option } from 'commander'
import { keyActs } from '../../../pipelines/management/accounts/keys.ts'
import { KEY_KINDS, type KeyKind } from '../../../schemas/accounts/key.ts'
import {
  createKey,
  forgetKeys,
  listKeys,
  revealKey,
  revokeKey,
  showKey,
  updateKey,
} from '../../../schemas/management/accounts/keys.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { operatorConfig } from '../config/config.ts'
import { type Answer, answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { type Runner, runnerOf } from '../management.ts'
import {
  addressesOrAny,
  addressList,
  credits,
  creditsOrNone,
  expiry,
  expiryOrNever,
  keyLimit,
  limitOrNone,
  modelList,
  nameText,
  orNull,
} from '../option-values.ts'
import { assertAgreed } from './confirm.ts'
import { addKeyRequestCommands } from './key-requests.ts'
import { addRotationCommands } from './key-rotation.ts'
import { keyInWords } from './key-text.ts'

const LIST_FIELDS = [
  'id',
  'name',
  'kind',
  'key_prefix',
  'allowed_models',
  'expires_at',
  'enabled',
  'revoked_at',
  'spend_cap',
  'spent',
]

const one = (json: AnswerOf<typeof showKey | typeof createKey>): Answer =>
  answerRecord(json, keyInWords(json))

interface CreateOptions {
  account: string
  name: string
  models?: string[] | 'all'
  expires?: Date
  kind: KeyKind
  agent?: string
  spendCap?: Credits
  accountLogs?: boolean
  rpm?: number
  concurrency?: number
  addresses?: string[]
}

function addCreate(key: Command, { run }: Runner): void {
  const create = key
    .command('create')
    .description('a new key; prints it')
    .requiredOption('--account <id>', 'account id')
    .requiredOption('--name <name>', 'what to call it', nameText)
    .option('--models <a,b>', 'model ids that it may call; "none" for none (default: every model)', modelList)
    .option('--expires <time>', 'RFC 3339 time from which it is refused (default: never)', expiry)
    .addOption(new Option('--kind <kind>', 'what it is for').choices(KEY_KINDS).default('console'))
    .option('--agent <id>', 'the agent that an agent key is bound to')
    .option('--spend-cap <credits>', 'the cap of an employee or agent key', credits)
    .option('--account-logs', 'it may read the logs of the whole account')
    .option('--rpm <n>', 'requests per minute of this key', keyLimit)
    .option('--concurrency <n>', 'calls of this key at the same time', keyLimit)
    .option('--addresses <a,b>', 'addresses and networks that it works from (default: any)', addressList)
    .example(
      'key create --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --name laptop --models sonata-large,sonata-small',
    )
  create.answers(
    async ({
      account,
      name,
      models,
      expires,
      kind,
      agent,
      spendCap,
      accountLogs,
      ...limits
    }: CreateOptions) => {
      if ((kind === 'agent') !== (agent !== undefined))
        create.error('error: a key of --kind agent names its --agent, and no other key does')
      if (spendCap !== undefined && kind !== 'employee' && kind !== 'agent')
        create.error('error: --spend-cap belongs to a key of --kind employee or agent')
      if (accountLogs && kind !== 'console')
        create.error('error: --account-logs belongs to a key of --kind console')
      return one(
        await run(createKey, {
          account_id: account,
          name,
          kind,
          agent_id: agent,
          allowed_models: orNull(models, 'all'),
          expires_at: expires?.toISOString(),
          spend_cap: spendCap === undefined ? null : printCredits(spendCap),
          account_logs: accountLogs,
          requests_per_minute: limits.rpm,
          concurrency: limits.concurrency,
          allowed_addresses: limits.addresses,
        }),
      )
    },
  )
}

interface UpdateOptions {
  name?: string
  models?: string[] | 'all'
  expires?: Date | 'never'
  enable?: boolean
  disable?: boolean
  accountLogs?: 'on' | 'off'
  spendCap?: Credits | 'none'
  rpm?: number | 'none'
  concurrency?: number | 'none'
  addresses?: string[] | 'any'
}

/** Returns the changes; undefined for what stays. */
const changesOf = ({ expires, enable, disable, accountLogs, spendCap, ...options }: UpdateOptions) => ({
  name: options.name,
  allowed_models: orNull(options.models, 'all'),
  expires_at: expires instanceof Date ? expires.toISOString() : orNull(expires, 'never'),
  enabled: enable ?? (disable ? false : undefined),
  account_logs: accountLogs && accountLogs === 'on',
  spend_cap: typeof spendCap === 'bigint' ? printCredits(spendCap) : orNull(spendCap, 'none'),
  requests_per_minute: orNull(options.rpm, 'none'),
  concurrency: orNull(options.concurrency, 'none'),
  allowed_addresses: orNull(options.addresses, 'any'),
})

function addUpdate(key: Command, { run }: Runner): void {
  const update = key
    .command('update')
    .description('change a key; in force everywhere within a second. What is not named stays')
    .argument('<id>', 'key id')
    .option('--name <name>', 'what to call it', nameText)
    .option('--models <a,b|all|none>', 'model ids that it may call', modelList)
    .option('--expires <time|never>', 'RFC 3339 time from which it is refused', expiryOrNever)
    .addOption(new Option('--enable', 'let it work').conflicts('disable'))
    .addOption(new Option('--disable', 'refuse it until it is enabled again').conflicts('enable'))
    .addOption(
      new Option('--account-logs <on|off>', 'it may read the logs of the whole account').choices([
        'on',
        'off',
      ]),
    )
    .option('--spend-cap <credits|none>', 'what an employee or agent key may spend in all', creditsOrNone)
    .option('--rpm <n|none>', 'requests per minute of this key', limitOrNone)
    .option('--concurrency <n|none>', 'calls of this key at the same time', limitOrNone)
    .option('--addresses <a,b|any>', 'addresses and networks that it works from', addressesOrAny)
    .example('key update key_01J8Z3N4V9QKX2T5W7Y0ABCDEF --models all --expires never')
  update.answers(async (id: string, options: UpdateOptions) => {
    if (Object.keys(options).length === 0) update.error('error: name at least one option to change')
    return one(await run(updateKey, { id, ...changesOf(options) }))
  })
}

export function addKeyCommands(program: Command, context: Context): void {
  const { wiring } = context
  const acts = runnerOf(wiring, keyActs, () => ({ config: () => operatorConfig(wiring) }))
  const { run, list } = acts
  const key = program.command('key').description('API keys')
  addCreate(key, acts)

  key
    .command('list')
    .description('the keys of an account')
    .requiredOption('--account <id>', 'account id')
    .example('key list --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async ({ account }: { account: string }) => {
      const json = await list(listKeys, { account_id: account })
      return answerTable(json, LIST_FIELDS, json.map(keyInWords))
    })
  key
    .command('show')
    .description('one key, without its secret')
    .argument('<id>', 'key id')
    .example('key show key_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => one(await run(showKey, { id })))
  key
    .command('reveal')
    .description('print the raw key again')
    .argument('<id>', 'key id')
    .example('key reveal key_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => one(await run(revealKey, { id })))
  key
    .command('revoke')
    .description('refuse a key for good')
    .argument('<id>', 'key id')
    .example('key revoke key_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => one(await run(revokeKey, { id })))
  key
    .command('forget')
    .description('delete the encrypted copies of keys, for good; the keys go on working')
    .requiredOption('--all', 'of every key of every account')
    .option('--yes', 'do not ask')
    .example('key forget --all')
    .answers(async ({ yes: isAgreed = false }: { yes?: boolean }) => {
      const question = 'This would delete the encrypted copies of all keys: none could be revealed again'
      if (!isAgreed) await assertAgreed(wiring, `${question}. Do it?`, `${question}. Name --yes.`)
      return answerRecord(await run(forgetKeys, {}))
    })
  addUpdate(key, acts)
  addRotationCommands(key, context)
  addKeyRequestCommands(key, context)
}
