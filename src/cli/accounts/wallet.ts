/** `tollgate wallet …`: top-ups, balances, and the audit of the books. */
import { verifyBooks } from '../../../pipelines/jobs/verify.ts'
import { accountActs } from '../../../pipelines/management/accounts/accounts.ts'
import { MINIMUM_TOP_UP } from '../../../schemas/accounts/account.ts'
import {
  adjust,
  listLedger,
  refund,
  showAccount,
  topUp,
} from '../../../schemas/management/accounts/accounts.ts'
import type { Verified } from '../../../schemas/management/jobs.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { DIFFERENCE_KINDS } from '../../postgres/billing/audit-report.ts'
import { operatorConfig } from '../config/config.ts'
import { type Answer, answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { runnerOf } from '../management.ts'
import { credits, entryLimit, noteText, signedCredits } from '../option-values.ts'
import { counted, printTable } from '../output.ts'
import { assertConfirmed } from './confirm.ts'
import { addImportLog } from './import-log.ts'
import { printMetering } from './metering-text.ts'

const DEFAULT_LEDGER_ENTRIES = 50
const LEDGER_FIELDS = ['id', 'created_at', 'kind', 'amount', 'ref', 'actor', 'reference', 'note']
const REFERENCE = 'what names it elsewhere, such as an invoice; the same one never counts twice in an account'
const DIFFERENCE_FIELDS = ['account_id', 'kind', 'ref', 'expected', 'found']

/** Replaces the interface's word, points, where people read the answer. */
const IN_WORDS = { currency: 'credits' }

interface CreditFlags {
  readonly reference?: string
  readonly yes?: boolean
}

type TopUpFlags = CreditFlags & { readonly note?: string }
type AdjustFlags = CreditFlags & { readonly reason: string }

function credited(json: AnswerOf<typeof topUp>): Answer {
  const { entry, repeated, ...wallet } = json
  const shown = { ...wallet, ...IN_WORDS, entry: entry.id }
  if (!repeated) return answerRecord(json, shown)
  return answerRecord(json, { ...shown, repeated: 'the reference was booked before; nothing was changed' })
}

export function addWalletCommands(program: Command, { wiring, output, isNegativeAnswer }: Context): void {
  const { run, list } = runnerOf(wiring, accountActs, () => ({ config: () => operatorConfig(wiring) }))
  const wallet = program.command('wallet').description('credits: top up, correct, refund, show, audit')

  wallet
    .command('topup')
    .description(`add credits; at least ${MINIMUM_TOP_UP}`)
    .argument('<id>', 'account id')
    .argument('<amount>', 'credits', credits)
    .option('--note <text>', 'why, for the ledger', noteText)
    .option('--reference <text>', REFERENCE, noteText)
    .option('--yes', 'do not ask, however large the amount is')
    .example('wallet topup acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF 1000 --reference "invoice 17"')
    .answers(async (id: string, amount: Credits, { note, reference, yes: isAgreed = false }: TopUpFlags) => {
      const what = `add ${printCredits(amount)} credits to ${id}`
      await assertConfirmed(wiring, { amount, isAgreed, what })
      return credited(await run(topUp, { id, amount: printCredits(amount), note, reference }))
    })

  wallet
    .command('adjust')
    .description('correct a balance, up or down; it may fall below zero')
    .argument('<id>', 'account id')
    .argument('<amount>', 'credits; negative to take away', signedCredits)
    .requiredOption('--reason <text>', 'why, for the ledger and the audit record', noteText)
    .option('--reference <text>', REFERENCE, noteText)
    .option('--yes', 'do not ask, however large the amount is')
    .example('wallet adjust acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF -25.5 --reason "charged twice by mistake"')
    .answers(
      async (id: string, amount: Credits, { reason, reference, yes: isAgreed = false }: AdjustFlags) => {
        const what =
          amount < 0n
            ? `take ${printCredits(-amount)} credits from ${id}`
            : `add ${printCredits(amount)} credits to ${id}`
        await assertConfirmed(wiring, { amount, isAgreed, what })
        return credited(await run(adjust, { id, amount: printCredits(amount), reason, reference }))
      },
    )

  wallet
    .command('refund')
    .description('give back the charge of one call or task, or a part of it; once')
    .argument('<id>', 'account id')
    .argument('<ref>', 'request id or task id')
    .requiredOption('--reason <text>', 'why, for the ledger and the audit record', noteText)
    .option('--amount <credits>', 'a part of the charge (default: all of it)', credits)
    .example(
      'wallet refund acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF req_01J8Z3N4V9QKX2T5W7Y0GHJKMN --reason "the answer was empty"',
    )
    .answers(async (id: string, ref: string, { reason, amount }: { reason: string; amount?: Credits }) => {
      const part = amount === undefined ? null : printCredits(amount)
      return credited(await run(refund, { id, ref, amount: part, reason }))
    })

  wallet
    .command('show')
    .description('what an account has')
    .argument('<id>', 'account id')
    .example('wallet show acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => {
      const { wallet } = await run(showAccount, { id })
      return answerRecord(wallet, { ...wallet, ...IN_WORDS })
    })

  wallet
    .command('ledger')
    .description('the newest entries first')
    .argument('<id>', 'account id')
    .option('--limit <n>', 'how many', entryLimit, DEFAULT_LEDGER_ENTRIES)
    .example('wallet ledger acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --limit 20')
    .answers(async (id: string, { limit }: { limit: number }) =>
      answerTable(await list(listLedger, { id }, limit), LEDGER_FIELDS),
    )

  addImportLog(wallet, wiring)

  wallet
    .command('verify')
    .description(
      'audit every wallet: balance and holds against the ledger, ledger against the call log and payments',
    )
    .option(
      '--full',
      'read everything, and not only what was written since the last one without a difference',
    )
    .addHelpText('after', `\nKinds of differences: ${DIFFERENCE_KINDS.join(', ')}`)
    .example('wallet verify --json')
    .answers(async ({ full: isFull = false }: { full?: boolean }) => {
      const provider = await wiring.openProvider()
      const verified = await wiring.withBooks(async (books) =>
        verifyBooks({ ...books, payments: await provider?.(), isFull }),
      )
      if (verified.call_log_not_compared !== undefined)
        output.error(
          `The call log was not compared, for it cannot be read: ${verified.call_log_not_compared}\n`,
        )
      if (verified.payments_not_compared !== undefined)
        output.error(
          `Payments were not compared with the provider's books: ${verified.payments_not_compared}\n`,
        )
      if (!verified.ok) isNegativeAnswer()
      return { json: verified, text: () => printReport(verified) + printMetering(verified) }
    })
}

function printReport({ ok, since, accounts, entries, differences }: Verified): string {
  const looked = `${counted(accounts, 'account')}, ${entries} ledger ${entries === 1 ? 'entry' : 'entries'}${since === undefined ? '' : ` since ${since}`}`
  if (ok) return `ok: ${looked}, no difference\n`
  return `${looked}, ${counted(differences.length, 'difference')}\n\n${printTable(differences, DIFFERENCE_FIELDS)}`
}
