/** `tollgate wallet verify`: the audit of the books. */
import { verifyBooks } from '../../pipelines/jobs/verify.ts'
import { DIFFERENCE_KINDS } from '../postgres/billing/audit-report.ts'
import { answerRecord, type Command, type Context } from './context.ts'

export function addVerifyCommand(program: Command, { wiring, output, isNegativeAnswer }: Context): void {
  program
    .group('wallet')
    .command('verify')
    .description(
      'Audit every wallet: balance and holds against the ledger, ledger against call log and payments',
    )
    .option(
      '--full',
      'Read everything, and not only what was written since the last audit without a difference',
    )
    .addHelpText('after', `\nKinds of differences: ${DIFFERENCE_KINDS.join(', ')}`)
    .example('wallet verify --json')
    .answers(async ({ full: isFull = false }: { full?: boolean }) => {
      const openProvider = await wiring.openProvider()
      const verified = await verifyBooks({
        ...(await wiring.books()),
        payments: await openProvider?.(),
        isFull,
      })
      const { ok, call_log_not_compared: noLog, payments_not_compared: noPayments } = verified
      if (noLog !== undefined)
        output.error(`The call log was not compared, because it cannot be read: ${noLog}\n`)
      if (noPayments !== undefined)
        output.error(`Payments were not compared with the provider's books: ${noPayments}\n`)
      if (!ok) isNegativeAnswer()
      return answerRecord(verified)
    })
}
