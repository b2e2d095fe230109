/** `tollgate payments …`: payments by card. */
import { paymentActs } from '../../pipelines/management/payments/payments.ts'
import { refusedEventActs } from '../../pipelines/management/payments/refused-events.ts'
import type { AnswerOf } from '../../schemas/management/operation.ts'
import {
  listAllPayments,
  listPayments,
  reconcilePayments,
  refundPayment,
  showPayment,
} from '../../schemas/management/payments/payments.ts'
import { closeRefusedEvent, listRefusedEvents } from '../../schemas/management/payments/refused-events.ts'
import { operatorConfig } from './config/config.ts'
import { type Answer, answerRecord, answerTable, type Command, type Context } from './context.ts'
import { runnerOf } from './management.ts'
import { entryLimit, noteText, reconciledDays } from './option-values.ts'

const DEFAULT_PAYMENTS = 50
const FIELDS = [
  'id',
  'account_id',
  'created_at',
  'kind',
  'state',
  'credits',
  'amount',
  'currency',
  'refunded',
  'disputed',
]
const REFUSED_FIELDS = ['id', 'type', 'account_id', 'payment_id', 'received_at', 'refusal', 'close_reason']
const silent = { info: () => undefined, warn: () => undefined }

function shownPayment(json: AnswerOf<typeof showPayment>): Answer {
  const receipts = json.receipts.map(({ kind, number }) => `${kind} ${number}`).join(', ')
  return answerRecord(json, { ...json, receipts })
}

export function addPaymentCommands(program: Command, { wiring, output, isNegativeAnswer }: Context): void {
  const { run, list } = runnerOf(wiring, [...paymentActs, ...refusedEventActs], async () => ({
    config: () => operatorConfig(wiring),
    openProvider: await wiring.openProvider(),
    hasSimulatedCards: false,
    publicUrl: await wiring.publicUrl(),
    log: {
      ...silent,
      error: (details: object, message: string) => output.error(`${message}: ${JSON.stringify(details)}\n`),
    },
  }))
  const payments = program
    .command('payments')
    .description('payments by card: list, refund, reconcile, refused events')

  payments
    .command('list')
    .description('the newest payments first')
    .option('--account <id>', 'of one account (default: of all)')
    .option('--limit <n>', 'how many', entryLimit, DEFAULT_PAYMENTS)
    .example('payments list --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async ({ account, limit }: { account?: string; limit: number }) => {
      const found =
        account === undefined
          ? await list(listAllPayments, {}, limit)
          : await list(listPayments, { account_id: account }, limit)
      return answerTable(found, FIELDS)
    })

  payments
    .command('show')
    .description('a payment with its receipts')
    .argument('<id>', 'payment id')
    .example('payments show pay_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => shownPayment(await run(showPayment, { id })))

  payments
    .command('refund')
    .description('give money back to the card, and take its credits back')
    .argument('<id>', 'payment id')
    .requiredOption('--reason <text>', 'why, for the audit record', noteText)
    .option('--amount <amount>', 'in units of the currency (default: all that is left)')
    .example('payments refund pay_01J8Z3N4V9QKX2T5W7Y0ABCDEF --amount 5.00 --reason "bought by mistake"')
    .answers(async (id: string, { reason, amount = null }: { reason: string; amount?: string | null }) =>
      shownPayment(await run(refundPayment, { id, reason, amount })),
    )

  payments
    .command('reconcile')
    .description("compare the provider's events with ours, and book what its webhooks have not brought")
    .option('--days <n>', 'since so many days, 30 at most (default: since the last time)', reconciledDays)
    .example('payments reconcile --days 7')
    .answers(async ({ days }: { days?: number }) => {
      const answer = await run(reconcilePayments, { days })
      if (answer.refused + answer.failed > 0) isNegativeAnswer()
      return answerRecord(answer)
    })

  payments
    .command('refused')
    .description('events of the provider that contradict a payment and were not booked, the newest first')
    .option('--all', 'also those that were closed', false)
    .example('payments refused')
    .answers(async ({ all }: { all: boolean }) =>
      answerTable(await list(listRefusedEvents, { state: all ? 'all' : 'open' }), REFUSED_FIELDS),
    )

  payments
    .command('close')
    .description('close a refused event that was dealt with: verify names it no more')
    .argument('<event>', "the provider's id of the event")
    .requiredOption('--reason <text>', 'what was done about it, for the audit record', noteText)
    .example('payments close evt_1SWyQ2Lkd --reason "refunded at the provider"')
    .answers(async (id: string, { reason }: { reason: string }) =>
      answerRecord(await run(closeRefusedEvent, { id, reason })),
    )
}
