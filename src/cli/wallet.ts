/** `tollgate wallet …`: credits in, what is left, and whether the books agree. */
import type { Command } from 'commander'
import type { Credits } from '../../schemas/money.ts'
import { type AuditReport, DIFFERENCE_KINDS } from '../postgres/audit-report.ts'
import { answerRecord, answers, answerTable, type Context } from './context.ts'
import { credits, ledgerLimit } from './option-values.ts'
import { type JsonObject, printTable } from './output.ts'
import { entryShape, walletShape } from './shapes.ts'

const DEFAULT_LEDGER_ENTRIES = 50
const LEDGER_FIELDS = ['id', 'created_at', 'kind', 'amount', 'ref', 'note']
const DIFFERENCE_FIELDS = ['account_id', 'kind', 'ref', 'expected', 'found']

export function addWalletCommands(program: Command, context: Context): void {
  const { wiring, output, answerIsNo } = context
  const wallet = program.command('wallet').description('credits: top up, look, audit')

  answers(
    context,
    wallet
      .command('topup')
      .description('add credits; at least 404.4')
      .argument('<id>', 'account id')
      .argument('<amount>', 'credits', credits)
      .option('--note <text>', 'why, for the ledger'),
    'wallet topup acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF 1000 --note "invoice 17"',
    async (id: string, amount: Credits, { note }: { note?: string }) => {
      const done = await wiring.withDatabase((database) => database.topUp(id, amount, note))
      const shown = walletShape(done.wallet)
      return answerRecord({ ...shown, entry: entryShape(done.entry) }, shown)
    },
  )

  answers(
    context,
    wallet.command('show').description('what an account has').argument('<id>', 'account id'),
    'wallet show acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    async (id: string) => {
      const { wallet: totals } = await wiring.withDatabase((database) => database.showAccount(id))
      return answerRecord(walletShape(totals))
    },
  )

  answers(
    context,
    wallet
      .command('ledger')
      .description('the newest entries first')
      .argument('<id>', 'account id')
      .option('--limit <n>', 'how many', ledgerLimit, DEFAULT_LEDGER_ENTRIES),
    'wallet ledger acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --limit 20',
    async (id: string, { limit }: { limit: number }) => {
      const entries = await wiring.withDatabase((database) => database.listLedger(id, limit))
      return answerTable(entries.map(entryShape), LEDGER_FIELDS)
    },
  )

  answers(
    context,
    wallet
      .command('verify')
      .description('audit every wallet: balance and holds against the ledger, ledger against the call log')
      .addHelpText('after', `\nKinds of differences: ${DIFFERENCE_KINDS.join(', ')}`),
    'wallet verify --json',
    async () => {
      const report = await wiring.withBooks(({ database, log }) => database.verifyWallets(log))
      if (report.logTrouble !== undefined)
        output.error(`The call log was not compared, for it cannot be read: ${report.logTrouble}\n`)
      if (!report.ok) answerIsNo()
      return { json: reportShape(report), text: () => printReport(report) }
    },
  )
}

const reportShape = ({ ok, accounts, entries, differences, logTrouble }: AuditReport) =>
  ({
    ok,
    accounts,
    entries,
    differences: differences.map((difference): JsonObject => ({ ...difference })),
    ...(logTrouble !== undefined && { call_log_not_compared: logTrouble }),
  }) satisfies JsonObject

function printReport(report: AuditReport): string {
  const { accounts, entries, differences } = reportShape(report)
  const looked = `${accounts} accounts, ${entries} ledger entries`
  if (report.ok) return `ok: ${looked}, no difference\n`
  return `${looked}, ${differences.length} differences\n\n${printTable(differences, DIFFERENCE_FIELDS)}`
}
