/** `tollgate wallet verify|import-log`: the audit of the books, and calls that only the call log has. */
import { verifyBooks } from '../../pipelines/jobs/verify.ts'
import { importLog } from '../../schemas/management/call-log.ts'
import type { Verified } from '../../schemas/management/jobs.ts'
import type { AnswerOf } from '../../schemas/management/operation.ts'
import { DIFFERENCE_KINDS } from '../postgres/billing/audit-report.ts'
import { assertAgreed } from './confirm.ts'
import type { Command, Context } from './context.ts'
import { runOperation } from './operations/commands.ts'
import { counted, printTable } from './output.ts'

const DIFFERENCE_FIELDS = ['account_id', 'kind', 'ref', 'expected', 'found']
const METERED_FIELDS = [
  'account_id',
  'model',
  'channel_id',
  'calls',
  'estimated',
  'estimated_percent',
  'suspect',
  'other_model',
]
const IMPORT_HELP = `
The log is a copy of PostgreSQL: it has calls of its own only where PostgreSQL lost what it had committed, such as
after a restore from an older copy. Without --book nothing is changed. Each call is booked once, by its request id,
at the cost that it had. Calls of accounts that PostgreSQL does not know stay as they are. Then run logs rebuild: until
then the log has the booked calls twice.`

export function addWalletCommands(program: Command, context: Context): void {
  const wallet = program.group('wallet')
  addVerify(wallet, context)
  addImportLog(wallet, context)
}

function addVerify(wallet: Command, { wiring, output, isNegativeAnswer }: Context): void {
  wallet
    .command('verify')
    .description(
      'Audit every wallet: balance and holds against the ledger, ledger against call log and payments',
    )
    .option(
      '--full',
      'read everything, and not only what was written since the last audit without a difference',
    )
    .addHelpText('after', `\nKinds of differences: ${DIFFERENCE_KINDS.join(', ')}`)
    .example('wallet verify --json')
    .answers(async ({ full: isFull = false }: { full?: boolean }) => {
      const provider = await wiring.openProvider()
      const verified = await wiring.withCallLog(async (books) =>
        verifyBooks({ ...books, payments: await provider?.(), isFull }),
      )
      const { ok, call_log_not_compared: noLog, payments_not_compared: noPayments } = verified
      if (noLog !== undefined)
        output.error(`The call log was not compared, for it cannot be read: ${noLog}\n`)
      if (noPayments !== undefined)
        output.error(`Payments were not compared with the provider's books: ${noPayments}\n`)
      if (!ok) isNegativeAnswer()
      return { json: verified, text: () => printReport(verified) + printMetering(verified) }
    })
}

function printReport({ ok, since, accounts, entries, differences }: Verified): string {
  const looked = `${counted(accounts, 'account')}, ${entries} ledger ${entries === 1 ? 'entry' : 'entries'}${since === undefined ? '' : ` since ${since}`}`
  if (ok) return `ok: ${looked}, no difference\n`
  return `${looked}, ${counted(differences.length, 'difference')}\n\n${printTable(differences, DIFFERENCE_FIELDS)}`
}

/** Prints how the calls of the last day were metered. Empty without anomalies. */
function printMetering({ metered_last_day: metered, negative_balances: negative }: Verified): string {
  const calls =
    metered === undefined
      ? ''
      : `\nEstimated, suspect and otherwise answered calls of the last day:\n${printTable(metered, METERED_FIELDS)}`
  if (negative === undefined) return calls
  return `${calls}\nNegative balances:\n${printTable(negative, ['account_id', 'balance'])}`
}

type Imported = AnswerOf<typeof importLog>

function addImportLog(wallet: Command, context: Context): void {
  const run = async (dry_run: boolean) => (await runOperation(importLog, { dry_run }, context)) as Imported
  wallet
    .command('import-log')
    .description('Show the calls that only the call log has; with --book, book each of them once')
    .option('--book', 'book them; asks first')
    .option('--yes', 'do not ask')
    .addHelpText('after', IMPORT_HELP)
    .example('wallet import-log')
    .answers(async ({ book = false, yes = false }: { book?: boolean; yes?: boolean }) => {
      const found = await run(true)
      const isBooked = book && found.calls > 0
      const what = `${counted(found.calls, 'call')} would be charged, ${found.cost} credits in all`
      if (isBooked && !yes) await assertAgreed(context.wiring, `${what}. Do it?`, `${what}. Name --yes.`)
      const json = isBooked ? await run(false) : found
      return { json, text: () => printImported(json) }
    })
}

function printImported(imported: Imported): string {
  const { calls, accounts, cost, dry_run, booked_calls, booked_cost } = imported
  const found = `only the call log has ${counted(calls, 'call')} of ${counted(accounts.length, 'account')}, ${cost} credits\n`
  if (dry_run && calls === 0) return found
  const table = calls === 0 ? '' : `\n${printTable(accounts, ['account_id', 'calls', 'cost', 'is_known'])}`
  const done = dry_run
    ? 'nothing was booked: name --book\n'
    : `booked: ${counted(booked_calls, 'call')}, ${booked_cost} credits. Now run logs rebuild\n`
  return found + table + done
}
