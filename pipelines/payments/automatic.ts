/** Automatic top-ups: charges the saved card of accounts whose balance is below their threshold. */
import { Failure } from '../../schemas/failure.ts'
import type { Credits } from '../../schemas/money.ts'
import type { Price } from '../../schemas/payments/payment.ts'
import type { PaymentNotice } from '../../schemas/payments/provider.ts'
import type { ChargedCard, Decline } from '../../src/payments/provider.ts'
import { returnPages } from './pages.ts'
import { type BookingDeps, takeReport } from './take-event.ts'

const ACTOR = 'service:automatic-top-up'
/** The provider forgets an Idempotency-Key after a day. So we look up an older attempt, and never send it again. */
const RESEND_MS = 20 * 60 * 60 * 1000

interface AutomaticDeps extends BookingDeps {
  /** Returns the price of credits; null while the configuration has no prices. */
  readonly computePrice: ((credits: Credits) => Price) | null
  /** The base URL of links for customers. */
  readonly publicUrl: string
}

/**
 * Begins the top-ups that are due, and continues those that a stopped process had begun. Several processes may run it at
 * once: one of them begins each attempt, and the provider counts its key once.
 */
export async function topUpAutomatically(deps: AutomaticDeps): Promise<void> {
  const { database, computePrice, log } = deps
  const ids = await database.payments.claimAttempts()
  if (computePrice !== null)
    for (const accountId of await database.payments.findLowBalances()) {
      try {
        const begun = await database.transactAs(ACTOR, (writing) =>
          writing.payments.beginAutomatic(accountId, computePrice),
        )
        if (begun !== null) ids.push(begun.id)
      } catch (error) {
        // Goes on with the other accounts and the claimed attempts.
        log.warn({ err: error, account: accountId }, 'Failed to begin an automatic top-up; trying again')
      }
    }
  await Promise.all(
    ids.map((id) =>
      attempt(deps, id).catch((error) =>
        log.warn({ err: error, payment: id }, 'Failed to charge a saved card; asking the provider again'),
      ),
    ),
  )
}

async function attempt(deps: AutomaticDeps, id: string): Promise<void> {
  const { database, provider } = deps
  const card = await database.payments.readAttempt(id)
  if (card.payment.createdAt.getTime() < Date.now() - RESEND_MS) {
    const found = await provider.findCharge(card)
    await takeReport(
      deps,
      found ?? reportFailure(card, { code: 'lost', message: 'The charge was never made.', intentId: null }),
    )
    return
  }
  const answer = await provider.charge(card)
  if ('about' in answer) await takeReport(deps, answer)
  else if (answer.code === 'confirmation_required') await askCustomer(deps, card, answer)
  else await takeReport(deps, reportFailure(card, answer))
}

const reportFailure = (
  { payment, customerId }: ChargedCard,
  { code, message, intentId }: Decline,
): PaymentNotice => ({
  about: 'payment',
  event: 'failed',
  paymentId: payment.id,
  customerId,
  sessionId: null,
  intentId,
  amount: payment.amount,
  currency: payment.currency,
  failureCode: code,
  failureMessage: message,
})

/** Replaces a charge that only the customer can confirm with a hosted page. The event has its link. */
async function askCustomer(deps: AutomaticDeps, card: ChargedCard, { intentId }: Decline): Promise<void> {
  const { provider, publicUrl } = deps
  const { payment, customerId } = card
  // Before the page exists, so that only one of the two can take the money.
  if (intentId !== null) await provider.cancelIntent(intentId)
  const pages = returnPages(publicUrl, payment)
  const page = await provider.openCheckout(payment, customerId, {
    ...pages,
    savesMethod: true,
    attempt: 'confirm',
  })
  if (page.url == null)
    throw new Failure('upstream_error', 'The payment provider gave no page to confirm at.')
  await takeReport(deps, { ...page, event: 'confirmation_needed', failureCode: 'confirmation_required' })
}
