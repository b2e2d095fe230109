/** `tollgate budget …`: what keys, members and accounts may spend in a day, a week or a month. */
import { InvalidArgumentError, Option } from 'commander'
import { budgetActs } from '../../../pipelines/management/accounts/budgets.ts'
import { BUDGET_PERIODS, type BudgetPeriod } from '../../../schemas/accounts/budget.ts'
import { deleteBudget, listBudgets, putBudget } from '../../../schemas/management/accounts/budgets.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { runnerOf } from '../management.ts'
import { credits } from '../option-values.ts'

const LIST_FIELDS = ['id', 'scope', 'name', 'amount', 'period', 'timezone', 'spent', 'reserved', 'resets_at']

function moreThanNothing(text: string): Credits {
  const amount = credits(text)
  if (amount > 0n) return amount
  throw new InvalidArgumentError('A budget is more than 0.')
}

interface SetOptions {
  account: string
  key?: string
  member?: string
  amount: Credits
  period: BudgetPeriod
  timezone: string
}

export function addBudgetCommands(program: Command, context: Context): void {
  const { run, list } = runnerOf(context.wiring, budgetActs, () => ({}))
  const budget = program.command('budget').description('what may be spent in a day, a week or a month')

  budget
    .command('list')
    .description('the budgets of an account, its members and its keys')
    .requiredOption('--account <id>', 'account id')
    .example('budget list --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async ({ account }: { account: string }) =>
      answerTable(await list(listBudgets, { account_id: account }), LIST_FIELDS),
    )
  budget
    .command('set')
    .description('create a budget, or replace the one of the same subject and period')
    .requiredOption('--account <id>', 'the account that pays, and without --key and --member the subject')
    .addOption(new Option('--key <id>', 'the key that it limits').conflicts('member'))
    .addOption(new Option('--member <id>', 'account id of the member whose keys it limits').conflicts('key'))
    .requiredOption('--amount <credits>', 'what may be spent in a period', moreThanNothing)
    .addOption(
      new Option('--period <period>', 'how long it lasts').choices(BUDGET_PERIODS).makeOptionMandatory(),
    )
    .option('--timezone <name>', 'IANA name; periods begin at midnight there', 'UTC')
    .example(
      'budget set --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --amount 500 --period week --timezone Europe/Berlin',
    )
    .answers(async ({ account, key, member, amount, period, timezone }: SetOptions) =>
      answerRecord(
        await run(putBudget, {
          account_id: account,
          key_id: key,
          member_id: member,
          amount: printCredits(amount),
          period,
          timezone,
        }),
      ),
    )
  budget
    .command('delete')
    .description('end a budget')
    .argument('<id>', 'budget id')
    .example('budget delete bud_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => answerRecord(await run(deleteBudget, { id })))
}
