/** `tollgate account …`: who may call at all, and how much at a time. */
import { Option } from 'commander'
import { accountActs } from '../../../pipelines/management/accounts/accounts.ts'
import { ACCOUNT_KINDS, type AccountKind } from '../../../schemas/accounts/account.ts'
import {
  createAccount,
  listAccounts,
  showAccount,
  updateAccount,
} from '../../../schemas/management/accounts/accounts.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { operatorConfig } from '../config/config.ts'
import { type Answer, answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { runnerOf } from '../management.ts'
import { credits, limitOrNone, modelList, nameText, orNull } from '../option-values.ts'
import { assertConfirmed } from './confirm.ts'

const LIST_FIELDS = [
  'id',
  'name',
  'kind',
  'enabled',
  'requests_per_minute',
  'concurrency',
  'remaining',
  'created_at',
]

function one(json: AnswerOf<typeof showAccount>): Answer {
  const { wallet, ...account } = json
  const { remaining, held, used, total } = wallet
  const allowed_models = account.allowed_models ?? 'all'
  return answerRecord(json, { ...account, allowed_models, remaining, held, used, total })
}

export function addAccountCommands(program: Command, { wiring }: Context): void {
  const { run, list } = runnerOf(wiring, accountActs, () => ({ config: () => operatorConfig(wiring) }))
  const account = program.command('account').description('accounts and their platform limits')

  interface CreateOptions {
    name: string
    kind: AccountKind
    credit?: Credits
    yes?: boolean
  }
  account
    .command('create')
    .description('a new account with the trial credit')
    .requiredOption('--name <name>', 'what to call it', nameText)
    .addOption(new Option('--kind <kind>', 'whose it is').choices(ACCOUNT_KINDS).default('personal'))
    .option('--credit <credits>', 'another trial credit than the configured one', credits)
    .option('--yes', 'do not ask, however large the credit is')
    .example('account create --name Acme --kind organization --credit 500')
    .answers(async ({ name, kind, credit, yes: isAgreed = false }: CreateOptions) => {
      if (credit === undefined) return one(await run(createAccount, { name, kind }))
      const text = printCredits(credit)
      await assertConfirmed(wiring, { amount: credit, isAgreed, what: `give ${name} a credit of ${text}` })
      return one(await run(createAccount, { name, kind, credit: text }))
    })

  account
    .command('list')
    .description('every account')
    .example('account list')
    .answers(async () => {
      const json = await list(listAccounts, {})
      const rows = json.map((row) => ({ ...row, remaining: row.wallet.remaining }))
      return answerTable(json, LIST_FIELDS, rows)
    })

  account
    .command('show')
    .description('one account with its wallet')
    .argument('<id>', 'account id')
    .example('account show acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => one(await run(showAccount, { id })))

  for (const [name, enabled, description] of [
    ['enable', true, 'let the keys of an account work'],
    ['disable', false, 'refuse every key of an account'],
  ] as const) {
    account
      .command(name)
      .description(description)
      .argument('<id>', 'account id')
      .example(`account ${name} acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF`)
      .answers(async (id: string) => one(await run(updateAccount, { id, enabled })))
  }

  interface LimitOptions {
    rpm?: number | 'none'
    concurrency?: number | 'none'
  }
  const limits = account
    .command('limits')
    .description('set or take away platform limits; what is not named stays')
    .argument('<id>', 'account id')
    .option('--rpm <n|none>', 'requests per minute', limitOrNone)
    .option('--concurrency <n|none>', 'calls at the same time', limitOrNone)
    .example('account limits acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --rpm 600 --concurrency none')
  limits.answers(async (id: string, { rpm, concurrency }: LimitOptions) => {
    if (rpm === undefined && concurrency === undefined)
      limits.error('error: name at least one of --rpm and --concurrency')
    const changes = { requests_per_minute: orNull(rpm, 'none'), concurrency: orNull(concurrency, 'none') }
    return one(await run(updateAccount, { id, ...changes }))
  })

  account
    .command('models')
    .description('set which models any key of an account may call')
    .argument('<id>', 'account id')
    .requiredOption('--models <a,b|all|none>', 'model ids', modelList)
    .example('account models acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --models sonata-large,sonata-small')
    .answers(async (id: string, { models }: { models: string[] | 'all' }) =>
      one(await run(updateAccount, { id, allowed_models: orNull(models, 'all') })),
    )
}
